"""Model -> whether its prediction is certainly linear in numbers, or at least a sum of one function per feature.

Only classes whose formula is known count, and only themselves: a subclass may predict in another way. What they answer is
not looked at here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema
from condshap.trees import PackedTrees
from condshap.trees.pipelines import encoder_of, split_pipeline
from condshap.types import Model

_SCALERS = {f"sklearn.preprocessing._data.{n}Scaler" for n in ("Standard", "MinMax", "MaxAbs", "Robust")}
_ENCODERS = {f"sklearn.preprocessing._encoders.{n}Encoder" for n in ("OneHot", "Ordinal")}
_CURVES = {  # one or several columns of every column, whatever the others
    "sklearn.preprocessing._polynomial.SplineTransformer", "sklearn.preprocessing._discretization.KBinsDiscretizer",
    "sklearn.preprocessing._data.PowerTransformer", "sklearn.impute._base.SimpleImputer",
}  # fmt: skip
_INCREASING = {"sklearn.preprocessing._data.PowerTransformer", "sklearn.impute._base.SimpleImputer"}  # column by column
_FUNCTION = "sklearn.preprocessing._function_transformer.FunctionTransformer"
_NOTHING = (None, "passthrough", "drop")
_REGRESSORS = {  # of scikit-learn, whose prediction is X @ coef_ + intercept_
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "Lars", "LarsCV",
    "ElasticNet", "ElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV",
    "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "BayesianRidge", "ARDRegression", "HuberRegressor",
    "QuantileRegressor", "TheilSenRegressor", "SGDRegressor", "PassiveAggressiveRegressor", "LinearSVR",
}  # fmt: skip


def is_certainly_linear(predictor: Predictor, schema: FeatureSchema) -> bool:
    """Whether the model is a linear regressor, alone or behind scalers and encoders of levels in a pipeline."""
    steps, last = split_pipeline(predictor.model)
    return _is_linear_regressor(last) and _steps_keep_sums(steps, _hold_levels(predictor, schema), curves=False)


def is_certainly_additive(predictor: Predictor, schema: FeatureSchema) -> bool:
    """Whether it is one behind splines, bins and power transforms, or consists of trees that use one feature each.

    Trees count only where their thresholds can be traced back to the features, so that none of them is missed.
    """
    steps, last = _steps_before_trees(predictor.model)
    has_such_trees = _has_trees_of_one_feature(predictor.trees) and traced_columns(predictor, schema) is not None
    sums = _is_linear_regressor(last) or has_such_trees
    return sums and _steps_keep_sums(steps, _hold_levels(predictor, schema), curves=True)


def traced_columns(predictor: Predictor, schema: FeatureSchema) -> list[int] | None:
    """Numeric feature of which each column of a pipeline's last step is an increasing function.

    Columns that are made of levels have -1. None if the steps may do anything else.
    """
    order = range(len(schema)) if predictor.order is None else predictor.order
    columns = [-1 if schema.features[j].levels is not None else int(j) for j in order]
    steps, _ = _steps_before_trees(predictor.model)
    traced = _trace_steps(steps, columns)
    fits = predictor.trees is None or (traced is not None and len(traced) == predictor.trees.n_features)
    return traced if fits else None


def _steps_before_trees(model: Model) -> tuple[tuple[Any, ...], Model]:
    """Steps of a pipeline and its last one; where that encodes categories, its encoder is a step as well."""
    steps, last = split_pipeline(model)
    encoder = encoder_of(last)
    return (steps if encoder is None else (*steps, encoder)), last


def _trace_steps(steps: Sequence[Any], columns: list[int]) -> list[int] | None:
    traced: list[int] | None = columns
    for step in steps:
        traced = None if traced is None else _trace_step(step, traced)
    return traced


def _trace_step(step: Any, columns: list[int]) -> list[int] | None:
    """Columns after one step, if it keeps numbers in their places and order, or makes columns of levels only."""
    name = _class_of(step)
    if name in _SCALERS | _INCREASING or _changes_nothing(step):
        return columns
    if name in _ENCODERS and all(j < 0 for j in columns):
        return [-1] * len(step.get_feature_names_out())
    if name == "sklearn.pipeline.Pipeline":
        return _trace_steps([one for _, one in step.steps if one not in _NOTHING], columns)
    if name == "sklearn.compose._column_transformer.ColumnTransformer":
        return _trace_transformer(step, columns)
    return None


def _trace_transformer(transformer: Any, columns: list[int]) -> list[int] | None:
    """Columns after a ColumnTransformer, all of whose transformers can be traced."""
    if transformer.n_features_in_ != len(columns):  # it finds its columns among others by their names
        return None
    positions, places = transformer._transformer_to_input_indices, transformer.output_indices_
    found: dict[int, int] = {}
    for name, step, _ in transformer.transformers_:
        given = [columns[i] for i in positions.get(name, ())]
        if step == "drop" or not given:
            continue
        traced = given if step == "passthrough" else _trace_step(step, given)
        where = range(places[name].start, places[name].stop)
        if traced is None or len(traced) != len(where):
            return None
        found |= dict(zip(where, traced, strict=True))
    return [found[i] for i in range(len(found))]


def _hold_levels(predictor: Predictor, schema: FeatureSchema) -> list[bool]:
    """Whether each of the model's columns holds levels."""
    order = range(len(schema)) if predictor.order is None else predictor.order
    return [schema.features[j].levels is not None for j in order]


