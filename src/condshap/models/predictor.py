"""Any model -> predictor: encoded rows (n, M) to outputs (n, O).

The model gets tables of the type, column order, dtypes and categories that it was trained with. What it answers is
checked at every call, because a NaN that slips through here becomes a wrong explanation.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import CondShapWarning, ModelError, OptionError, listing
from condshap.options import as_floats, find_named
from condshap.schema import FeatureSchema
from condshap.tables.formats import TableFormat
from condshap.types import LARGEST, Floats, Model, Outputs, Rows

if TYPE_CHECKING:
    import torch

    from condshap.trees import PackedTrees
    from condshap.trees.cuda import DeviceTrees
    from condshap.trees.flat import FlatTrees

_TORCH_LOCK = threading.Lock()  # evaluation mode is a state of the module, which threads share


@dataclass(frozen=True, slots=True)
class Predictor:
    """A model, how to call it, and which of its outputs to explain.

    Attributes
    ----------
    model : the user's object
    table_format : how encoded rows become the table that the model wants
    order : positions of the schema's features in the model's column order, None if they agree
    output_names : names of the explained outputs, O of them
    picked : position of the one output that was asked for, None for all
    n_outputs : outputs of the model at its trial, which it must have at every call; None before that
    trees : the model's trees, for samples, if it is a tree ensemble that `condshap.trees` evaluates to the last bit, or a
        pipeline that ends in one
    device_trees : the same on an accelerator, where samples are evaluated if there are any; their sums are float64
    units : (M,) sizes of the training values, in which rows name their random streams, see `condshap.seeding.row_keys`
    """

    model: Model
    table_format: TableFormat
    order: tuple[int, ...] | None
    output_names: tuple[str, ...]
    picked: int | None
    n_outputs: int | None = None
    trees: PackedTrees | None = field(default=None, repr=False, compare=False)
    device_trees: DeviceTrees | None = field(default=None, repr=False, compare=False)
    units: Floats | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        model: Model,
        schema: FeatureSchema,
        X: Rows,
        output: str | int | None = None,
        *,
        fast_trees: bool = False,
        device: str | None = None,
    ) -> Predictor:
        """Find out how to call `model` by a trial on the first rows of `X`.

        With `fast_trees` its trees are read, and copied to `device` if there is one.
        """
        table_format, order = _model_format(model, schema.table_format)
        trial = X[:2].copy()  # a copy, because nothing stops a model from changing its input
        outputs = cls(model, table_format, order, (), None)._all_outputs(trial)
        names = _output_names(model, outputs.shape[1])
        picked = None if output is None else _pick_output(output, names)
        chosen = names if picked is None else (names[picked],)
        predictor = cls(model, table_format, order, chosen, picked, outputs.shape[1])
        if not fast_trees:
            return predictor
        trees = _read_trees(predictor, X[:2])
        if trees is None:
            return predictor
        from condshap.trees import PackedTrees

        return replace(predictor, trees=PackedTrees.of(trees), device_trees=_copy_trees(trees, device))

    def __call__(self, rows: Rows) -> Outputs:
        """Predict encoded rows (n, M); returns finite float64 outputs (n, O). The model may write into `rows`."""
        return self._picked(self._all_outputs(rows), rows)

    def sampled(self, rows: Rows) -> Outputs:
        """Predict samples (n, M): the numbers of a call, in less time where the trees are known; outputs (n, O).

        Rows with numbers that the model refuses go to the model, which says so in its own words; in a pipeline only to its
        last step, because those before it may have changed them.
        """
        if self.trees is None:
            return self(rows)
        from condshap.trees.pipelines import split_pipeline

        steps, last = split_pipeline(self.model)
        features = self._features(rows)
        outputs = _evaluate_trees(self.trees, features, last, self.device_trees)
        if outputs is None and steps:
            outputs = _as_outputs(_call(self.model, features, _caller(last)), self.model, len(rows))
        return self(rows) if outputs is None else self._picked(outputs, rows)

    def compared(self, rows: Rows) -> npt.NDArray[Any]:
        """Numbers (n, columns) that the trees compare with their thresholds, for rows (n, M)."""
        from condshap.trees.pipelines import dense_numbers, split_pipeline

        assert self.trees is not None
        numbers = dense_numbers(self._features(rows), split_pipeline(self.model)[1], self.trees.dtype)
        if numbers is None or numbers.shape[1] != self.trees.n_features:
            raise ModelError(
                f"model {_describe(self.model)} must give its trees {self.trees.n_features} columns of numbers, but gave "
                "others. Give fast_trees=False."
            )
        return numbers

    def call_module(self, rows: torch.Tensor) -> torch.Tensor:
        """Outputs of a torch module for rows (n, M) that are a tensor: (n, O), unless the module returns anything else."""
        outputs: torch.Tensor = _call_torch(self.model, self._ordered(rows))
        outputs = outputs[:, None] if outputs.ndim == 1 else outputs
        if outputs.ndim == 2:
            _check_number(outputs.shape[1], self)
        return outputs if self.picked is None else outputs[:, self.picked : self.picked + 1]

    @property
    def takes_plain_rows(self) -> bool:
        """Whether the model, and no pipeline before it, gets the encoded numbers as they are, but for their order."""
        from condshap.trees.pipelines import split_pipeline

        return not split_pipeline(self.model)[0] and _are_exact(self.table_format)

    def _ordered(self, rows: Any) -> Any:
        return rows if self.order is None else rows[:, list(self.order)]

    def _all_outputs(self, rows: Rows) -> Outputs:
        table = self.table_format.write(self._ordered(rows))
        return _as_outputs(_call(self.model, table), self.model, len(rows))

    def _features(self, rows: Rows) -> Any:
        """Rows (n, M) as a tree ensemble gets them: by the earlier steps of its pipeline; plain numbers as they are."""
        from condshap.trees.pipelines import split_pipeline, transform

        if self.takes_plain_rows:
            return self._ordered(rows)
        steps, _ = split_pipeline(self.model)
        table = self.table_format.write(self._ordered(rows))
        return _call(self.model, table, partial(transform, steps))

    def _picked(self, outputs: Outputs, rows: Rows) -> Outputs:
        _check_number(outputs.shape[1], self)
        if self.picked is not None:
            outputs = outputs[:, self.picked : self.picked + 1]
        outputs = np.ascontiguousarray(outputs)  # sums over samples are rounded by the layout, which libraries choose
        _check_range(outputs, self, rows)
        return outputs


_EXACT_DTYPES = {"float64", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
"""Of columns whose numbers reach the model as they are encoded; whole numbers are the same in both."""


def _are_exact(table: TableFormat) -> bool:
    return all(column.levels is None and str(column.dtype).lower() in _EXACT_DTYPES for column in table.columns)


def _copy_trees(trees: FlatTrees, device: str | None) -> DeviceTrees | None:
    """Trees on a device, None without one, or, with a warning, where they do not fit its layout."""
    if device is None:
        return None
    from condshap.trees.cuda import DeviceTrees

    try:
        return DeviceTrees.of(trees, device)
    except ModelError as error:
        warnings.warn(f"the model is evaluated on the CPU: {error}", CondShapWarning, stacklevel=2)
        return None


def _read_trees(predictor: Predictor, trial: Rows) -> FlatTrees | None:
    """Trees of a model, or of a pipeline's last step; None if there are none, or whether they are exact is not certain.

    The model's own outputs for a few trial rows (n, M) prove that the columns are the right ones. A forest of several jobs
    adds its trees in any order, so it is tried with one.
    """
    from condshap.trees import read_trees
    from condshap.trees.flat import predict_plainly
    from condshap.trees.pipelines import dense_numbers, split_pipeline, with_one_job

    _, last = split_pipeline(predictor.model)
    trees = read_trees(last, exact=True)
    if trees is None:
        return None
    numbers = dense_numbers(predictor._features(trial.copy()), last, trees.threshold.dtype)
    if numbers is None or numbers.shape != (len(trial), trees.n_features):
        return None
    expected = replace(predictor, model=with_one_job(predictor.model))._all_outputs(trial.copy())
    found = predict_plainly(trees, numbers)
    return trees if np.array_equal(found, expected) else None


def _evaluate_trees(
    trees: PackedTrees, features: Any, model: Model, there: DeviceTrees | None = None
) -> Outputs | None:
    """Outputs (n, O) of a model's trees for a table of n rows, None if that or some of its numbers are not for them."""
    from condshap.trees.flat import find_unfit
    from condshap.trees.pipelines import dense_numbers
    from condshap.trees.threads import count_threads

    numbers = dense_numbers(features, model, trees.dtype)
    if numbers is None or numbers.shape[1] != trees.n_features or find_unfit(numbers, trees.accepts) is not None:
        return None
    if there is not None:
        from condshap.trees.cuda import predict_from_host

        return predict_from_host(there, numbers)
    from condshap.trees.cpu import predict_cpu  # numba takes a while to load

    return predict_cpu(trees, numbers, count_threads(model))


