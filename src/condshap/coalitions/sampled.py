"""Paired, semi-deterministic sampling of coalitions with corrected kernel weights.

Sizes s = 1, ..., P-1 are drawn with probability proportional to (P - 1) / (s (P - s)), then a subset of that size, and
every draw is followed by its complement, until the wanted number of *different* coalitions is there. A coalition of
probability q has then come into the sample with probability pi = 1 - (1 - q)^L after L draws, and gets the weight
q / pi instead of its frequency. Small and large sizes that would nearly all be drawn anyway are all taken. A sample that
cannot tell the players apart is repaired by drawing on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from scipy.special import gammaln

from condshap.coalitions.exact import all_coalitions
from condshap.coalitions.plan import CoalitionPlan, assemble
from condshap.numerics.shapley import can_separate, kernel_weights
from condshap.seeding import generator
from condshap.types import Floats, Masks


def sample_coalitions(n_players: int, n_coalitions: int, *, seed: int) -> CoalitionPlan:
    """Plan with `n_coalitions` of the 2^P coalitions, the empty and the grand one included.

    Parameters
    ----------
    n_players : P, at least 3
    n_coalitions : between P + 1 and 2^P - 1; an odd number gives one less, as half a pair is worse than none
    seed : names the random stream
    """
    n_whole = n_coalitions - n_coalitions % 2
    first = min(max(n_whole, 2 * n_players + 6), 2**n_players)  # fewer cannot be enough, see below
    depth = deterministic_depth(n_players, first)
    for n_actual in range(first, 2**n_players, 2):
        masks, weights, inclusion = _draw(n_players, n_actual, depth, seed)
        if _is_enough(masks, weights):
            return assemble(masks, weights, inclusion, n_repaired=n_actual - n_whole)
    return replace(all_coalitions(n_players), n_repaired=2**n_players - n_whole)


def _is_enough(masks: Masks, weights: Floats) -> bool:
    """All players can be told apart, and there are two pairs more than players, with which errors can be judged.

    Fewer leave residuals whose size hangs on where the pairs happen to lie: intervals cover 77 to 89 % in some games.
    """
    n_pairs = len(np.unique(np.where(masks[:, :1], ~masks, masks), axis=0))
    return n_pairs >= masks.shape[1] + 2 and can_separate(masks, weights)


def _draw(n_players: int, n_coalitions: int, depth: int, seed: int) -> tuple[Masks, Floats, Floats]:
    """Interior coalitions, their weights and inclusion probabilities; more coalitions extend the same draws."""
    mass = _size_mass(n_players)
    taken = _all_up_to(n_players, depth)
    drawn = _draw_pairs(n_players, n_coalitions - 2 - len(taken), depth, generator(seed, "coalitions"))
    weights_drawn, inclusion = _corrected_weights(drawn, mass, depth)
    weights_taken = kernel_weights(n_players)[taken.sum(axis=1) - 1]
    share_taken = mass[:depth].sum() + mass[n_players - 1 - depth :].sum() if depth else 0.0
    weights = np.concatenate([_scaled(weights_taken, share_taken), _scaled(weights_drawn, 1.0 - share_taken)])
    masks = np.concatenate([taken, drawn.masks])
    return masks, weights / weights.sum(), np.concatenate([np.ones(len(taken)), inclusion])


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
    masks = list(found.values())
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
    log_count = gammaln(n_players + 1) - gammaln(sizes + 1) - gammaln(n_players - sizes + 1)
    q = np.exp(np.log(mass[sizes - 1] / left) - log_count)
    pi = -np.expm1(drawn.n_draws * np.log1p(-q))
    is_rare = q * drawn.n_draws < 1e-12  # then q / pi is 1 / n_draws, whatever underflows
    return np.where(is_rare, 1 / max(drawn.n_draws, 1), q / np.where(is_rare, 1.0, pi)), pi


def _scaled(weights: Floats, total: float) -> Floats:
    return weights * (total / weights.sum()) if len(weights) else weights