def _has_trees_of_one_feature(trees: PackedTrees | None) -> bool:
    """Whether these are trees that are summed or averaged, each of which looks at one feature only."""
    if trees is None or trees.link != "identity":
        return False
    feature = trees.nodes["feature"]
    for child in (trees.nodes["left"], trees.nodes["right"]):
        inner = child >= 0
        if (feature[child[inner]] != feature[inner]).any():
            return False
    return True


def _is_linear_regressor(model: Model) -> bool:
    """Whether the model is one of scikit-learn's linear regressors, or a single linear layer of torch."""
    if {"predict", "forward"} & set(vars(model) if hasattr(model, "__dict__") else ()):
        return False
    if _class_of(model) == "torch.nn.modules.linear.Linear":
        return True
    kind = type(model)
    return kind.__module__.startswith(("sklearn.linear_model.", "sklearn.svm.")) and kind.__name__ in _REGRESSORS


def _steps_keep_sums(steps: Sequence[Any], holds_levels: list[bool] | None, *, curves: bool) -> bool:
    """Whether steps, one after the other, keep sums over features; `holds_levels` is None where columns were mixed."""
    columns = holds_levels
    for step in steps:
        if not _step_keeps_sums(step, columns, curves=curves):
            return False
        columns = columns if _class_of(step) in _SCALERS else None
    return True


def _step_keeps_sums(step: Any, holds_levels: list[bool] | None, *, curves: bool) -> bool:
    """Whether a step scales numbers, or gives numbers to levels, one feature at a time; with `curves` it may bend them."""
    name = _class_of(step)
    if name in _SCALERS:
        return curves or not getattr(step, "clip", False)
    if name in _CURVES:
        return curves
    if name == _FUNCTION:
        return _changes_nothing(step)
    if name in _ENCODERS:
        return holds_levels is not None and all(holds_levels)
    if name == "sklearn.pipeline.Pipeline":
        inner = [one for _, one in step.steps if one not in _NOTHING]
        return _steps_keep_sums(inner, holds_levels, curves=curves)
    if name == "sklearn.compose._column_transformer.ColumnTransformer":
        return _transformer_keeps_sums(step, holds_levels, curves=curves)
    return False


def _transformer_keeps_sums(transformer: Any, holds_levels: list[bool] | None, *, curves: bool) -> bool:
    """Whether all transformers of a ColumnTransformer keep sums over features."""
    positions = getattr(transformer, "_transformer_to_input_indices", None)
    if positions is None or holds_levels is None or transformer.n_features_in_ != len(holds_levels):
        return False
    return all(
        step in _NOTHING or _step_keeps_sums(step, [holds_levels[i] for i in positions[name]], curves=curves)
        for name, step, _ in transformer.transformers_
        if len(positions.get(name, ()))
    )


def _changes_nothing(step: Any) -> bool:
    """Whether a step is what a ColumnTransformer makes of "passthrough", or a boosted model of its numbers: a check."""
    from sklearn.utils.validation import check_array

    return _class_of(step) == _FUNCTION and (step.func is None or getattr(step.func, "func", None) is check_array)


def _class_of(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