def _model_format(model: Model, table: TableFormat) -> tuple[TableFormat, tuple[int, ...] | None]:
    """Table that the model wants, and the order of its columns if that is another one.

    Most models tell what they were trained on: names, so they want a table in that order, or none, so they want an array.
    """
    if _is_instance(model, "torch", "nn.Module"):
        return _array_for_torch(table), None
    trained = _trained_names(model)
    if trained is None:
        return _without_names(model, table), None
    if table.backend == "numpy":
        fits = len(trained) == len(table.columns)
        return (table.as_pandas(trained) if fits else table), None
    order = _match_order(model, trained, [str(name) for name in table.names])
    if _needs_pandas(model, table):
        table = table.as_pandas([str(name) for name in table.names])
    return (table, None) if order is None else (table.reordered(order), order)


def _needs_pandas(model: Model, table: TableFormat) -> bool:
    """LightGBM takes no labels from Polars or PyArrow; scikit-learn cannot select columns of PyArrow tables."""
    if _is_lightgbm(model):
        return table.backend != "pandas"
    return table.backend == "pyarrow" and _is_instance(model, "sklearn.base", "BaseEstimator")


def _trained_names(model: Model) -> list[str] | None:
    """Column names that the model was trained with, None if it does not tell or had none."""
    if _is_instance(model, "xgboost", "Booster"):
        names = model.feature_names
    elif _is_instance(model, "lightgbm", "Booster"):
        names = model.feature_name()
        names = None if all(re.fullmatch(r"Column_\d+", name) for name in names) else names
    else:
        names = getattr(model, "feature_names_in_", None)
    return [str(name) for name in names] if isinstance(names, Iterable) else None


