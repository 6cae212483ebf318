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
from condshap.trees.pipelines import with_one_job
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
    classifier, categorical splits, linear leaves, other losses and boosters.
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
    rows, model = trial_rows(trees), with_one_job(model)
    table = _named(rows, model)
    expected = np.asarray(model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table))
    got = predict_plainly(trees, rows)
    if exact:
        return bool((got == expected.reshape(len(rows), -1)).all())
    tolerance = 1e-9 if expected.dtype == np.float64 else 1e-5
    scale = tolerance * np.abs(expected).max()
    return bool(np.allclose(got, expected.reshape(len(rows), -1), rtol=tolerance, atol=scale))


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


def _named(rows: npt.NDArray[Any], model: Model) -> Any:
    """Rows as the table that the model was trained on: with column names if it knows some."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(names))
