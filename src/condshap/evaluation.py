"""Explanations -> evaluation criteria of the paper's Section 4.1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class MSEv:
    """EC3: mean squared difference between f(x) and v(S, x), uniform over interior coalitions and rows.

    Smaller is better, but only differences between approaches mean something: part of it is the spread of f given x_S.

    Attributes
    ----------
    value : (), or (O,) for several outputs; ``float(msev)`` is the sum over outputs
    std_error : same shape, from the spread over rows; NaN for a single row
    per_row : (R,) or (R, O)
    per_coalition : (C - 2,) or (C - 2, O)
    """

    value: Floats
    std_error: Floats
    per_row: Floats
    per_coalition: Floats

    def __float__(self) -> float:
        """Sum over outputs."""
        return float(np.sum(self.value))

    def total_std_error(self) -> float:
        """Standard error of ``float(msev)``; NaN for a single row."""
        n = len(self.per_row)
        return float(self.per_row.reshape(n, -1).sum(axis=1).std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of ``float(msev)`` over rows, by Student's t; NaN for a single row."""
        from scipy.special import stdtrit

        n = len(self.per_row)
        half = float(stdtrit(n - 1, (1 + level) / 2)) * self.total_std_error() if n > 1 else np.nan
        return (float(self) - half, float(self) + half)


def mean_squared_error(predictions: Floats, v: Floats, std_errors: Floats) -> MSEv:
    """EC3 of the paper, less the Monte Carlo variance of v so that few samples are not punished.

    Parameters
    ----------
    predictions : (R,) or (R, O)
    v, std_errors : (C, R) or (C, R, O), interior coalitions only
    """
    if len(v) == 0:  # a single player has no interior coalition
        nothing = np.zeros(predictions.shape)
        return MSEv(nothing.mean(axis=0), nothing.mean(axis=0), nothing, np.zeros((0, *predictions.shape[1:])))
    squares = (predictions - v) ** 2 - std_errors**2
    per_row = squares.mean(axis=0)
    n = len(per_row)
    spread = per_row.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(per_row.shape[1:], np.nan)
    return MSEv(per_row.mean(axis=0), np.asarray(spread), per_row, squares.mean(axis=1))
