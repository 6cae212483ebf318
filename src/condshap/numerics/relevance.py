r"""Values of coalition pairs -> how much each player, and each pair of players, takes part in interactions.

Interactions of three players, which blur Shapley values, are rarely spread evenly: players with an effect of their own and
players that interact in pairs are those that interact in threes. Effects stand in the odd part of a game. Interactions of
two stand in its even part (v(S) + v(S^c)) / 2, which Shapley values do not need and which costs nothing here: it is fitted
by a constant, a curve in the size, and a ridge over all products z_j z_k. The relevance of player j is then

.. math::

    r_j = (0.1 + |\beta_j|^{1/4} \gamma_j^{3/4})^2, \qquad \gamma_j^2 = \sum_k c_{jk}^2,

with effects beta and gamma both over the largest, and a mean of 1. Three players mostly interact where two of them do, as
in the branches of a tree, so pairs of players have weights, too: g_jk = 0.003 + |c_jk|^{3/2}, with c over the largest. Of
many pairs the 200 heaviest keep theirs and all others get the mean of these others, as work grows with their number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.types import Floats, Indices, Masks

_RIDGE = 0.05
_LEAST = 0.1
_POWER = 2.0
_SHARE_OF_EFFECTS = 0.25
_LEAST_OF_PAIRS = 0.003
_POWER_OF_PAIRS = 1.5
_MOST_PAIRS = 200  # all that 20 players have


@dataclass(frozen=True, slots=True, eq=False)
class Involvement:
    """How much players take part in interactions, by themselves (P,) and by twos (P, P), 0 on the diagonal."""

    players: Floats
    pairs: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """Linear fits of the effects (P, n + 1) from o, and of the products (P (P - 1) / 2, n) from the even part."""

    effects: Floats
    products: Floats
    first: Indices
    second: Indices

    @classmethod
    def of(cls, masks: Masks) -> Relevance:
        """Fits for one coalition (n, P) of every pair."""
        n_pairs, n_players = masks.shape
        signs = 2.0 * masks - 1.0
        first, second = np.triu_indices(n_players, 1)
        products = signs[:, first] * signs[:, second]
        curve = np.column_stack([np.ones(n_pairs), signs.mean(axis=1) ** 2])
        K = np.linalg.inv(products @ products.T / len(first) + _RIDGE * np.eye(n_pairs))
        off_curve = K - K @ curve @ np.linalg.pinv(curve.T @ K @ curve) @ curve.T @ K
        effects = np.linalg.pinv(np.concatenate([signs, np.ones((1, n_players))]))
        return cls(effects, products.T @ off_curve, first, second)

    def measure(self, odd: Floats, even: Floats) -> Involvement:
        """Involvement of the players of one game, from o (n + 1,) and the even part (n,)."""
        n_players = len(self.effects)
        coefficients = np.zeros((n_players, n_players))
        coefficients[self.first, self.second] = np.abs(self.products @ even)
        coefficients += coefficients.T
        effects = _over_largest(np.abs(self.effects @ odd)) ** _SHARE_OF_EFFECTS
        taking_part = _over_largest(np.sqrt((coefficients**2).sum(axis=1))) ** (1.0 - _SHARE_OF_EFFECTS)
        players = (_LEAST + effects * taking_part) ** _POWER
        pairs = np.zeros_like(coefficients)
        of_pairs = _over_largest(coefficients)[self.first, self.second] ** _POWER_OF_PAIRS
        pairs[self.first, self.second] = _LEAST_OF_PAIRS + _levelled(of_pairs)
        return Involvement(players / players.mean(), pairs + pairs.T)


def _over_largest(numbers: Floats) -> Floats:
    """Numbers over the largest; all 1 where there is nothing to tell them apart."""
    largest = float(numbers.max())
    return numbers / largest if largest > 0 else np.ones_like(numbers)


def _levelled(weights: Floats) -> Floats:
    """Weights of which the largest stay as they are and the others share their mean."""
    if len(weights) <= _MOST_PAIRS:
        return weights
    is_small = np.ones(len(weights), dtype=bool)
    is_small[np.argsort(weights, kind="stable")[-_MOST_PAIRS:]] = False
    return np.where(is_small, weights[is_small].mean(), weights)
