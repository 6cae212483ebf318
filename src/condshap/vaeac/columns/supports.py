"""Values with a support <-> logarithms and logits, which have none: where the poles are, and how numbers are stretched.

A column with a pole below is y = log(x - low), with one above y = -log(high - x), with both y = log((x - low) / (high - x)),
and without any y = x. All of them rise with x.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from condshap.types import Floats, Rows

_FAR = 1000.0  # training ranges: a logarithm with a pole further away than that is a straight line


def find_poles(X: Rows, declared: Floats, whole: npt.NDArray[np.bool_]) -> Floats:
    """Poles (2, Mc) of columns (N, Mc) with gaps, -inf and inf where there is none.

    Parameters
    ----------
    declared : (2, Mc) ends of the support, NaN where it is not declared: then 0 for columns of one sign, and 1 for fractions
    whole : (Mc,) columns of whole numbers

    Notes
    -----
    A pole is at the end of the support, or just outside where values may be at the end itself, whose logarithm must be
    finite: whole numbers get the half step that rounding takes away again. Other columns whose training rows hold the end
    get q1^2 / q3, with the quartiles of the other rows' distances to it. That follows the data, not their smallest
    distance: zeros beside a 1e-12 would otherwise be outliers that all else is squeezed by. For log-normal distances it
    is their median over the cube of median / q1, so most of the column is still on a logarithmic scale.
    """
    poles = np.empty(declared.shape)
    for j, gappy in enumerate(X.T):
        column = gappy[~np.isnan(gappy)]
        natural = _natural_ends(column, is_whole=bool(whole[j]))
        low, high = np.where(np.isnan(declared[:, j]), natural, declared[:, j])
        poles[0, j] = _pole_below(column, low, is_whole=bool(whole[j]))
        poles[1, j] = -_pole_below(-column, -high, is_whole=bool(whole[j]))
    return poles


def _natural_ends(column: Floats, *, is_whole: bool) -> tuple[float, float]:
    low, high = column.min(), column.max()
    if low < 0:
        return -np.inf, 0.0 if high <= 0 else np.inf
    return 0.0, 1.0 if high <= 1 and not is_whole else np.inf


def _pole_below(column: Floats, end: float, *, is_whole: bool) -> float:
    least = float(column.min())
    with np.errstate(over="ignore"):
        spread = column.max() - least
        if spread == 0 or np.isinf(end):
            return -np.inf
        offset = 0.5 if is_whole else _typical_distance(column - end) if least == end else 0.0
        pole = min(end - offset, float(np.nextafter(least, -np.inf)))  # the offset may be lost in rounding
        return pole if least - pole <= _FAR * spread else -np.inf


def _typical_distance(distances: Floats) -> float:
    first, third = np.quantile(distances[distances > 0], [0.25, 0.75])
    return float(first * (first / third))


def stretch(X: Rows, poles: Floats) -> Floats:
    """Columns (n, Mc) -> y, infinite at and beyond a pole, NaN for gaps."""
    low, high = poles
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    below = np.where(has_low, _log_difference(X, np.where(has_low, low, 0.0)), 0.0)
    above = np.where(has_high, _log_difference(np.where(has_high, high, 0.0), X), 0.0)
    return np.where(has_low | has_high, below - above, X)


def _log_difference(larger: Floats, smaller: Floats) -> Floats:
    """log(larger - smaller), -inf where that is negative, and finite where it would overflow."""
    with np.errstate(over="ignore", divide="ignore"):
        difference = np.maximum(larger - smaller, 0.0)
        halved = np.log(np.maximum(larger / 2 - smaller / 2, 0.0)) + np.log(2)
        return np.where(np.isinf(difference), halved, np.log(difference))


def log_stretch_slopes(y: Floats, poles: Floats) -> Floats:
    """Logarithm of dy / dx at y (n, Mc): -y with a pole below, y with one above, 0 without.

    With both it is log((high - low) / ((x - low) (high - x))) = |y| + 2 log(1 + exp(-|y|)) - log(high - low).
    """
    low, high = poles
    has_low, has_high = np.isfinite(low), np.isfinite(high)
    width = _log_difference(np.where(has_high, high, 1.0), np.where(has_low, low, 0.0))
    logit = np.abs(y) + 2 * np.log1p(np.exp(-np.abs(y))) - width
    one_sided = np.where(has_low, -y, np.where(has_high, y, 0.0))
    return np.where(has_low & has_high, logit, one_sided)
