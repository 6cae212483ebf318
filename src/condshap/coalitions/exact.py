"""All 2^P coalitions with the Shapley kernel weights."""

from __future__ import annotations

import numpy as np

from condshap.coalitions.plan import CoalitionPlan, coalition_order
from condshap.exceptions import CoalitionError
from condshap.numerics.shapley import kernel_weights
from condshap.types import Masks

MAX_EXACT_PLAYERS = 24
"""Beyond this the masks alone take more than half a GiB."""


def all_coalitions(n_players: int) -> CoalitionPlan:
    """Plan with every coalition.

    >>> all_coalitions(3).masks.astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]
    """
    if n_players > MAX_EXACT_PLAYERS:
        raise CoalitionError(
            f"using all coalitions needs at most {MAX_EXACT_PLAYERS} players, got {n_players}. Set n_coalitions or groups."
        )
    masks = enumerate_masks(n_players)
    sizes = masks.sum(axis=1)
    weights = np.concatenate([[0.0], kernel_weights(n_players), [0.0]])[sizes]
    total = weights.sum()
    return CoalitionPlan(masks, weights / total if total else weights, np.ones(len(masks)), is_exact=True)


def enumerate_masks(n_players: int) -> Masks:
    """All masks (2^P, P), by size, then lexicographic."""
    numbers = np.arange(2**n_players, dtype=np.uint32)
    shifts = np.arange(n_players - 1, -1, -1, dtype=np.uint32)
    masks = ((numbers[:, None] >> shifts) & 1).astype(bool)
    if n_players <= 12:
        return masks[coalition_order(masks)]
    order = np.lexsort((~numbers, masks.sum(axis=1, dtype=np.uint8)))  # the same order by one integer key
    return masks[order]
