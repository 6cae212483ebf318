"""Paired, semi-deterministic sampling of coalitions with corrected kernel weights.

Sizes s = 1, ..., P-1 are drawn with probability proportional to (P - 1) / (s (P - s)), then a subset of that size, and
every draw is followed by its complement, until the wanted number of *different* coalitions is there. A coalition of
probability q has then come into the sample with probability pi = 1 - (1 - q)^L after L draws, and gets the weight
q / pi instead of its frequency. Small and large sizes that would nearly all be drawn anyway are all taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from condshap.coalitions.plan import CoalitionPlan, assemble
from condshap.numerics.shapley import can_separate, kernel_weights
from condshap.seeding import generator
from condshap.types import Floats, Masks


def sample_coalitions(n_players: int, n_coalitions: int, *, seed: int) -> CoalitionPlan:
    """Plan with `n_coalitions` of the 2^P coalitions, the empty and the grand one included.

    Parameters
    ----------
    n_players : P, at least 3
    n_coalitions : between P + 1 and 2^P - 1
    seed : names the random stream
    """
    mass = _size_mass(n_players)
    depth = deterministic_depth(n_players, n_coalitions)
    taken = _all_up_to(n_players, depth)
    n_wanted = n_coalitions - 2 - len(taken)
    drawn = _draw_pairs(n_players, n_wanted, depth, generator(seed, "coalitions"))
    weights, inclusion = _corrected_weights(drawn, mass, depth)
    weights_taken = kernel_weights(n_players)[taken.sum(axis=1) - 1] if len(taken) else np.empty(0)
    share_taken = mass[:depth].sum() + mass[n_players - 1 - depth :].sum() if depth else 0.0
    masks = np.concatenate([taken, drawn.masks])
    joined = np.concatenate([_scaled(weights_taken, share_taken), _scaled(weights, 1.0 - share_taken)])
    certain = np.concatenate([np.ones(len(taken)), inclusion])
    return _repaired(masks, joined, certain)


@dataclass(frozen=True, slots=True)
class _Draws:
    """Different coalitions (C, P) and the number of draws, repetitions included, that gave them."""

    masks: Masks
    n_draws: int


def _size_mass(n_players: int) -> Floats:
    """Probability of each size 1, ..., P-1 under the kernel, shape (P - 1,)."""
    sizes = np.arange(1, n_players)
    mass = (n_players - 1) / (sizes * (n_players - sizes))
    return np.asarray(mass / mass.sum())


def deterministic_depth(n_players: int, n_coalitions: int) -> int:
    """Largest d such that all coalitions of sizes <= d and >= P - d are taken rather than drawn.

    A size is taken whole when as many draws as there are coalitions left to choose would be expected to hit each
    coalition of that size at least once.

    >>> [deterministic_depth(5, n) for n in (18, 20, 30)]
    [0, 1, 1]
    """
    mass = _size_mass(n_players)
    depth, n_taken = 0, 2
    while 2 * (depth + 1) < n_players:
        left = mass[depth : n_players - 1 - depth]
        if (n_coalitions - n_taken) * left[0] / left.sum() < comb(n_players, depth + 1):
            break
        depth += 1
        n_taken += 2 * comb(n_players, depth)
    return depth


def _all_up_to(n_players: int, depth: int) -> Masks:
    """All coalitions of sizes 1..depth and their complements."""
    members = [c for size in range(1, depth + 1) for c in combinations(range(n_players), size)]
    masks = np.zeros((len(members), n_players), dtype=bool)
    for row, positions in zip(masks, members, strict=True):
        row[list(positions)] = True
    return np.concatenate([masks, ~masks])


def _draw_pairs(n_players: int, n_wanted: int, depth: int, rng: np.random.Generator) -> _Draws:
    """Draw coalitions and their complements until `n_wanted` different ones are there."""
    sizes = np.arange(1 + depth, n_players - depth)
    mass = _size_mass(n_players)[sizes - 1]
    found: dict[bytes, Masks] = {}
    n_draws = 0
    while len(found) < n_wanted:
        block = _draw_masks(rng.choice(sizes, size=max(64, n_wanted), p=mass / mass.sum()), n_players, rng)
        for mask in block:
            for one in (mask, ~mask):
                found.setdefault(one.tobytes(), one)
            n_draws += 2
            if len(found) >= n_wanted:
                break
    masks = list(found.values())[:n_wanted]  # an odd number leaves the last complement out
    return _Draws(np.array(masks, dtype=bool).reshape(-1, n_players), n_draws)


def _draw_masks(sizes: np.ndarray[tuple[int], np.dtype[np.int64]], n_players: int, rng: np.random.Generator) -> Masks:
    """One uniformly drawn subset per given size, shape (n, P)."""
    ranks = rng.random((len(sizes), n_players)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < sizes[:, None])


def _corrected_weights(drawn: _Draws, mass: Floats, depth: int) -> tuple[Floats, Floats]:
    """Weights q / pi and inclusion probabilities pi of drawn coalitions."""
    n_players = drawn.masks.shape[1]
    left = mass[depth : n_players - 1 - depth].sum()
    sizes = drawn.masks.sum(axis=1)
    count = np.array([float(comb(n_players, int(s))) for s in range(n_players)])
    q = mass[sizes - 1] / left / count[sizes]
    pi = -np.expm1(drawn.n_draws * np.log1p(-np.minimum(q, 1 - 1e-12)))
    return q / pi, pi


def _scaled(weights: Floats, total: float) -> Floats:
    return weights * (total / weights.sum()) if len(weights) else weights


def _repaired(masks: Masks, weights: Floats, inclusion: Floats) -> CoalitionPlan:
    """Add single players and their complements, with the median weight, until all players can be told apart."""
    n_players = masks.shape[1]
    n_before = len(masks)
    present = {mask.tobytes() for mask in masks}
    for single in np.eye(n_players, dtype=bool):
        if can_separate(masks, weights):
            break
        new = [one for one in (single, ~single) if one.tobytes() not in present]
        if new:
            masks = np.concatenate([masks, np.array(new)])
            weights = np.concatenate([weights, np.full(len(new), np.median(weights))])
            inclusion = np.concatenate([inclusion, np.ones(len(new))])
    return assemble(masks, weights / weights.sum(), inclusion, n_repaired=len(masks) - n_before)
