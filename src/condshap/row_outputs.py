"""Training rows or rows to explain -> f(x): by the model, or over draws of what is missing where the model refuses gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from condshap.approaches.base import ConditionalSampler
from condshap.combination import Part
from condshap.exceptions import OptionError
from condshap.options import as_floats
from condshap.predict import Predictor
from condshap.seeding import row_keys
from condshap.types import Floats, Indices, Masks, Outputs, Rows
from condshap.values import draw, evaluate

_FILLS = 256  # draws of missing values behind the prediction of a row that the model itself refuses


def predict_complete(predictor: Predictor, rows: Rows, memory: int) -> Outputs:
    """Predict those of rows (n, M) that have no gaps, for which nothing need be learned; NaN for the others.

    Parameters
    ----------
    memory : budget in bytes, which decides on the batches
    """
    outputs = np.full((len(rows), len(predictor.output_names)), np.nan)
    return _predict_some(predictor, rows, ~np.isnan(rows).any(axis=1), outputs, memory)


def predict_gaps(
    predictor: Predictor, rows: Rows, outputs: Outputs, memory: int, filler: ConditionalSampler | None, seed: int
) -> Outputs:
    """Outputs (n, O) of rows (n, M) where `predict_complete` left NaN, and its own elsewhere.

    Where an approach draws missing values because the model refuses them, f(x) is the mean over such draws of `filler`.
    """
    outputs, gaps = outputs.copy(), np.isnan(outputs).any(axis=1)
    if filler is None:
        return _predict_some(predictor, rows, gaps, outputs, memory)
    everything = np.ones((1, rows.shape[1]), dtype=bool)
    for some in _pieces(gaps, max(1, _at_once(rows, memory) // _FILLS)):
        batch = draw(filler, rows[some], everything, _FILLS, row_keys(rows[some], predictor.units), seed)
        outputs[some] = evaluate([batch], predictor)[0].means[0]
    return outputs


def fillers_of(parts: Sequence[Part]) -> list[Any]:
    """Approaches that draw missing values, because the model refuses them."""
    return [part.approach for part in parts if getattr(part.approach, "fills_missing_", False)]


def _predict_some(predictor: Predictor, rows: Rows, chosen: Masks, outputs: Outputs, memory: int) -> Outputs:
    """Write predictions for the chosen (n,) of rows (n, M) into outputs (n, O)."""
    for some in _pieces(chosen, _at_once(rows, memory)):
        outputs[some] = predictor(rows[some])
    return outputs


def _at_once(rows: Rows, memory: int) -> int:
    return max(1, memory // (40 * rows.shape[1] + 64))


def _pieces(chosen: Masks, at_once: int) -> Iterator[Indices]:
    """Positions where `chosen` (n,) is True, at most `at_once` at a time."""
    positions = np.flatnonzero(chosen)
    for start in range(0, len(positions), at_once):
        yield positions[start : start + at_once]


def without_gaps(rows: Rows, n: int = 8) -> Rows:
    """Some of the rows (N, M), evenly spaced, gaps filled with another row's value."""
    some = rows[:: max(1, len(rows) // n)][:n].copy()
    for j in np.flatnonzero(np.isnan(some).any(axis=0)):
        present = rows[~np.isnan(rows[:, j]), j]
        some[np.isnan(some[:, j]), j] = present[0] if len(present) else np.nan
    return some


def check_base_value(base_value: Any, n_outputs: int) -> Floats:
    """Base value as it was given, one for all outputs or one for each, as (O,)."""
    try:
        given = np.atleast_1d(as_floats(base_value))
    except (TypeError, ValueError):
        given = np.array([np.nan])
    if given.shape not in {(1,), (n_outputs,)} or not np.isfinite(given).all():
        several = f", or {n_outputs}, one per output" if n_outputs > 1 else ""
        raise OptionError(f"base_value must be one finite number{several}, got {base_value!r}.")
    return np.broadcast_to(given, (n_outputs,)).copy()
