"""Model -> flat trees, or None: finds the reader by the exact class, and trusts it only after a trial.

A subclass may predict in another way and a new version of a library may mean something else, so a reader's word is not
enough: the model's own predictions on rows that sit at, just below and just above its thresholds must be met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.trees import lightgbm_models, sklearn_models, xgboost_models
from condshap.trees.flat import FlatTrees, predict_plainly
from condshap.trees.pipelines import encoder_of, with_one_job
from condshap.types import Model

READERS: dict[str, Callable[[Any], FlatTrees | None]] = {
    **sklearn_models.READERS,
    **xgboost_models.READERS,
    **lightgbm_models.READERS,
}
N_TRIALS = 64
FOREIGN = (AttributeError, KeyError, TypeError, ValueError, IndexError)
"""What reading the insides of an unfitted model, or of an unknown version, may raise."""


def read_trees(model: Model, *, exact: bool = False) -> FlatTrees | None:
    """Read a fitted tree ensemble.

    Parameters
    ----------
    model : a model of scikit-learn (DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting and
        HistGradientBoosting, regressors and classifiers), XGBoost or LightGBM (scikit-learn interface)
    exact : whether the trial must be met to the last bit; forests that add their trees in any order, by several jobs, are
        tried with one

    Returns
    -------
    Its trees, or None if it is anything else, is not fitted, or uses what is not covered: several responses of a
    classifier, categories of XGBoost and LightGBM, linear leaves, other losses and boosters.
    """
    kind = type(model)
    reader = READERS.get(f"{kind.__module__}.{kind.__qualname__}")
    if reader is None or {"predict", "predict_proba"} & set(vars(model)):
        return None
    try:
        trees = reader(model)
        return trees if trees is not None and _agrees(trees, model, exact=exact) else None
    except FOREIGN:
        return None


def _agrees(trees: FlatTrees, model: Model, *, exact: bool) -> bool:
    """Whether the trees meet the model's own predictions on trial rows; XGBoost adds in float32."""
    rows, encoder, model = trial_rows(trees), encoder_of(model), with_one_job(model)
    table = _named(rows, model) if encoder is None else _labelled(rows, model, encoder)
    got = predict_plainly(trees, rows if encoder is None else encoder.transform(table))
    raw = np.asarray(model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table))
    expected = raw.reshape(got.shape)
    if exact:
        return bool((got == expected).all())
    tolerance = 1e-9 if expected.dtype == np.float64 else 1e-5
    return bool(np.allclose(got, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max()))


def trial_rows(trees: FlatTrees, n_rows: int = N_TRIALS) -> npt.NDArray[Any]:
    """Rows (n_rows, M) of numbers at, next below and next above thresholds, and NaN if the model takes it."""
    rng = np.random.default_rng(0)
    dtype = trees.threshold.dtype.type
    rows = rng.normal(size=(n_rows, trees.n_features)).astype(dtype)
    usable = ~trees.is_leaf & (np.abs(trees.threshold) < np.finfo(dtype).max)
    for j in range(trees.n_features):
        thresholds = trees.threshold[usable & (trees.feature == j)]
        if len(thresholds):
            rows[:, j] = rng.choice(thresholds, n_rows)
    below, above = np.nextafter(rows, dtype(-np.inf)), np.nextafter(rows, dtype(np.inf))
    rows = np.choose(rng.integers(0, 3, rows.shape), [below, rows, above])
    if trees.accepts != "finite":
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _named(rows: Any, model: Model) -> Any:
    """Rows as the table that the model was trained on: with column names if it knows some."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return np.asarray(rows)
    import pandas as pd

    return pd.DataFrame(rows).set_axis(list(names), axis=1)


def _labelled(rows: npt.NDArray[Any], model: Model, encoder: Any) -> Any:
    """Rows as such a table with categories: every one that the encoder knows, one that it does not know, and gaps."""
    import pandas as pd

    known = encoder.named_transformers_["encoder"].categories_
    labels = [_with_strangers(one) for one in known]
    rows = np.resize(rows, (max(len(rows), *map(len, labels)), rows.shape[1]))
    rng = np.random.default_rng(0)
    written = [rng.permutation(np.resize(one, len(rows))) for one in labels] + list(rows.T[len(labels) :])
    places = np.argsort(~model.is_categorical_, kind="stable")
    return _named(pd.DataFrame(dict(zip(places.tolist(), written, strict=True))).sort_index(axis=1), model)


def _with_strangers(categories: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Categories (k,), an unknown one and a missing value (k + 2,)."""
    if categories.dtype.kind in "fiu":
        numbers = categories.astype(np.float64)
        return np.append(numbers, [np.nanmax(numbers, initial=0) + 1, np.nan])
    unknown = "".join(map(str, categories)) + "?"  # longer than any
    return np.array([*categories, unknown, np.nan], dtype=object)
