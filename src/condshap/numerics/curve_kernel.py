"""Values of a piecewise cubic, and its expectations under normal distributions, added to totals by compiled loops."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np

from condshap.numerics.jit import entry_kernel, kernel
from condshap.types import Floats, Indices

REACH = 8.5  # standard deviations beyond which there is nothing that floats resolve
NARROW = 0.1  # of a standard deviation
ROOT_HALF, PER_ROOT = sqrt(0.5), 1 / sqrt(2 * pi)
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(4)


@entry_kernel
def add_curve(x: Floats, edges: Floats, coefficients: Floats, guide: Indices, missing: Floats, total: Floats) -> int:
    """Add g(x) to `total` (n, O) for x (n,); returns how many x are outside the edges, to which nothing is added.

    Parameters
    ----------
    edges : (B + 1,) ascending
    coefficients : (B, O, 4) of powers of (x - start) / width of a piece, the last one first
    guide : (G + 1,) pieces at evenly spaced values from the first edge to the last
    missing : (O,) what is added for NaN
    """
    n_outside, n_pieces, n_outputs = 0, len(coefficients), total.shape[1]
    first, last, n_marks = edges[0], edges[n_pieces], len(guide) - 1
    per_mark = n_marks / (last - first)
    for i in range(len(x)):
        value = x[i]
        if np.isnan(value):
            for o in range(n_outputs):
                total[i, o] += missing[o]
            continue
        if value < first or value > last:
            n_outside += 1
            continue
        mark = min(int((value - first) * per_mark), n_marks - 1)
        low, high = guide[mark], guide[mark + 1] + 1
        while low > 0 and edges[low] > value:  # rounding may put a value next to a mark on its other side
            low -= 1
        while high < n_pieces and edges[high] <= value:
            high += 1
        while high - low > 1:
            middle = (low + high) // 2
            if edges[middle] <= value:
                low = middle
            else:
                high = middle
        t = (value - edges[low]) / (edges[low + 1] - edges[low])
        for o in range(n_outputs):
            c = coefficients[low, o]
            total[i, o] += ((c[0] * t + c[1]) * t + c[2]) * t + c[3]
    return n_outside


@entry_kernel
def add_expected(mean: Floats, sd: float, edges: Floats, coefficients: Floats, total: Floats) -> None:
    """Add E[g(mean + sd Z)] to `total` (n, O) for Z standard normal and means (n,); beyond the edges g counts as 0.

    In a piece t = (x - start) / width = shift + slope z, and the powers of z have truncated moments in closed form. They
    cancel where a piece is narrow: there the density is smooth, and four Gauss points are exact to rounding.
    """
    n_pieces, n_outputs = len(coefficients), total.shape[1]
    for i in range(len(mean)):
        first = np.searchsorted(edges, mean[i] - REACH * sd, side="right") - 1
        for piece in range(max(first, 0), n_pieces):
            start, width = edges[piece], edges[piece + 1] - edges[piece]
            low, high = (start - mean[i]) / sd, (edges[piece + 1] - mean[i]) / sd
            if low > REACH:
                break
            share = _share(low, high)
            if _is_flat(coefficients[piece]):
                for o in range(n_outputs):
                    total[i, o] += share * coefficients[piece, o, 3]
                continue
            moments = _narrow_moments(low, high) if high - low < NARROW else _moments(low, high, share, width / sd)
            for o in range(n_outputs):
                c = coefficients[piece, o]
                total[i, o] += c[0] * moments[3] + c[1] * moments[2] + c[2] * moments[1] + c[3] * moments[0]


@kernel
def _is_flat(coefficients: Floats) -> bool:
    for o in range(len(coefficients)):
        if coefficients[o, 0] != 0 or coefficients[o, 1] != 0 or coefficients[o, 2] != 0:
            return False
    return True


@kernel
def _share(low: float, high: float) -> float:
    """Phi(high) - Phi(low), from the tail that floats resolve."""
    if low > 0:
        return 0.5 * (erfc(low * ROOT_HALF) - erfc(high * ROOT_HALF))
    return 0.5 * (erfc(-high * ROOT_HALF) - erfc(-low * ROOT_HALF))


@kernel
def _moments(low: float, high: float, share: float, width: float) -> tuple[float, float, float, float]:
    """E[t^p 1(low < z < high)] for p = 0, ..., 3, with t from 0 at `low` to 1 at `high`."""
    at_low, at_high = exp(-0.5 * low * low) * PER_ROOT, exp(-0.5 * high * high) * PER_ROOT
    one = at_low - at_high
    two = share + low * at_low - high * at_high
    three = 2 * one + low * low * at_low - high * high * at_high
    a, b = -low / width, 1 / width
    t1 = a * share + b * one
    t2 = a * a * share + 2 * a * b * one + b * b * two
    t3 = a * a * a * share + 3 * a * a * b * one + 3 * a * b * b * two + b * b * b * three
    return share, t1, t2, t3


@kernel
def _narrow_moments(low: float, high: float) -> tuple[float, float, float, float]:
    """The same by Gauss points."""
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    for k in range(4):
        t = 0.5 + 0.5 * POINTS[k]
        z = low + (high - low) * t
        weight = 0.5 * (high - low) * WEIGHTS[k] * exp(-0.5 * z * z) * PER_ROOT
        m0, m1, m2, m3 = m0 + weight, m1 + weight * t, m2 + weight * t * t, m3 + weight * t * t * t
    return m0, m1, m2, m3
