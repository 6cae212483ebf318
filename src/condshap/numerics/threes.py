r"""Weights of players and of pairs of players -> covariance of interactions of three players.

Three players interact where pairs of them do. With weights u_j of players and g_{jk} of pairs the covariance is

.. math::

    \sum_{j < k < l} u_j u_k u_l (g_{jk} + g_{kl} + g_{jl})\, x_j x_k x_l, \qquad x_j = z_j z'_j.

Every term is one of the product of sum_{j<k} h_{jk} x_j x_k, with h_{jk} = g_{jk} u_j u_k, and sum_l u_l x_l. The others of
that product have l = j or l = k, and x_j^2 = 1 leaves sum_k (H u)_k x_k of them. So no sum over all threes is needed. Nor is
one over pairs of players that weigh as little as the least: theirs is half of (sum_j u_j x_j)^2 - sum_j u_j^2, times that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Threes:
    """Interactions of three players, as n coalitions see them.

    Attributes
    ----------
    matrix : (n, n) covariance
    with_each : (n, P) sums of weights times z_j z_k z_l over all threes with one player
    total : sum of all weights
    total_with_each : (P,) sums of weights over all threes with one player
    """

    matrix: Floats
    with_each: Floats
    total: float
    total_with_each: Floats


def threes(signs: Floats, players: Floats, pairs: Floats) -> Threes:
    """Interactions of three for signs (n, P) by weights of players (P,) and of pairs (P, P), 0 on the diagonal."""
    H = pairs * np.outer(players, players)
    least = float(pairs[~np.eye(len(players), dtype=bool)].min())
    first, second = np.nonzero(np.triu(pairs, 1) > least)
    products, single = signs[:, first] * signs[:, second], (signs * players) @ signs.T
    matrix = (products * (H[first, second] - least * players[first] * players[second])) @ products.T
    matrix += least / 2.0 * (single**2 - float(players @ players))
    matrix *= single
    matrix -= (signs * (H @ players)) @ signs.T
    every = _with_each(np.ones((1, len(players))), players, H)[0]
    return Threes(matrix, _with_each(signs, players, H), float(every.sum()) / 3.0, every)


def _with_each(signs: Floats, players: Floats, H: Floats) -> Floats:
    """Sums (n, P) of weights times signs over threes with one player: its pairs with a third, and pairs of others."""
    towards = signs @ H  # (n, P) sums over k of h_jk z_k
    of_pairs = (towards * signs).sum(axis=1, keepdims=True) / 2.0
    third = (signs @ players)[:, None] - players * signs
    return np.asarray(signs * (players * (of_pairs - signs * towards) + towards * third - H @ players))
