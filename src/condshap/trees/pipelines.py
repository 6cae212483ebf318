"""Pipeline of scikit-learn -> the steps before its model, and the model; table -> the numbers that the model compares."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.trees.threads import count_threads
from condshap.types import Model, Table


def split_pipeline(model: Model) -> tuple[tuple[Any, ...], Model]:
    """Steps that transform, in their order, and the last one; no steps and the model itself if it is no plain pipeline.

    A subclass may predict in another way, so only the class itself counts, and only with its own methods.
    """
    kind = type(model)
    is_pipeline = f"{kind.__module__}.{kind.__qualname__}" == "sklearn.pipeline.Pipeline"
    if not is_pipeline or {"predict", "predict_proba"} & set(vars(model)):
        return (), model
    *before, (_, last) = model.steps
    return tuple(step for _, step in before if step is not None and step != "passthrough"), last


def transform(steps: tuple[Any, ...], table: Table) -> Any:
    """What a pipeline gives its last step.

    Its own `pipeline[:-1].transform` asks whether the step before the last is fitted, and its `predict` does not.
    """
    for step in steps:
        table = step.transform(table)
    return table


def adds_in_any_order(model: Model) -> bool:
    """Whether a model, or the last step of a pipeline, is a forest whose jobs add trees in the order they finish them."""
    _, last = split_pipeline(model)
    return _is_forest(last) and count_threads(last) > 1


def with_one_job(model: Model) -> Model:
    """The model, or a shallow copy with one job if it is a forest, or a pipeline that ends in one."""
    _, last = split_pipeline(model)
    if not _is_forest(last):
        return model
    alone = copy(last)
    alone.n_jobs = 1
    if last is model:
        return alone
    pipeline = copy(model)
    pipeline.steps = [*model.steps[:-1], (model.steps[-1][0], alone)]
    return pipeline


def _is_forest(model: Model) -> bool:
    return type(model).__module__.startswith("sklearn.ensemble._forest")


def encoder_of(model: Model) -> Any:
    """What boosting with categories does to a table first: codes in place of categories, their columns to the front.

    None for all other models.
    """
    is_boosting = type(model).__module__.startswith("sklearn.ensemble._hist")
    return getattr(model, "_preprocessor", None) if is_boosting else None


def dense_numbers(table: Any, model: Model, dtype: npt.DTypeLike) -> npt.NDArray[Any] | None:
    """Rows (n, M) of an array or a pandas frame of numbers, None for any other table or one of other columns.

    A model that encodes categories takes any table that its encoder takes.
    """
    encoder = encoder_of(model)
    if encoder is not None:
        try:
            table = encoder.transform(table)
        except (KeyError, TypeError, ValueError):  # which the model will say in its own words
            return None
    is_array = type(table) is np.ndarray and table.ndim == 2
    dtypes = [table.dtype] if is_array else _dtypes_of_frame(table, model)
    if not dtypes or not all(isinstance(one, np.dtype) and one.kind in "fiub" for one in dtypes):
        return None
    with np.errstate(over="ignore"):
        return np.asarray(table, dtype=dtype)


def _dtypes_of_frame(table: Any, model: Model) -> list[Any]:
    """Types of a frame's columns; none if it is no frame, or if the model was trained on columns of other names."""
    import pandas as pd

    names = getattr(model, "feature_names_in_", None)
    is_frame = isinstance(table, pd.DataFrame) and (names is None or list(names) == list(table.columns))
    return list(table.dtypes) if is_frame else []
