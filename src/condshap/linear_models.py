"""Model -> whether its prediction is certainly linear in numbers, with a number of its own for every level.

Only classes whose formula is known count, and only themselves: a subclass may predict in another way. What they answer is
not looked at here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condshap.predict import Predictor
from condshap.schema import FeatureSchema
from condshap.trees.pipelines import split_pipeline
from condshap.types import Model

_SCALERS = {f"sklearn.preprocessing._data.{n}Scaler" for n in ("Standard", "MinMax", "MaxAbs", "Robust")}
_ENCODERS = {f"sklearn.preprocessing._encoders.{n}Encoder" for n in ("OneHot", "Ordinal")}
_NOTHING = (None, "passthrough", "drop")
_REGRESSORS = {  # of scikit-learn, whose prediction is X @ coef_ + intercept_
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "Lars", "LarsCV",
    "ElasticNet", "ElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV",
    "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "BayesianRidge", "ARDRegression", "HuberRegressor",
    "QuantileRegressor", "TheilSenRegressor", "SGDRegressor", "PassiveAggressiveRegressor", "LinearSVR",
}  # fmt: skip


def is_certainly_linear(predictor: Predictor, schema: FeatureSchema) -> bool:
    """Tell a linear regressor, alone or behind scalers and encoders of levels in a pipeline."""
    steps, last = split_pipeline(predictor.model)
    order = range(len(schema)) if predictor.order is None else predictor.order
    holds_levels = [schema.features[j].levels is not None for j in order]
    return _is_linear_regressor(last) and _keep_linear(steps, holds_levels)


def _is_linear_regressor(model: Model) -> bool:
    """One of scikit-learn's linear regressors, or a single linear layer of torch."""
    if {"predict", "forward"} & set(vars(model) if hasattr(model, "__dict__") else ()):
        return False
    if _name_of(model) == "torch.nn.modules.linear.Linear":
        return True
    kind = type(model)
    return kind.__module__.startswith(("sklearn.linear_model.", "sklearn.svm.")) and kind.__name__ in _REGRESSORS


def _keep_linear(steps: Sequence[Any], holds_levels: list[bool] | None) -> bool:
    """Tell steps that one after the other keep sums over features; `holds_levels` is None where columns were mixed."""
    columns = holds_levels
    for step in steps:
        if not _keeps_linear(step, columns):
            return False
        columns = columns if _name_of(step) in _SCALERS else None
    return True


def _keeps_linear(step: Any, holds_levels: list[bool] | None) -> bool:
    """Tell a step that scales numbers, or gives numbers to levels, one feature at a time."""
    name = _name_of(step)
    if name in _SCALERS:
        return not getattr(step, "clip", False)
    if name == "sklearn.preprocessing._function_transformer.FunctionTransformer":
        return step.func is None  # what a ColumnTransformer makes of "passthrough"
    if name in _ENCODERS:
        return holds_levels is not None and all(holds_levels)
    if name == "sklearn.pipeline.Pipeline":
        inner = [one for _, one in step.steps if one not in _NOTHING]
        return _keep_linear(inner, holds_levels)
    if name == "sklearn.compose._column_transformer.ColumnTransformer":
        return _columns_keep_linear(step, holds_levels)
    return False


def _columns_keep_linear(transformer: Any, holds_levels: list[bool] | None) -> bool:
    """Tell a ColumnTransformer all of whose transformers keep sums over features."""
    positions = getattr(transformer, "_transformer_to_input_indices", None)
    if positions is None or holds_levels is None:
        return False
    return all(
        step in _NOTHING or _keeps_linear(step, [holds_levels[i] for i in positions[name]])
        for name, step, _ in transformer.transformers_
        if len(positions.get(name, ()))
    )


def _name_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
