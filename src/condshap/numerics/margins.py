"""Columns <-> normal scores."""

from __future__ import annotations

import numpy as np

from condshap.types import Floats, Rows


def to_normal_scores(X: Rows, ordered: Rows) -> Rows:
    """Normal scores of rows (n, M) among sorted training columns (N, M): Phi^-1 of mid-ranks over N + 1."""
    from scipy.special import ndtri

    n_train = len(ordered)
    scores = np.empty(X.shape)
    for j in range(X.shape[1]):
        below = np.searchsorted(ordered[:, j], X[:, j], side="left")
        not_above = np.searchsorted(ordered[:, j], X[:, j], side="right")
        scores[:, j] = ndtri(((below + not_above) / 2 + 0.5) / (n_train + 1))
    return scores


def from_normal_scores(scores: Floats, ordered: Floats) -> Floats:
    """Empirical quantiles, linearly interpolated (type 7), of a sorted training column (N,) at Phi(scores)."""
    from scipy.special import ndtr

    position = ndtr(scores)
    position *= len(ordered) - 1
    lower = position.astype(np.intp)
    np.minimum(lower, len(ordered) - 2, out=lower)
    position -= lower
    step = np.diff(ordered)
    return np.asarray(ordered[lower] + position * step[lower])