def _match_order(model: Model, trained: list[str], names: list[str]) -> tuple[int, ...] | None:
    """Positions of the trained columns among `names`; None if the order is right, or for the model itself to judge."""
    if _is_lightgbm(model):  # it renames columns, and never looks at the names of what it predicts
        names = [re.sub(r"[\s\[\]{}\",:]", "_", name) for name in names]
        trained = [re.sub(r"[\s\[\]{}\",:]", "_", name) for name in trained]
        if set(names) != set(trained):
            raise ModelError(
                f"model {_describe(model)} must be explained with the columns that it was trained on, "
                f"{listing(trained)}, got {listing(names)}. Fit the explainer on these columns."
            )
    if trained == names or set(trained) != set(names):
        return None
    return tuple(names.index(name) for name in trained)


def _without_names(model: Model, table: TableFormat) -> TableFormat:
    """Array for a scikit-learn model that was trained on one, else the table as it is.

    With column names that are not text scikit-learn remembers none, so their absence means nothing.
    """
    knows_nothing = table.backend == "numpy" or not all(isinstance(name, str) for name in table.names)
    is_sklearn = _is_instance(model, "sklearn.base", "BaseEstimator") and hasattr(model, "n_features_in_")
    if knows_nothing or not (is_sklearn or _is_lightgbm(model) or _is_instance(model, "xgboost", "Booster")):
        return table
    return table.as_array() or table


