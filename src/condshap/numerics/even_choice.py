"""Weights -> positions, chosen in proportion to the weights and as evenly as can be (systematic sampling)."""

from __future__ import annotations

import numpy as np

from condshap.types import Floats, Indices


def choose_evenly(weights: Floats, n: int, starts: Floats) -> Indices:
    """Choose n positions for each row of weights (R, K), given a random number in [0, 1) for each row: (R, n).

    A position is chosen as often as n times its share of the weights, rounded down or up.

    >>> choose_evenly(np.array([[1.0, 0.0, 3.0]]), 4, np.array([0.5]))
    array([[0, 2, 2, 2]])
    """
    reached = np.cumsum(weights, axis=1)
    wanted = (starts[:, None] + np.arange(n)) / n * reached[:, -1:]
    place = (reached[:, None, :] <= wanted[:, :, None]).sum(axis=2)
    return np.asarray(np.minimum(place, weights.shape[1] - 1), dtype=np.intp)
