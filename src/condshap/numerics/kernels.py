"""Kernel weights of donors by distance."""

from __future__ import annotations

import numpy as np

from condshap.numerics.gaussian import NormalModel, lower_factor
from condshap.types import Floats, Indices, Masks, Rows

_TIED = 1e-12  # what differs by less, relatively, differs by rounding: else the units of a column would break ties


def whitening(mask: Masks, model: NormalModel) -> Floats:
    """Map (m, m) of the features of `mask` (M,) to ones whose squared distances are those of Mahalanobis."""
    known = np.flatnonzero(mask)
    divisor = np.where(model.scale > 0, model.scale, 1.0)[known]
    return np.asarray(np.linalg.inv(lower_factor(model.correlation[np.ix_(known, known)])) / divisor)


def squared_distances(X: Rows, train: Rows, mask: Masks, model: NormalModel) -> Floats:
    """Squared Mahalanobis distances (R, N) between X (R, M) and training rows (N, M) in the features of `mask` (M,).

    Differences first, then element by element without matrix products, so that rows to the left and to the right of x, or
    equal rows, are at exactly equal distances: ties are many when values are whole numbers, and decide who is kept.
    """
    known, whiten = np.flatnonzero(mask), whitening(mask, model)
    differences = [np.subtract.outer(X[:, j], train[:, j]) for j in known]
    squares = np.zeros((len(X), len(train)))
    for weights in whiten:  # lower triangular, or a symmetric root where rounding broke the factor
        score = weights[0] * differences[0]
        for w, difference in zip(weights[1:], differences[1:], strict=True):
            if w != 0.0:
                score += w * difference
        score *= score
        squares += score
    return squares


def nearest_donors(distances: Floats, sigma: Floats, eta: float, n_samples: int) -> tuple[Indices, Floats]:
    """Closest donors that together hold the share `eta` of the kernel weight, at most `n_samples`; later ones if tied.

    Parameters
    ----------
    distances : (R, N) squared
    sigma : (R,) bandwidths

    Returns
    -------
    indices, weights : (R, k), weights of donors beyond the share are zero
    """
    nearest = distances.min(axis=1, keepdims=True)  # weights relative to the closest: far rows do not underflow
    weights = np.exp((nearest - distances) / (2 * sigma[:, None] ** 2))
    total = weights.sum(axis=1, keepdims=True)
    k = min(n_samples, distances.shape[1])
    indices = _closest(distances, k)
    chosen = np.take_along_axis(weights, indices, axis=1)
    if eta < 1:
        before = chosen.cumsum(axis=1) - chosen
        chosen = np.where(before < eta * total * (1 - _TIED), chosen, 0.0)
    width = int((chosen > 0).sum(axis=1).max())
    return indices[:, :width], chosen[:, :width]


def _closest(distances: Floats, k: int) -> Indices:
    """Positions (R, k) of the k smallest distances in increasing order, of equal ones, up to rounding, the later first."""
    n = distances.shape[1]
    if k < n:
        limit = np.partition(distances, k - 1, axis=1)[:, k - 1 : k] * (1 + _TIED)
        n_candidates = int((distances <= limit).sum(axis=1).max())  # ties at the limit included
        top = np.argpartition(distances, min(n_candidates, n) - 1, axis=1)[:, :n_candidates]
        top = -np.sort(-top, axis=1)
    else:
        top = np.tile(np.arange(n)[::-1], (len(distances), 1))
    near = np.take_along_axis(distances, top, axis=1)
    order = near.argsort(axis=1, kind="stable")  # `top` has the later first already
    near = np.take_along_axis(near, order, axis=1)
    apart = near[:, 1:] > near[:, :-1] * (1 + _TIED)
    uneven = np.flatnonzero((~apart & (near[:, 1:] > near[:, :-1])).any(axis=1))
    if len(uneven):
        steps = np.zeros((len(uneven), near.shape[1]), dtype=np.intp)
        steps[:, 1:] = np.cumsum(apart[uneven], axis=1)
        order[uneven] = np.take_along_axis(order[uneven], np.lexsort((order[uneven], steps)), axis=1)
    return np.asarray(np.take_along_axis(top, order[:, :k], axis=1))
