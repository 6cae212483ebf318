r"""The linear algebra of interactions: every index of a set of players is a linear function of v.

With the Moebius transform :math:`m(T) = \sum_{U \subseteq T} (-1)^{|T| - |U|} v(U)`, all indices have the form

.. math::

    I(S) = \sum_{T \supseteq S} w_{ts}\, m(T) = \sum_U (-1)^{|S \setminus U|}\, d_{|S \cup U|,\,s}\, v(U), \qquad
    d_{as} = \sum_{t \ge a} (-1)^{t - a} \binom{P - a}{t - a} w_{ts},

so that an index is a small table of weights by size. The tables are worked out in fractions: sums with changing signs lose
no digit, and the weights of v(U) are bounded where Moebius coefficients of many players are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

from condshap.numerics.shapley import each_column
from condshap.types import Floats, Indices, Masks

INDICES = ("SII", "k-SII", "STII", "FSII", "BII")
_LARGEST_BLOCK = 2**23  # coefficients at a time, 64 MiB

PlayerSet = tuple[int, ...]


def player_sets(n_players: int, order: int) -> list[PlayerSet]:
    """All sets of at most `order` players, the empty one first, by size, then lexicographic.

    >>> player_sets(3, 2)
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [members for size in range(order + 1) for members in combinations(range(n_players), size)]


def moebius_weight(index: str, t: int, s: int, order: int) -> Fraction:
    """Share w_ts of the Moebius coefficient of t players in the index of s of them, for indices up to `order`.

    >>> str(moebius_weight("SII", 3, 2, 2)), str(moebius_weight("k-SII", 2, 1, 2)), str(moebius_weight("STII", 3, 2, 2))
    ('1/2', '0', '1/3')
    """
    if index == "SII":
        return Fraction(1, t - s + 1)
    if index == "BII":
        return Fraction(1, 2 ** (t - s))
    if index == "STII" and s == order:
        return Fraction(1, comb(t, order))
    if index == "k-SII" and s > 0:
        numbers = _bernoulli_numbers(order)
        larger = range(s, min(order, t) + 1)
        return sum((comb(t - s, r - s) * numbers[r - s] / (t - r + 1) for r in larger), Fraction(0))
    if index == "FSII" and t > order:
        size = Fraction(s * comb(order, s) * comb(t - 1, order), (order + s) * comb(t + order - 1, order + s))
        return size if (order - s) % 2 == 0 else -size
    return Fraction(int(t == s))


def _bernoulli_numbers(n: int) -> list[Fraction]:
    """B_0, ..., B_n with B_1 = -1/2."""
    found = [Fraction(1)]
    for m in range(1, n + 1):
        found.append(-sum((comb(m + 1, k) * found[k] for k in range(m)), Fraction(0)) / (m + 1))
    return found


def derivative_weights(index: str, n_players: int, order: int) -> Floats:
    """Weights d (P + 1, order + 1) of v(U) by size of S and U together, and by size of S; see the head of the module."""
    P = n_players
    found = np.zeros((P + 1, order + 1))
    for s in range(order + 1):
        shares = {t: moebius_weight(index, t, s, order) for t in range(s, P + 1)}
        for a in range(s, P + 1):
            total = sum(((-1) ** (t - a) * comb(P - a, t - a) * shares[t] for t in range(a, P + 1)), Fraction(0))
            found[a, s] = float(total)
    return found


def exact_operator(masks: Masks, sets: Sequence[PlayerSet], weights: Floats) -> Floats:
    """Coefficients (sets, C) of all v(U), masks (C, P) in any order, in the index of every set."""
    common = common_players(masks, sets)
    sizes = np.array([len(members) for members in sets])[:, None]
    lacking = sizes - common
    signs = np.where(lacking % 2, -1.0, 1.0)
    return np.asarray(signs * weights[masks.sum(axis=1) + lacking, sizes])


def exact_interactions(
    v: Floats, variances: Floats, masks: Masks, sets: Sequence[PlayerSet], index: str
) -> tuple[Floats, Floats]:
    """Index of every set and its variance, both (sets, n), from all 2^P values v and their variances, both (2^P, n)."""
    order = len(sets[-1])
    weights = derivative_weights(index, masks.shape[1], order)
    found = [
        (each_column(A, v), spread_of(A, variances))
        for A in (exact_operator(masks, some, weights) for some in _blocks(sets, len(masks)))
    ]
    return np.concatenate([values for values, _ in found]), np.concatenate([spread for _, spread in found])


def _blocks(sets: Sequence[PlayerSet], n_coalitions: int) -> Iterator[Sequence[PlayerSet]]:
    at_once = max(1, _LARGEST_BLOCK // n_coalitions)
    return (sets[start : start + at_once] for start in range(0, len(sets), at_once))


def spread_of(operator: Floats, variances: Floats) -> Floats:
    """Variances (m, n) of what an operator (m, C) makes of uncorrelated values with these variances (C, n).

    NaN where a value counts whose variance is not known.
    """
    unknown = np.isnan(variances)
    if not unknown.any():
        return each_column(operator**2, variances)
    found = each_column(operator**2, np.where(unknown, 0.0, variances))
    return np.where(each_column((operator != 0).astype(np.float64), unknown.astype(np.float64)) > 0, np.nan, found)


def common_players(masks: Masks, sets: Sequence[PlayerSet]) -> Indices:
    """How many players of every set are in every coalition, (sets, C)."""
    members = np.zeros((len(sets), masks.shape[1]))
    for position, one in enumerate(sets):
        members[position, list(one)] = 1.0
    return np.asarray(members @ masks.T.astype(np.float64)).astype(np.intp)
