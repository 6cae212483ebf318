"""Model -> the way to call it: which library it is from, how that one gives numbers, and what is said when a call fails."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from condshap.exceptions import ModelError
from condshap.types import Model

_TORCH_LOCK = threading.Lock()  # evaluation mode is a state of the module, which threads share


def call_model(model: Model, table: Any, part: Callable[[Any], Any] | None = None) -> Any:
    """Call the model, or a part of it that is given, with a table; a failure tells what the table was."""
    try:
        return (part or find_caller(model))(table)
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(
            f"model {describe_model(model)} must accept {_shape_of(table)}, but failed with {type(error).__name__}: "
            f"{error}. Train it on the same columns as the explainer, or pass a callable that does the conversion."
        ) from error


def find_caller(model: Model) -> Callable[[Any], Any]:
    """Find the function of a table that gives numbers: probabilities for classifiers, else predictions."""
    if is_instance(model, "torch", "nn.Module"):
        return lambda table: call_torch(model, table)
    if is_instance(model, "xgboost", "Booster"):
        return lambda table: _call_booster(model, table)
    if hasattr(model, "predict_proba") and not _is_a(model, "regressor"):
        return lambda table: model.predict_proba(table)
    if hasattr(model, "predict"):
        _refuse_bare_classifier(model)
        return lambda table: model.predict(table)
    if callable(model) and not isinstance(model, type):
        return lambda table: model(table)
    raise ModelError(
        f"model must have predict or predict_proba, or be callable, got {describe_model(model)}. "
        "Pass a fitted model or a function of a table."
    )


def _refuse_bare_classifier(model: Model) -> None:
    """A class label is no number, even where it is written as one."""
    if _is_a(model, "classifier"):
        raise ModelError(
            f"classifier {describe_model(model)} must have predict_proba, because class labels are not numbers to "
            "explain. Pass its decision_function as the model, or wrap it in sklearn.calibration.CalibratedClassifierCV."
        )


def is_regressor(model: Model) -> bool:
    """Tell whether scikit-learn takes a model for a regressor."""
    return _is_a(model, "regressor")


def _is_a(model: Model, kind: str) -> bool:
    """Ask scikit-learn whether an estimator is a "regressor" or a "classifier"."""
    base = sys.modules.get("sklearn.base")
    try:
        has_tags = hasattr(model, "__sklearn_tags__")  # or scikit-learn 1.7 warns before it says no
        return base is not None and has_tags and bool(getattr(base, f"is_{kind}")(model))
    except (AttributeError, TypeError, ValueError):  # objects that only look like estimators
        return False


def call_torch(model: Model, values: Any) -> Any:
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


def is_lightgbm(model: Model) -> bool:
    """Tell both interfaces of LightGBM."""
    return is_instance(model, "lightgbm", "Booster") or is_instance(model, "lightgbm", "LGBMModel")


def is_instance(model: Model, package: str, path: str) -> bool:
    """Test for a class of an optional package without importing it."""
    found: Any = sys.modules.get(package)
    for name in path.split("."):
        found = getattr(found, name, None)
    return isinstance(found, type) and isinstance(model, found)


def describe_model(model: Model) -> str:
    """Name of a function, in quotes, or of a model's class, for messages."""
    name = getattr(model, "__name__", None)
    return f"'{name}'" if isinstance(name, str) else type(model).__name__


def _shape_of(table: Any) -> str:
    return f"a {type(table).__name__} of shape {tuple(table.shape)}"
