"""Predictor, rows -> predictions in batches, also of rows with gaps that the model refuses; the base value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from condshap.exceptions import ModelError, OptionError
from condshap.models.predictor import Predictor
from condshap.options import floats_or_nan
from condshap.runtime.memory import rows_that_fit
from condshap.runtime.progress import progress_line
from condshap.seeding import row_keys
from condshap.types import LARGEST, SMALLEST, Floats, Indices, Masks, Outputs, Rows
from condshap.values.assignments import Part
from condshap.values.engine import Request, ValueEngine
from condshap.values.table import Settings

_ROWS_AT_ONCE = 2**17  # of many training rows: Ctrl-C waits for the model to return
_FILLS = 256  # draws of missing values behind the prediction of a row that the model itself refuses


def predict_rows(
    predictor: Predictor,
    parts: Sequence[Part],
    rows: Rows,
    settings: Settings,
    *,
    seed: int,
    known: Outputs | None = None,
) -> Outputs:
    """Predict rows (n, M) in batches that fit the memory budget; (n, O).

    Where an approach draws missing values because the model refuses them, f(x) is the mean over such draws.

    Parameters
    ----------
    known : (n, O) what `predict_early` has found before training
    """
    outputs = predict_early(predictor, rows, settings) if known is None else known.copy()
    gaps = np.asarray(np.isnan(outputs).any(axis=1))
    fillers = fillers_of(parts)
    if not fillers:
        outputs[gaps] = predict_complete(predictor, rows[gaps], settings)
        return outputs
    everything = np.ones((1, rows.shape[1]), dtype=bool)
    pieces = list(_pieces(gaps, max(1, rows_that_fit(settings.memory_budget, rows.shape[1]) // _FILLS)))
    requests = [
        [Request(fillers[0], rows[some], row_keys(rows[some], predictor.units), everything, _FILLS, seed)]
        for some in pieces
    ]
    engine = ValueEngine(predictor, replace(settings, progress=False, n_jobs=1))
    for some, (found,) in zip(pieces, engine.run(requests), strict=True):
        outputs[some] = found.means[0]
    return outputs


def predict_early(predictor: Predictor, rows: Rows, settings: Settings) -> Outputs:
    """Predict those of rows (n, M) that have no gaps, for which nothing need be learned; NaN for the others; (n, O)."""
    outputs = np.full((len(rows), len(predictor.output_names)), np.nan)
    complete = np.logical_not(np.isnan(rows).any(axis=1))
    outputs[complete] = predict_complete(predictor, rows[complete], settings)
    return outputs


def predict_complete(predictor: Predictor, rows: Rows, settings: Settings) -> Outputs:
    """Predict rows (n, M) that the model takes as they are, in batches that fit the memory budget; (n, O)."""
    outputs = np.empty((len(rows), len(predictor.output_names)))
    at_once = min(_ROWS_AT_ONCE, rows_that_fit(settings.memory_budget, rows.shape[1]))
    show = settings.progress if len(rows) > at_once else False
    with progress_line("predicting", show=show, total=len(rows)) as line:
        for some in _pieces(np.ones(len(rows), dtype=bool), at_once):
            outputs[some] = predictor(rows[some])
            line.update(len(some))
    return outputs


def fillers_of(parts: Sequence[Part]) -> list[Any]:
    """Approaches that draw missing values, because the model refuses them."""
    return [part.approach for part in parts if part.can.fills_missing]


def given_base(base_value: Any, n_outputs: int) -> Floats:
    """Check a base value that the user gives: one number, or one per output; (O,)."""
    given = np.atleast_1d(floats_or_nan(base_value))
    if given.shape not in {(1,), (n_outputs,)} or not (np.abs(given) <= LARGEST).all():
        several = f", or {n_outputs}, one per output" if n_outputs > 1 else ""
        raise OptionError(
            f"base_value must be one finite number{several}, at most {LARGEST:g} in absolute value, got {base_value!r}."
        )
    return np.broadcast_to(given, (n_outputs,)).copy()


def check_scale(*outputs: Outputs) -> None:
    """Refuse predictions (n, O) and base values (O,) so near zero that powers of all of them, and errors, vanish."""
    largest = max(float(np.abs(some).max(initial=0.0, where=~np.isnan(some))) for some in outputs)
    if 0 < largest < SMALLEST:
        raise ModelError(
            f"the model must return numbers of at least {SMALLEST:g} in absolute value for some rows, because standard "
            f"errors need their fourth powers, got at most {largest:.3g}. Multiply its output by a large number, or explain "
            "its logarithm."
        )


def without_gaps(rows: Rows, n: int = 8) -> Rows:
    """Some of the rows (N, M), evenly spaced, gaps filled with another row's value."""
    some = rows[:: max(1, len(rows) // n)][:n].copy()
    for j in np.flatnonzero(np.isnan(some).any(axis=0)):
        present = rows[~np.isnan(rows[:, j]), j]
        some[np.isnan(some[:, j]), j] = present[0] if len(present) else np.nan
    return some


def _pieces(chosen: Masks, at_once: int) -> Iterator[Indices]:
    """Positions where `chosen` (n,) is True, at most `at_once` at a time."""
    positions = np.flatnonzero(chosen)
    for start in range(0, len(positions), at_once):
        yield positions[start : start + at_once]
