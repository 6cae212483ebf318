"""What a model returns -> float64 outputs (n, O) that can be explained: their form, number, range and names."""

from __future__ import annotations

from typing import Any

import numpy as np

from condshap.exceptions import ModelError, OptionError, listing
from condshap.models.calling import describe_model
from condshap.options import as_floats, find_named
from condshap.tables.formats import TableFormat
from condshap.types import LARGEST, Model, Outputs, Rows


def as_outputs(raw: Any, model: Model, n_rows: int) -> Outputs:
    """Whatever a model returns for n rows as float64 (n, outputs); anything but numbers, a row of them each, is refused."""
    values = _as_array(raw, model)
    if values.dtype.kind not in "fiub":
        example = listing(values.ravel()[:1].tolist())
        raise ModelError(
            f"model {describe_model(model)} must return numbers, got {values.dtype} such as {example}. "
            "For a classifier explain its probabilities (predict_proba)."
        )
    if values.ndim == 0 and n_rows == 1:
        values = values.reshape(1)  # functions that squeeze what they return
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise ModelError(
            f"model {describe_model(model)} must return outputs for every row, in shape ({n_rows},) or "
            f"({n_rows}, outputs), got shape {values.shape}. Pass a function that returns one of these."
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
            f"model {describe_model(model)} must return an array of numbers, got {type(raw).__name__} that is not one: "
            f"{error}. Pass a function that returns one row of outputs per row."
        ) from None


def name_outputs(model: Model, n_outputs: int) -> tuple[str, ...]:
    """Names of the classes where every output is one, else numbered names."""
    classes = getattr(model, "classes_", None)
    if classes is not None and np.ndim(classes) == 1 and len(classes) == n_outputs > 1:
        return tuple(str(c) for c in classes)
    return ("output",) if n_outputs == 1 else tuple(f"output_{i}" for i in range(n_outputs))


def find_output(output: str | int, names: tuple[str, ...]) -> int:
    """Position of an output given by name, or by position (integers)."""
    found = find_named("output", output, names)
    if found is not None:
        return found
    raise OptionError(f"output must be a name among {listing(names)} or a position below {len(names)}, got {output!r}.")


def check_count(n_outputs: int, expected: int | None, model: Model) -> None:
    """Refuse another number of outputs than at the trial: nobody knows which of them are the explained ones."""
    if expected not in (None, n_outputs):
        raise ModelError(
            f"model {describe_model(model)} must return the same number of outputs in every call, got {n_outputs} "
            f"after {expected} in the first. Make it return one column per output, whatever the rows."
        )


def are_in_range(outputs: Outputs) -> bool:
    """Whether all outputs (n, O) are finite and small enough for their fourth powers to be so too."""
    flat = outputs.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(
            np.dot(flat, flat) < LARGEST**2 or (np.abs(flat) <= LARGEST).all()
        )  # the product needs no temporary


def range_error(outputs: Outputs, rows: Rows, model: Model, table_format: TableFormat) -> ModelError:
    """Say which outputs (n, O) are out of range, and for which of the rows (n, M), in the model's order of columns."""
    if np.isfinite(outputs).all():
        return ModelError(
            f"model {describe_model(model)} must return numbers of at most {LARGEST:g} in absolute value, because "
            f"standard errors need their fourth powers, got {np.abs(outputs).max():.3g}. Explain its logarithm, or "
            "divide it by a large number."
        )
    bad = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
    first = rows[bad[0]]
    if np.isnan(first).any():
        hint = "That row has missing values: use a model that accepts them, or impute them before."
    else:
        hint = "Make it return a number for every combination of feature values, e.g. by clipping its input."
    return ModelError(
        f"model {describe_model(model)} must return finite numbers, got NaN or infinity for {len(bad)} of {len(rows)} "
        f"rows, at positions {listing(bad.tolist())}; the first is {table_format.describe(first)}. {hint}"
    )
