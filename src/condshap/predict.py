"""Any model -> predictor: encoded rows (n, M) to outputs (n, O).

The model gets tables of the type, column order, dtypes and categories that it was trained with. What it answers is
checked at every call, because a NaN that slips through here becomes a wrong explanation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.exceptions import ModelError, OptionError, listing
from condshap.schema import FeatureSchema
from condshap.tables import TableFormat
from condshap.types import Model, Outputs, Rows


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
    """

    model: Model
    table_format: TableFormat
    order: tuple[int, ...] | None
    output_names: tuple[str, ...]
    picked: int | None

    @classmethod
    def of(cls, model: Model, schema: FeatureSchema, X: Rows, output: str | int | None = None) -> Predictor:
        """Find out how to call `model` by a trial on the first rows of `X`."""
        table_format, order = _model_format(model, schema)
        trial = cls(model, table_format, order, (), None)
        n_outputs = trial(X[:2]).shape[1]
        names = _output_names(model, n_outputs)
        if output is None:
            return cls(model, table_format, order, names, None)
        picked = _pick_output(output, names)
        return cls(model, table_format, order, (names[picked],), picked)

    def __call__(self, rows: Rows) -> Outputs:
        """Predict encoded rows (n, M); returns finite float64 outputs (n, O)."""
        ordered = rows if self.order is None else rows[:, self.order]
        raw = _call(self.model, self.table_format.write(ordered))
        outputs = _as_outputs(raw, self.model, len(rows))
        if self.picked is not None:
            outputs = outputs[:, self.picked : self.picked + 1]
        _check_finite(outputs, self.model, self.table_format, ordered)
        return outputs


def _model_format(model: Model, schema: FeatureSchema) -> tuple[TableFormat, tuple[int, ...] | None]:
    """Table format in the model's own column order, if it tells one; arrays for a model that was trained on arrays."""
    table_format = schema.table_format
    trained = getattr(model, "feature_names_in_", None)
    if trained is None or table_format.backend == "numpy":
        return table_format, None
    names = [column.name for column in table_format.columns]
    if list(trained) == names or set(map(str, trained)) != set(map(str, names)):
        return table_format, None
    reordered, order = table_format.reordered(list(trained))
    return reordered, tuple(order)


def _call(model: Model, table: Any) -> Any:
    """Call the model in the way that gives numbers: probabilities for classifiers, predictions otherwise."""
    try:
        return _caller(model)(table)
    except (ModelError, KeyboardInterrupt, MemoryError):
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
    if hasattr(model, "predict_proba") and not _is_regressor(model):
        return lambda table: model.predict_proba(table)
    if hasattr(model, "predict"):
        return lambda table: model.predict(table)
    if callable(model):
        return lambda table: model(table)
    raise ModelError(
        f"model must have predict or predict_proba, or be callable, got {_describe(model)}. Pass a function of a table."
    )


def _is_regressor(model: Model) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except AttributeError:  # objects that only look like estimators
        return False


def _is_instance(model: Model, package: str, path: str) -> bool:
    """Test for a class of an optional package without importing it."""
    found: Any = sys.modules.get(package)
    for name in path.split("."):
        found = getattr(found, name, None)
    return isinstance(found, type) and isinstance(model, found)


def _call_torch(model: Model, table: Any) -> Any:
    import torch

    values = np.asarray(table)
    if values.dtype.kind not in "fiub":
        raise ModelError(
            f"a torch module needs numeric columns, got {values.dtype} from a table with levels. "
            "Pass a function that encodes the levels and calls the module."
        )
    parameter = next(model.parameters(), None)
    device = parameter.device if parameter is not None else "cpu"
    dtype = parameter.dtype if parameter is not None else torch.float32
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            return model(torch.as_tensor(values, dtype=dtype, device=device)).cpu().numpy()
    finally:
        model.train(was_training)


def _call_booster(model: Model, table: Any) -> Any:
    import xgboost

    return model.predict(xgboost.DMatrix(table, enable_categorical=True))


def _as_outputs(raw: Any, model: Model, n_rows: int) -> Outputs:
    values = np.asarray(raw)
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"model {_describe(model)} must return numbers, got {values.dtype} such as {values.ravel()[:1].tolist()}. "
                "For a classifier explain its probabilities (predict_proba)."
            ) from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise ModelError(
            f"model {_describe(model)} must return one row of outputs per row, shape ({n_rows},) or ({n_rows}, outputs), "
            f"got shape {np.shape(raw)}."
        )
    return np.asarray(values, dtype=np.float64)


def _check_finite(outputs: Outputs, model: Model, table_format: TableFormat, rows: Rows) -> None:
    if np.isfinite(outputs.sum()) or np.isfinite(outputs).all():  # a finite sum proves it without a temporary
        return
    bad = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    first = table_format.write(rows[bad[:1]])
    gaps = " The row has missing values: use a model that accepts them." if np.isnan(rows[bad[0]]).any() else ""
    raise ModelError(
        f"model {_describe(model)} must return finite numbers, got NaN or infinity for {len(bad)} of {len(rows)} rows, "
        f"positions {listing(bad.tolist())}. The first of them is\n{first}\n{gaps}".rstrip()
    )


def _output_names(model: Model, n_outputs: int) -> tuple[str, ...]:
    classes = getattr(model, "classes_", None)
    if classes is not None and np.ndim(classes) == 1 and len(classes) == n_outputs > 1:
        return tuple(str(c) for c in classes)
    return ("output",) if n_outputs == 1 else tuple(f"output_{i}" for i in range(n_outputs))


def _pick_output(output: str | int, names: tuple[str, ...]) -> int:
    if isinstance(output, (int, np.integer)) and not isinstance(output, bool) and -len(names) <= output < len(names):
        return int(output) % len(names)
    if str(output) in names and not isinstance(output, (int, np.integer)):
        return names.index(str(output))
    raise OptionError(f"output must be a name among {listing(names)} or a position below {len(names)}, got {output!r}.")


def _describe(model: Model) -> str:
    name = getattr(model, "__name__", None)
    return f"'{name}'" if isinstance(name, str) else type(model).__name__


def _shape_of(table: Any) -> str:
    return f"a {type(table).__name__} of shape {tuple(table.shape)}"
