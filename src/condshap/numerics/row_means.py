"""Losses of rows -> their mean with its error and interval; coalitions that all rows have."""

from __future__ import annotations

import numpy as np

from condshap.types import Floats, Masks


def half_width(std_error: float, n_rows: int, level: float = 0.95) -> float:
    """Half of a confidence interval of a mean over rows, by Student's t; NaN for a single row."""
    from scipy.special import stdtrit

    return float(stdtrit(n_rows - 1, (1 + level) / 2)) * float(std_error) if n_rows > 1 else np.nan


def not_below_zero(low: float, high: float) -> tuple[float, float]:
    """Interval of what cannot be negative, although an estimate less its noise can; NaN stays."""
    return float(np.maximum(low, 0.0)), float(np.maximum(high, 0.0))


def shared_coalitions(values: Floats) -> Masks:
    """Interior coalitions (C,) that all rows of v (C, R) or (C, R, O) have; ``n_coalitions="auto"`` leaves NaN elsewhere."""
    shared = np.logical_not(np.isnan(values.reshape(len(values), -1)).any(axis=1))
    shared[[0, -1]] = False
    return np.asarray(shared)


def over_rows(per_row: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted mean over rows and its standard error, which is the usual one when weights are equal."""
    n = len(per_row)
    value = np.asarray(weights @ per_row)
    if n < 2:
        return value, np.full_like(value, np.nan)
    return value, np.asarray(np.sqrt(n / (n - 1) * (weights**2 @ (per_row - value) ** 2)))