def _array_for_torch(table: TableFormat) -> TableFormat:
    array = table.as_array()
    if array is None:
        text = [c.name for c in table.columns if c.levels and not isinstance(c.levels[0], (bool, int, float))]
        raise ModelError(
            f"a torch module needs numeric columns, got levels in {listing(text)}. "
            "Pass a function that encodes the levels and calls the module."
        )
    return array


def _call(model: Model, table: Any, part: Callable[[Any], Any] | None = None) -> Any:
    """Call the model, or a part of it, in the way that gives numbers: probabilities for classifiers, else predictions."""
    try:
        return (part or _caller(model))(table)
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(
            f"model {_describe(model)} must accept {_shape_of(table)}, but failed with {type(error).__name__}: {error}. "
            "Train it on the same columns as the explainer, or pass a callable that does the conversion."
        ) from error


def _caller(model: Model) -> Callable[[Any], Any]:
    if _is_instance(model, "torch", "nn.Module"):
        return lambda table: _call_torch(model, table)
    if _is_instance(model, "xgboost", "Booster"):
        return lambda table: _call_booster(model, table)
    if hasattr(model, "predict_proba") and not _is_a(model, "regressor"):
        return lambda table: model.predict_proba(table)
    if hasattr(model, "predict"):
        _refuse_bare_classifier(model)
        return lambda table: model.predict(table)
    if callable(model) and not isinstance(model, type):
        return lambda table: model(table)
    raise ModelError(
        f"model must have predict or predict_proba, or be callable, got {_describe(model)}. "
        "Pass a fitted model or a function of a table."
    )


