r"""Means with known variances -> functions of what they estimate, less the bias that noise brings, with variances.

A mean m with variance s^2 around mu gives, for a smooth g,

.. math::

    \operatorname{E} g(m) \approx g(\mu) + \tfrac12 g''(\mu) s^2, \qquad
    \operatorname{Var} g(m) \approx g'(\mu)^2 s^2 + \tfrac12 g''(\mu)^2 s^4,

exactly for a square and normal noise. Every function here takes the second term of the first line off. Where variances are
0, nothing is changed.
"""

from __future__ import annotations

import numpy as np

from condshap.types import Floats

_TINY = 1e-300


def square(distances: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Squares of distances from a target, without bias, and their variances; any shape.

    The variance is 4 d^2 s^2 + 2 s^4, but d^2 itself is s^2 too large on average; it is never below 2 s^4.
    """
    squares = distances**2
    return squares - variances, variances * np.maximum(4 * squares - 2 * variances, 2 * variances)


def absolute(distances: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Sizes of distances from a target, less what normal noise adds to them, and their variances; any shape.

    Nobody can see on which side of its kink a distance of less than its noise is: there up to half a standard deviation of
    the bias stays. Over many distances it cancels out to second order. The slope is 1 at most, so the variance is that of
    the distance, or more than is needed near the kink.
    """
    from scipy.special import ndtr

    sizes, deviation = np.abs(distances), np.sqrt(variances)
    z = sizes / np.maximum(deviation, _TINY)
    # E|N(d, s^2)| - |d|, which vanishes a few standard deviations away from 0
    added = 2 * (deviation * np.exp(-0.5 * np.minimum(z, 40.0) ** 2) / np.sqrt(2 * np.pi) - sizes * ndtr(-z))
    return sizes - np.maximum(added, 0.0), variances


def minus_log(p: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Minus the logarithm of positive numbers, corrected to second order, and its variances; any shape."""
    share = variances / p**2
    return -np.log(p) - share / 2, share + share**2 / 2


def logit(p: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Log-odds of numbers between 0 and 1, corrected to second order, and their variances; any shape."""
    odd = p * (1 - p)
    curvature = (2 * p - 1) / odd**2
    return log_odds(p) - curvature * variances / 2, variances / odd**2 + (curvature * variances) ** 2 / 2


def log_odds(p: Floats) -> Floats:
    """Log-odds of numbers between 0 and 1."""
    return np.log(p) - np.log1p(-p)


def logit_slope(p: Floats) -> Floats:
    """Slope of the log-odds, finite for all p: what lies outside of 0 to 1 is refused elsewhere."""
    inside = np.clip(p, 1e-12, 1 - 1e-12)
    return 1 / (inside * (1 - inside))
