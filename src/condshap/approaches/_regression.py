"""Training rows, model outputs -> fitted regressors: what the regression approaches share.

Any scikit-learn regressor will do, or any object with ``fit`` and ``predict``. Levels are one-hot encoded, but for
histogram gradient boosting, which splits on levels itself. Several outputs are fitted at once where a regressor can.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from condshap.exceptions import OptionError
from condshap.runtime.threads import single_threaded_openmp
from condshap.schema import FeatureSchema
from condshap.seeding import derive_seed
from condshap.types import Floats, Indices, Masks, Outputs, Rows

_FOLDS = 5
_SMALL_TABLE = 2**20  # numbers; below this one thread of OpenMP is as fast as many


@dataclass(frozen=True, slots=True)
class Design:
    """Predictors of a regression: `table` (n, width), and which of its columns hold codes of levels."""

    table: Floats
    is_code: tuple[bool, ...]


Build: TypeAlias = Callable[[Indices, int], tuple[Design, Outputs]]
"""Positions of training rows and a `code_limit` -> predictors (n, width) and responses (n, O)."""


@dataclass(frozen=True, slots=True)
class FittedRegressor:
    """One fitted model for all outputs or one per output, and how many levels it takes as codes."""

    models: tuple[Any, ...]
    code_limit: int
    n_outputs: int

    def predict(self, design: Design) -> Outputs:
        """Estimate all outputs, shape (n, O)."""
        n = len(design.table)
        with _few_threads(design.table):
            parts = [np.asarray(model.predict(design.table), dtype=np.float64).reshape(n, -1) for model in self.models]
        outputs = np.concatenate(parts, axis=1)
        if outputs.shape[1] != self.n_outputs or not np.isfinite(outputs).all():
            raise OptionError(
                f"regressor must predict {self.n_outputs} finite numbers per row, but {_describe(self.models[0])} gave "
                f"{outputs.shape[1]} or some that are not finite. Use another regressor."
            )
        return outputs


class LeastSquares(LinearRegression):  # type: ignore[misc]
    """Linear regression that predicts every row by itself.

    scikit-learn's own takes the product of all rows at once, whose last bits depend on how many there are.
    """

    def predict(self, X: Floats) -> Floats:
        """Predict rows (n, k): (n,), or (n, O) if it was fitted to several outputs."""
        several = np.matmul(np.ascontiguousarray(X)[:, None, :], np.atleast_2d(self.coef_).T)[:, 0] + self.intercept_
        return np.asarray(several[:, 0] if self.coef_.ndim == 1 else several)


def check_regressors(regressor: Any, default: Any) -> tuple[Any, ...]:
    """One regressor or a list of them to choose from; None stands for the default."""
    given = list(regressor) if isinstance(regressor, (list, tuple)) else [regressor]
    if not given:
        raise OptionError(
            "regressor must be a regressor or a list of them, got an empty list. Leave it out, or list at least one."
        )
    for one in given:
        if one is not None:
            _check_regressor(one)
    return tuple(default if one is None else one for one in given)


def _check_regressor(regressor: Any) -> None:
    lacking = [method for method in ("fit", "predict") if not callable(getattr(regressor, method, None))]
    if isinstance(regressor, type) or lacking:
        why = "which is a class" if isinstance(regressor, type) else f"which has no {' and no '.join(lacking)}"
        raise OptionError(
            f"regressor must be an object with fit and predict, got {_describe(regressor)}, {why}. Pass an estimator such "
            "as sklearn.ensemble.RandomForestRegressor()."
        )
    if isinstance(regressor, BaseEstimator) and is_classifier(regressor):
        raise OptionError(
            f"regressor must predict numbers, got the classifier {_describe(regressor)}. Pass its regressor "
            "counterpart: it is fitted to the model's outputs, which are numbers even when they are probabilities."
        )


def _describe(regressor: Any) -> str:
    text = repr(regressor)
    return text if len(text) <= 80 else type(regressor).__name__


def level_counts(schema: FeatureSchema) -> tuple[int, ...]:
    """Number of levels of every feature, shape (M,), 0 for continuous ones."""
    return tuple(0 if feature.levels is None else len(feature.levels) for feature in schema.features)


def code_limit(regressor: Any) -> int:
    """Largest number of levels that a regressor splits on by itself when it gets codes; 0 where it cannot."""
    is_native = isinstance(regressor, HistGradientBoostingRegressor)
    free = is_native and getattr(regressor, "categorical_features", None) in (None, "from_dtype")
    return int(regressor.max_bins) if free else 0


def encode(X: Rows, n_levels: Sequence[int], limit: int) -> Design:
    """Predictors of rows (n, M): numbers and codes of at most `limit` levels as they are, other levels one-hot.

    >>> encode(np.array([[0.5, 1.0], [0.7, 0.0]]), [0, 2], 0).table
    array([[0.5, 0. , 1. ],
           [0.7, 1. , 0. ]])
    """
    is_code = [0 < count <= limit for count in n_levels]
    if all(code or count == 0 for code, count in zip(is_code, n_levels, strict=True)):
        return Design(X, tuple(is_code))
    table = np.zeros((len(X), design_width(n_levels, limit)))
    kinds: list[bool] = []
    for j, (code, count) in enumerate(zip(is_code, n_levels, strict=True)):
        if code or count == 0:
            table[:, len(kinds)] = X[:, j]
            kinds.append(code)
        else:
            table[np.arange(len(X)), len(kinds) + X[:, j].astype(np.intp)] = 1.0
            kinds += [False] * count
    return Design(table, tuple(kinds))


def design_width(n_levels: Sequence[int], limit: int) -> int:
    """Number of columns that `encode` makes."""
    return sum(count if count > limit else 1 for count in n_levels)


def masked_levels(n_levels: Sequence[int]) -> tuple[int, ...]:
    """Level counts of what `hide_unknown` makes: masked is one more level, and numbers have a mask column."""
    widened = [count + 1 if count else 0 for count in n_levels]
    return (*widened, *(0 for count in n_levels if count == 0))


def hide_unknown(X: Rows, known: Masks, n_levels: Sequence[int]) -> Rows:
    """Rows (n, M) with what is not known (n, M) hidden, and a column per number that is 1 where it is hidden.

    A hidden number is 0, a hidden level the code after the last one.

    >>> hide_unknown(np.array([[0.5, 1.0]]), np.array([[False, False]]), [0, 2])
    array([[0., 2., 1.]])
    """
    counts = np.asarray(n_levels)
    numbers = np.flatnonzero(counts == 0)
    table = np.empty((len(X), X.shape[1] + len(numbers)))
    table[:, : X.shape[1]] = np.where(known, X, counts)
    table[:, X.shape[1] :] = ~known[:, numbers]
    return table


def fit_best(candidates: Sequence[Any], build: Build, n_rows: int, seed: int) -> FittedRegressor:
    """Fit the candidate with the smallest cross-validated error, the first of equals, to all training rows.

    Folds are made of training rows: whatever `build` makes of one row is on one side of every split.
    """
    best = candidates[0]
    if len(candidates) > 1:
        best = candidates[int(np.argmin([_validated_error(one, build, n_rows, seed) for one in candidates]))]
    return _fit(best, build, np.arange(n_rows), seed)


def _validated_error(regressor: Any, build: Build, n_rows: int, seed: int) -> float:
    """Cross-validated mean squared error; of several outputs each counts relative to its variance."""
    squares, responses = [], []
    folds = KFold(min(_FOLDS, n_rows), shuffle=True, random_state=_small_seed(seed, "folds"))
    for train, test in folds.split(np.arange(n_rows)):
        fitted = _fit(regressor, build, train, seed)
        design, wanted = build(test, fitted.code_limit)
        squares.append(np.square(fitted.predict(design) - wanted))
        responses.append(wanted)
    variance = np.concatenate(responses).var(axis=0)
    return float((np.concatenate(squares).mean(axis=0) / np.where(variance > 0, variance, 1.0)).mean())


def _fit(regressor: Any, build: Build, rows: Indices, seed: int) -> FittedRegressor:
    limit = code_limit(regressor)
    design, wanted = build(rows, limit)
    single = wanted.shape[1] == 1
    targets = [wanted] if not single and _fits_several(regressor) else list(wanted.T)
    models = []
    for target in targets:
        fresh = _fresh(regressor, seed)
        if any(design.is_code):
            fresh.set_params(categorical_features=list(design.is_code))
        models.append(_fit_one(fresh, design.table, target))
    return FittedRegressor(tuple(models), limit, wanted.shape[1])


def _fit_one(regressor: Any, table: Floats, target: Floats) -> Any:
    try:
        with _few_threads(table):
            regressor.fit(table, target)
    except MemoryError:
        raise
    except Exception as error:
        raise OptionError(
            f"regressor must accept {table.shape[0]} rows of {table.shape[1]} numbers, but {_describe(regressor)} failed "
            f"with {type(error).__name__}: {error}. Change its options or use another regressor."
        ) from error
    return regressor  # not what fit returns: a regressor of one's own may return nothing


def _few_threads(table: Floats) -> AbstractContextManager[Any]:
    """One OpenMP thread for small tables: several wait for each other actively, for minutes where cores are shared."""
    return nullcontext() if table.size > _SMALL_TABLE else single_threaded_openmp()


def _fits_several(regressor: Any) -> bool:
    """Whether a regressor says that it takes responses (n, O)."""
    if hasattr(regressor, "__sklearn_tags__"):
        return bool(regressor.__sklearn_tags__().target_tags.multi_output)
    return bool(hasattr(regressor, "_get_tags") and regressor._get_tags().get("multioutput", False))  # before 1.6


def _fresh(regressor: Any, seed: int) -> Any:
    """Unfitted copy whose random parts, if the user left them open, follow from our seed."""
    if not hasattr(regressor, "get_params"):
        return copy.deepcopy(regressor)
    fresh = clone(regressor)
    names = [name for name, value in fresh.get_params().items() if value is None]
    loose = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    return fresh.set_params(**dict.fromkeys(loose, _small_seed(seed, "regressor"))) if loose else fresh


def _small_seed(seed: int, stage: str) -> int:
    """Seed that every regressor takes, also those written in C."""
    return derive_seed(seed, stage) % 2**31