def _refuse_bare_classifier(model: Model) -> None:
    """A class label is no number, even where it is written as one."""
    if _is_a(model, "classifier"):
        raise ModelError(
            f"classifier {_describe(model)} must have predict_proba, because class labels are not numbers to explain. "
            "Pass its decision_function as the model, or wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def _is_a(model: Model, kind: str) -> bool:
    """Ask scikit-learn whether an estimator is a "regressor" or a "classifier"."""
    base = sys.modules.get("sklearn.base")
    try:
        return base is not None and bool(getattr(base, f"is_{kind}")(model))
    except (AttributeError, TypeError, ValueError):  # objects that only look like estimators
        return False


def _is_lightgbm(model: Model) -> bool:
    return _is_instance(model, "lightgbm", "Booster") or _is_instance(model, "lightgbm", "LGBMModel")


def _is_instance(model: Model, package: str, path: str) -> bool:
    """Test for a class of an optional package without importing it."""
    found: Any = sys.modules.get(package)
    for name in path.split("."):
        found = getattr(found, name, None)
    return isinstance(found, type) and isinstance(model, found)


def _call_torch(model: Model, values: Any) -> Any:
    """Call a module on its own device, in its own precision and in evaluation mode; modes are put back afterwards."""
    import torch

    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    device = parameter.device if parameter is not None else "cpu"
    dtype = parameter.dtype if parameter is not None else torch.float32
    inputs = torch.as_tensor(values).to(device, dtype, copy=True)
    with _TORCH_LOCK:
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            with torch.inference_mode():
                return model(inputs)
        finally:
            for module in training:
                module.training = True


def _call_booster(model: Model, table: Any) -> Any:
    import xgboost

    return model.predict(xgboost.DMatrix(table, enable_categorical=True))


def _as_outputs(raw: Any, model: Model, n_rows: int) -> Outputs:
    values = _as_array(raw, model)
    if values.dtype.kind not in "fiub":
        example = listing(values.ravel()[:1].tolist())
        raise ModelError(
            f"model {_describe(model)} must return numbers, got {values.dtype} such as {example}. "
            "For a classifier explain its probabilities (predict_proba)."
        )
    if values.ndim == 0 and n_rows == 1:
        values = values.reshape(1)  # functions that squeeze what they return
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise ModelError(
            f"model {_describe(model)} must return one row of outputs per row, shape ({n_rows},) or ({n_rows}, outputs), "
            f"got shape {values.shape}. Pass a function that returns one of these."
        )
    return np.asarray(values, dtype=np.float64)


def _as_array(raw: Any, model: Model) -> np.ndarray[Any, Any]:
    """Whatever a model returns as an array: lists, series, tensors; objects become numbers if they are."""
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu()
        raw = raw.float() if raw.is_floating_point() and raw.element_size() < 4 else raw  # NumPy has no bfloat16
    try:
        is_masked = isinstance(raw, np.ma.MaskedArray) and raw.dtype.kind in "fiubO"
        values = as_floats(raw) if is_masked else np.asarray(raw)  # what a mask hides is NaN, which is refused
        is_text = values.dtype == object and any(isinstance(value, str) for value in values.ravel())
        return values.astype(np.float64) if values.dtype == object and not is_text else values
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(
            f"model {_describe(model)} must return an array of numbers, got {type(raw).__name__} that is none: {error}. "
            "Pass a function that returns one row of outputs per row."
        ) from None


def _check_number(n_outputs: int, predictor: Predictor) -> None:
    """Refuse another number of outputs than at the trial: nobody knows which of them are the explained ones."""
    if predictor.n_outputs not in (None, n_outputs):
        raise ModelError(
            f"model {_describe(predictor.model)} must return the same number of outputs at every call, got {n_outputs} "
            f"after {predictor.n_outputs} at its first. Make it return a column for every output, whatever the rows."
        )


def _check_range(outputs: Outputs, predictor: Predictor, rows: Rows) -> None:
    flat = outputs.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.dot(flat, flat) < LARGEST**2 or (np.abs(flat) <= LARGEST).all():  # the product needs no temporary
            return
    if np.isfinite(flat).all():
        raise ModelError(
            f"model {_describe(predictor.model)} must return numbers of at most {LARGEST:g} in size, because errors need "
            f"their fourth powers, got {np.abs(flat).max():.3g}. Explain its logarithm, or divide it by a large number."
        )
    bad = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    first = rows[bad[0]] if predictor.order is None else rows[bad[0]][list(predictor.order)]
    if np.isnan(first).any():
        hint = "That row has missing values: use a model that accepts them, or impute them before."
    else:
        hint = "Make it return a number for every combination of feature values, e.g. by clipping its input."
    raise ModelError(
        f"model {_describe(predictor.model)} must return finite numbers, got NaN or infinity for {len(bad)} of "
        f"{len(rows)} rows, at positions {listing(bad.tolist())}; the first is {predictor.table_format.describe(first)}. "
        f"{hint}"
    )


def _output_names(model: Model, n_outputs: int) -> tuple[str, ...]:
    classes = getattr(model, "classes_", None)
    if classes is not None and np.ndim(classes) == 1 and len(classes) == n_outputs > 1:
        return tuple(str(c) for c in classes)
    return ("output",) if n_outputs == 1 else tuple(f"output_{i}" for i in range(n_outputs))


def _pick_output(output: str | int, names: tuple[str, ...]) -> int:
    """Position of an output given by name, or by position (integers)."""
    found = find_named("output", output, names)
    if found is not None:
        return found
    raise OptionError(f"output must be a name among {listing(names)} or a position below {len(names)}, got {output!r}.")


def _describe(model: Model) -> str:
    name = getattr(model, "__name__", None)
    return f"'{name}'" if isinstance(name, str) else type(model).__name__


def _shape_of(table: Any) -> str:
    return f"a {type(table).__name__} of shape {tuple(table.shape)}"
