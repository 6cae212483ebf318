"""Players, cap, seed -> one sequence of coalition pairs, whose beginnings are plans of fixed size and those of "auto".

A coalition and its complement form a pair, and pairs of sizes s and P - s form a class. The next pair comes from the class
that is furthest behind its share, so the number of pairs of every class is a function of their total number alone, and
never falls. Shares are proportional to 1 / sqrt(s (P - s)), the influence of a class on the Shapley values, so the smallest
and the largest sizes fill up first. Within a class the next pair is, of some that are drawn at random without replacement,
the one that lies furthest from all pairs so far; after 1000 pairs it is just the next, as choosing takes ever longer. That
treats all players alike, so after n of its N pairs every pair is in the sample with probability n / N exactly, and a class
that has come to its end is there completely.

Far means a small sum of (z'z_i)^4 over the pairs i so far, in signs z_j = 1 for j in S and -1 otherwise. Over all pairs this
is the sum of the squared moments of four signs, sum_i z_ij z_ik z_il z_im: where they are small, interactions of three
players do not pass for effects of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heapreplace
from itertools import combinations, islice
from math import ceil, comb, sqrt

import numpy as np

from condshap.coalitions.plan import CoalitionPlan, assemble, coalition_order
from condshap.exceptions import CoalitionError
from condshap.numerics.shapley import can_separate, kernel_weights
from condshap.seeding import generator
from condshap.types import Floats, Indices, Masks

DEFAULT_CAP = 8192
GROWTH = 1.1
_FIRST_PAIRS_PER_PLAYER = 2.5  # fewer leave too little to judge the error by
VERY_FEW = 5  # players
_LEARNING_PAIRS = 499
_CANDIDATES = 20  # pairs of a class among which its first is chosen
_NEW_CANDIDATES = 3  # that come before every further one; chosen are then a third to a half of all that were drawn
_CHOSEN = 1000  # pairs that are chosen so
_LISTED = 20_000  # pairs of a class that are listed and shuffled; of larger classes repetitions are rejected


def nested_plan(n_players: int, max_coalitions: int | None, *, seed: int) -> tuple[CoalitionPlan, Indices]:
    """Plan with all coalitions that may be asked for, and the order in which they are.

    Parameters
    ----------
    n_players : P
    max_coalitions : cap, the empty and the grand coalition included; None takes 8192, or all if there are fewer

    Returns
    -------
    plan : exact if the cap allows all coalitions
    pairs : (n, 2) positions in the plan of the n pairs, in the order of the sequence
    """
    least = min(2**n_players, 2 * _first_pairs(n_players) + 2)
    cap = max(DEFAULT_CAP, least) if max_coalitions is None else max_coalitions
    if cap < least:
        raise CoalitionError(
            f"max_coalitions must be at least {least} to estimate the error for {n_players} players, got {cap}. "
            "Raise it, or use groups to have fewer players."
        )
    n_pairs = min(cap, 2**n_players) // 2 - 1
    half = pair_sequence(n_players, n_pairs, seed=seed)
    masks = np.concatenate([half, ~half])
    rank = np.empty(len(masks), dtype=np.intp)
    rank[coalition_order(masks)] = np.arange(1, len(masks) + 1)
    is_exact = n_pairs == 2 ** (n_players - 1) - 1
    return assemble(masks, *_weights(masks), is_exact=is_exact, is_kriged=True), rank.reshape(2, -1).T.copy()


def kriged_from(n_players: int) -> int:
    """Fewest coalitions, the empty and the grand one included, for a fixed plan of pairs that is solved by kriging.

    Two pairs more than players are enough to judge the error by. With up to five players most pairs are there by then, and
    the regression's errors are the more honest ones, so these begin with 5 P + 2.
    """
    pairs = n_players + 2 if n_players > VERY_FEW else int(_FIRST_PAIRS_PER_PLAYER * n_players)
    return 2 * pairs + 2


def fixed_plan(n_players: int, n_coalitions: int, *, seed: int) -> CoalitionPlan:
    """Plan of the first pairs of the sequence: `n_coalitions`, one less if that is odd, or more until they are enough.

    Enough is what can tell all players apart and judge the error, see `kriged_from`.
    """
    asked = n_coalitions // 2 - 1
    for n_pairs in range(max(asked, kriged_from(n_players) // 2 - 1), 2 ** (n_players - 1)):
        half = pair_sequence(n_players, n_pairs, seed=seed)
        masks = np.concatenate([half, ~half])
        weights, inclusion = _weights(masks)
        if can_separate(masks, weights):
            break
    is_exact = n_pairs == 2 ** (n_players - 1) - 1
    added = 2 * (n_pairs - asked)
    return assemble(masks, weights, inclusion, is_exact=is_exact, n_repaired=added, is_kriged=True)


def beginning(plan: CoalitionPlan, pairs: Indices, n_pairs: int) -> tuple[CoalitionPlan, Indices]:
    """Plan of the first `n_pairs` pairs, and the positions of its coalitions in the whole `plan`."""
    positions = np.concatenate([[0], np.sort(pairs[:n_pairs].ravel()), [len(plan.masks) - 1]]).astype(np.intp)
    masks = plan.masks[positions[1:-1]]
    is_exact = plan.is_exact and n_pairs == len(pairs)
    return assemble(masks, *_weights(masks), is_exact=is_exact, is_kriged=True), positions


def checkpoints(n_players: int, n_pairs: int) -> list[int]:
    """Numbers of pairs at which the error is looked at: each a tenth more than the one before.

    They do not depend on the tolerance, so that stopping and going on leads where a smaller tolerance leads at once.

    >>> checkpoints(10, 35)
    [25, 28, 31, 35]
    """
    found = [min(n_pairs, _first_pairs(n_players))]
    while found[-1] < n_pairs:
        found.append(min(n_pairs, ceil(round(found[-1] * GROWTH, 6))))
    return found


def learning_pairs(n_players: int, n_pairs: int) -> int:
    """How many of all pairs stand for them where learning needs coalitions; enough for every size to be there."""
    return min(n_pairs, max(_LEARNING_PAIRS, _first_pairs(n_players)))


def pair_sequence(n_players: int, n_pairs: int, *, seed: int) -> Masks:
    """First `n_pairs` pairs of the sequence, each by its coalition of at most P/2 players, shape (n_pairs, P)."""
    signs = np.empty((n_pairs, n_players))
    classes: dict[int, _Candidates] = {}
    for i, size in enumerate(_class_order(n_players, n_pairs).tolist()):
        if size not in classes:
            classes[size] = _Candidates(n_players, _draw_class(n_players, size, seed))
        signs[i] = classes[size].furthest(signs[:i]) if i < _CHOSEN else classes[size].any()
    return signs > 0


class _Candidates:
    """Pairs of one class that wait to be chosen: signs (c, P) and potentials (c,), the sums of (z'z_i)^4, exact integers."""

    def __init__(self, n_players: int, drawn: Iterator[list[int]]) -> None:
        self.drawn = drawn
        self.signs, self.potentials = np.empty((0, n_players)), np.empty(0)
        self.n_met = 0  # pairs of the sequence that the potentials know of

    def furthest(self, sequence: Floats) -> Floats:
        """Take the pair (P,) with the smallest potential, given the sequence (n, P) so far."""
        self.potentials += _potentials(self.signs, sequence[self.n_met :])
        self.n_met = len(sequence)
        new = self._draw(_NEW_CANDIDATES if len(self.signs) else _CANDIDATES)
        self.signs = np.concatenate([self.signs, new])
        self.potentials = np.concatenate([self.potentials, _potentials(new, sequence)])
        best = int(self.potentials.argmin())
        chosen: Floats = self.signs[best].copy()
        self.signs[best], self.potentials[best] = self.signs[-1], self.potentials[-1]
        self.signs, self.potentials = self.signs[:-1], self.potentials[:-1]
        return chosen

    def any(self) -> Floats:
        """Take the next pair (P,) that is drawn, or one that waits when all have been drawn."""
        new = self._draw(1)
        if len(new) == 0:
            new, self.signs = self.signs[-1:], self.signs[:-1]
        return np.asarray(new[0])

    def _draw(self, n: int) -> Floats:
        """Signs (n, P) of the next pairs of the class, fewer at its end."""
        members = list(islice(self.drawn, n))
        new = np.full((len(members), self.signs.shape[1]), -1.0)
        for row, some in zip(new, members, strict=True):
            row[some] = 1.0
        return new


def _potentials(signs: Floats, sequence: Floats) -> Floats:
    """Sums of (z'z_i)^4 over a sequence (n, P), for candidates (c, P)."""
    squares = (signs @ sequence.T) ** 2
    return np.asarray(np.einsum("cn,cn->c", squares, squares))


def _first_pairs(n_players: int) -> int:
    return ceil(_FIRST_PAIRS_PER_PLAYER * n_players)


def class_sizes(n_players: int) -> Floats:
    """Number of pairs of coalition sizes s and P - s, for s = 0, ..., P // 2; 0 for s = 0."""
    counts = [comb(n_players, s) // (2 if 2 * s == n_players else 1) for s in range(n_players // 2 + 1)]
    return np.array([0, *counts[1:]], dtype=np.float64)


def _weights(masks: Masks) -> tuple[Floats, Floats]:
    """Kernel weights over inclusion probabilities, which sum to 1, and these probabilities, of interior masks (C, P)."""
    n_players = masks.shape[1]
    if len(masks) == 0:
        return np.zeros(0), np.zeros(0)
    sizes = masks.sum(axis=1)
    classes = np.minimum(sizes, n_players - sizes)
    inclusion = np.bincount(classes)[classes] / 2 / class_sizes(n_players)[classes]
    weights = kernel_weights(n_players)[sizes - 1] / inclusion
    return weights / weights.sum(), inclusion


def _class_order(n_players: int, n_pairs: int) -> Indices:
    """Size s <= P/2 of every pair of the sequence, shape (n_pairs,), by Sainte-Lague's divisors, which never take back."""
    left = [int(n) for n in class_sizes(n_players)]
    share = {s: 1 / sqrt(s * (n_players - s)) / (2 if 2 * s == n_players else 1) for s in range(1, n_players // 2 + 1)}
    waiting = [(0.5 / share[s], s, 0) for s in share]
    heapify(waiting)
    order = np.empty(n_pairs, dtype=np.intp)
    for i in range(n_pairs):
        _, size, n_taken = waiting[0]
        order[i] = size
        n_taken += 1
        priority = (n_taken + 0.5) / share[size] if n_taken < left[size] else np.inf
        heapreplace(waiting, (priority, size, n_taken))
    return order


def _draw_class(n_players: int, size: int, seed: int) -> Iterator[list[int]]:
    """Yield the coalitions of one size in random order, of two complements only the one with the first player."""
    rng = generator(seed, f"pairs of size {size}")
    is_half = 2 * size == n_players
    if comb(n_players, size) <= _LISTED:
        listed = [c for c in combinations(range(n_players), size) if not is_half or c[0] == 0]
        yield from (list(listed[i]) for i in rng.permutation(len(listed)))
        return
    seen: set[bytes] = set()
    n_all = comb(n_players, size) // (2 if is_half else 1)
    while len(seen) < n_all:
        drawn = rng.permutation(n_players)
        members = np.sort(drawn[:size])
        if is_half and members[0] != 0:
            members = np.sort(drawn[size:])
        if members.tobytes() not in seen:
            seen.add(members.tobytes())
            yield members.tolist()
