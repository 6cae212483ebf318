"""Additive function that was read, rows, predictions -> whether its sums are the model's own predictions, row by row.

A reading can miss what lies between the values that the model was asked for. So it is held against the model wherever the
model's predictions are known anyway: for all training rows at fit, and for every row that is explained.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from condshap.exceptions import listing
from condshap.numerics.additive import AdditiveFunction
from condshap.runtime.announcing import announce
from condshap.types import Floats, Masks, Outputs, Rows

_TOLERANCE = 1e-7  # of the spread of the predictions, and of how far the terms of a row are from those of another
_ROUNDING = 64  # units in the last place of the largest prediction


def rounding_distance(found: Outputs, expected: Outputs) -> float:
    """Largest difference of outputs (n, O) in units of what rounding explains."""
    return float((np.abs(found - expected) / rounding_limit(expected)).max())


def rounding_limit(expected: Outputs, share: float = _TOLERANCE, units: int = _ROUNDING) -> Floats:
    """Largest differences (O,) that rounding explains: a share of the spread and some units, larger for float32 models."""
    with np.errstate(over="ignore"):
        is_single = bool((expected.astype(np.float32) == expected).all())
    unit = np.finfo(np.float32 if is_single else np.float64).eps
    limit = share * np.ptp(expected, axis=0) + units * unit * np.abs(expected).max(axis=0)
    return np.asarray(np.maximum(limit, np.finfo(np.float64).tiny))


def is_met(function: AdditiveFunction, rows: Rows, predictions: Outputs, limit: Floats, base: Rows) -> Masks:
    """Which rows (n, M) have predictions (n, O) that the function meets, (n,); none where it is NaN.

    Parameters
    ----------
    limit : (O,) what is allowed near the training rows
    base : (M,) a training row; far away from it slopes carry their own rounding further, so more is allowed there
    """
    apart = np.abs(function(rows) - predictions)
    met = np.asarray((apart <= limit).all(axis=1))
    missed = np.flatnonzero(~met)
    if len(missed):
        moved = np.abs(function.terms(rows[missed]) - function.terms(base[None])).sum(axis=1)
        met[missed] = (apart[missed] <= limit + _TOLERANCE * moved).all(axis=1)
    return met


class TrainingProof:
    """Complete training rows (n, M) and what the model predicts for them, which is asked for once, if at all.

    Parameters
    ----------
    predict : rows (n, M) -> outputs (n, O)
    rows : (N, M) training rows
    examples : (k, M) some of them without gaps, the first one the base of the reading; the proof if all others have gaps
    """

    def __init__(self, predict: Callable[[Rows], Outputs], rows: Rows, examples: Rows) -> None:
        complete = ~np.isnan(rows).any(axis=1)
        self._predict, self._base = predict, examples[0]
        self.covers_all = bool(complete.all())
        self.rows = rows if self.covers_all else rows[complete] if complete.any() else examples

    @cached_property
    def predictions(self) -> Outputs:
        """Outputs (n, O) of the model."""
        return self._predict(self.rows)

    @property
    def limit(self) -> Floats:
        """What rounding explains, (O,)."""
        return rounding_limit(self.predictions)

    def __call__(self, function: AdditiveFunction) -> bool:
        """Whether the function meets all of these predictions."""
        return bool(is_met(function, self.rows, self.predictions, self.limit, self._base).all())


def warn_if_missed(met: Masks) -> None:
    """Warn of explained rows whose predictions were not met; `met` (R,) as from `is_met`."""
    if met.all():
        return
    missed = np.flatnonzero(~met)
    text = (
        f"the model was read as a sum of one function per feature, but its predictions for {len(missed)} of {len(met)} rows "
        f"to explain, positions {listing(missed.tolist())}, are not such sums: it changes between the values at which it "
        "was tried. These rows were predicted by the model itself. Set additive=False to have it predict all rows."
    )
    announce(text)
