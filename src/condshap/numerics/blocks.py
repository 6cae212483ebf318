"""Samples of a net in their order -> variance of their mean, from the spread of consecutive blocks.

Consecutive points of a net, as many as a power of two, are a net again. With B blocks of K / B points the mean square of
block means around their mean is on average V(K / B) - V(K), where V is the variance of the mean of so many points: a row's
own measure of how much the nets leave, at no further sample. Single samples would measure the spread of f instead, most of
which nets take away, and more of it from one row than from another.
"""

from __future__ import annotations

import numpy as np

from condshap.numerics.sobol import power_of_two_at_least
from condshap.types import Floats, Indices

_BLOCKS = 8
_SHORT = 16


def block_starts(n_samples: int) -> Indices:
    """Where blocks of K samples begin: at most 8 of them, as long as a power of two, the last one perhaps shorter.

    >>> block_starts(64).tolist(), block_starts(3).tolist(), block_starts(12).tolist()
    ([0, 8, 16, 24, 32, 40, 48, 56], [0, 1, 2], [0, 2, 4, 6, 8, 10])
    """
    return np.arange(0, n_samples, power_of_two_at_least(-(-n_samples // _BLOCKS)))


def block_variances(f: Floats, means: Floats, weights: Floats | None) -> Floats:
    """Variances (C, R, O) that means would have if blocks were independent; NaN where there is one sample only.

    Parameters
    ----------
    f : (C, R, K, O), samples in the order of the net
    means : (C, R, O) over samples
    weights : (C, R, K, 1) that sum to 1, or None for equal ones
    """
    starts = block_starts(f.shape[2])
    if weights is None:
        shares = np.diff(np.append(starts, f.shape[2]))[None, None, :, None] / f.shape[2]
        totals = _block_sums(f, starts) / f.shape[2]
    else:
        shares = np.add.reduceat(weights, starts, axis=2)
        totals = np.add.reduceat(weights * f, starts, axis=2)
    totals /= np.where(shares > 0, shares, 1.0)  # (C, R, B, O), in place: they are the mean of each block now
    totals -= means[:, :, None]
    totals *= totals
    totals *= shares
    return np.asarray(_add_up(totals) * variance_scale(_add_up(shares**2)))


def variance_scale(concentration: Floats) -> Floats:
    """What turns the weighted mean square of deviations into the variance of a mean: c / (1 - c), any shape.

    The concentration c is the sum of squared weights; with equal ones it is 1 / K, and the scale 1 / (K - 1). A single
    sample, c = 1, tells nothing about its own error: NaN.
    """
    left = 1.0 - concentration
    return np.asarray(np.where(left > 1e-12, concentration / np.where(left > 1e-12, left, 1.0), np.nan))


def _block_sums(f: Floats, starts: Indices) -> Floats:
    """Sums (C, R, B, O) over blocks of f (C, R, K, O)."""
    n_blocks, (C, R, K, O) = len(starts), f.shape
    if K % n_blocks or (n_blocks > 1 and starts[1] * n_blocks != K):
        return np.asarray(np.add.reduceat(f, starts, axis=2))
    return _add_up(f.reshape(C, R * n_blocks, K // n_blocks, O)).reshape(C, R, n_blocks, O)


def _add_up(samples: Floats) -> Floats:
    """Sums (C, R, O) over few samples (C, R, n, O); NumPy's own sum takes long over many short stretches."""
    if samples.shape[2] > _SHORT:
        return np.asarray(samples.sum(axis=2))
    total = samples[:, :, 0].copy()
    for i in range(1, samples.shape[2]):
        total += samples[:, :, i]
    return total
