r"""Coalition pairs -> Shapley values by kriging: far fewer coalitions than by regression on the players alone.

Shapley values depend on the odd part o(S) = (v(S) - v(S^c)) / 2 of a game only. In signs z_j = 1 for j in S and -1
otherwise, o is a sum of odd monomials. Its linear part is estimated without any prior, as in the constrained regression of
KernelSHAP. What that regression calls error is mostly interactions of three and more players, and those are smooth: o of
one coalition tells something about its neighbours. So the rest is taken as a Gaussian process with the covariance

.. math::

    k(S, S') = \sum_{d, b} w_{db}\, e_d(z \cdot z')\, (\sigma \sigma')^b,

where e_d sums the products of d different z_j z'_j, sigma = (2 |S| - P) / P, and d + b is odd. Terms with b = 0 are
interactions of d players; those with b > 0 are effects and interactions of two that change with the size of the
coalition, as they do when features depend on each other. Shapley values of a realisation are known in closed form, and
leaving out one pair after the other costs nothing, so the error is judged by pairs that the fit has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import gammaln

from condshap.types import Floats, Indices, Masks


@dataclass(frozen=True, slots=True)
class Covariance:
    """Variances w of the terms (d, b), averaged over coalition sizes, and of what no term describes; ratios matter."""

    terms: tuple[tuple[tuple[int, int], float], ...]
    rest: float


COVARIANCES = tuple(
    Covariance(tuple(terms.items()), rest)
    for terms, rest in (
        ({(3, 0): 2.0, (5, 0): 0.02, (1, 2): 0.3, (2, 1): 1.0, (2, 3): 0.03}, 0.01),
        ({(3, 0): 0.3, (5, 0): 0.05, (7, 0): 0.03, (1, 2): 0.5, (1, 4): 0.3, (2, 1): 1.0, (2, 3): 1.0}, 0.03),
        ({(3, 0): 0.03, (5, 0): 0.02, (7, 0): 0.03, (1, 2): 1.0, (1, 4): 0.5, (2, 1): 1.0, (2, 3): 10.0}, 0.3),
    )
)
"""Games of interactions among few players, games of strongly dependent features, and one between."""
_EXACTLY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class OddSolver:
    """Linear solver for n pairs and the grand coalition, whose o come last; P players.

    Attributes
    ----------
    A : (P, n + 1) such that phi = A o
    residual_operator : (n + 1, n + 1), Q; (Q o)_i / Q_ii is the error of predicting o_i from all others
    posterior : (P,) variances of phi under the covariance above, for a scale of 1
    log_volume : logarithm of the determinants in the restricted likelihood
    """

    A: Floats
    residual_operator: Floats
    posterior: Floats
    log_volume: float

    def likelihood(self, odd: Floats) -> Floats:
        """Restricted log-likelihood (n,) of games o (n + 1, n) at their best scale, up to a constant."""
        n_free = len(odd) - len(self.A)
        squares = np.einsum("in,in->n", odd, self.residual_operator @ odd)
        return np.asarray(-0.5 * (n_free * np.log(np.maximum(squares, 1e-300)) + self.log_volume))


def odd_solver(masks: Masks, covariance: Covariance) -> OddSolver:
    """Universal kriging of Shapley values from one coalition (n, P) of every pair; at least P pairs that differ."""
    n_players = masks.shape[1]
    everyone = np.concatenate([masks, np.ones((1, n_players), dtype=bool)])
    sizes, signs = everyone.sum(axis=1), 2.0 * everyone - 1.0
    matrix = _covariance(sizes[:, None], sizes[None, :], signs @ signs.T, n_players, covariance)
    matrix[np.diag_indices(len(masks))] += covariance.rest
    matrix[-1, -1] += _EXACTLY  # v(all) - v(0) is met: the shares add up
    inside, outside = _shapley_of_sections(n_players, covariance)
    of_sections = np.where(everyone, inside[sizes, None], outside[sizes, None])  # (n + 1, P)
    K = np.linalg.inv(matrix)
    trend = K @ signs
    gram = np.linalg.inv(signs.T @ trend)
    log_volume = np.linalg.slogdet(matrix)[1] - np.linalg.slogdet(gram)[1]
    Q = K - trend @ gram @ trend.T
    unexplained = 2.0 * np.eye(n_players) - trend.T @ of_sections  # z_j has the Shapley value 2 for j, 0 for others
    A = of_sections.T @ K + unexplained.T @ gram @ trend.T
    posterior = (
        _prior_variance(inside, outside, n_players)
        - np.einsum("np,np->p", of_sections, K @ of_sections)
        + np.einsum("kp,kl,lp->p", unexplained, gram, unexplained)
    )
    return OddSolver(A, Q, np.maximum(posterior, 0.0), float(log_volume))


def _covariance(
    sizes: Indices | Floats, others: Indices | Floats, products: Floats, n_players: int, covariance: Covariance
) -> Floats:
    """Evaluate k for coalitions of these sizes whose signs have these scalar products z'z'; all broadcast."""
    P = n_players
    e = [np.ones_like(products), products]
    for d in range(1, 7):  # Newton's identity for values +1 and -1
        e.append((products * e[d] - (P - d + 1) * e[d - 1]) / (d + 1))
    slopes = (2.0 * sizes - P) * (2.0 * others - P) / P**2
    all_slopes = (2.0 * np.arange(1, P) - P) ** 2 / P**2
    total = np.zeros(np.broadcast_shapes(products.shape, slopes.shape))
    for (d, b), weight in covariance.terms:
        scale = comb(P, d) * float((all_slopes**b).mean())
        if scale > 0:
            total += weight / scale * e[d] * slopes**b
    return total


@lru_cache(maxsize=8)
def _shapley_of_sections(n_players: int, covariance: Covariance) -> tuple[Floats, Floats]:
    r"""Shapley values of S -> k(S', S) for S' of sizes 0, ..., P: of members of S' and of the others, both (P + 1,).

    phi_j is the mean over sizes of E[k | j in S] - E[k | j not in S], with S uniform among coalitions of a size, so that
    |S \cap S'| is hypergeometric.
    """
    P = n_players
    inside, outside = np.zeros((2, P + 1))
    s, t = np.meshgrid(np.arange(P + 1), np.arange(P + 1), indexing="ij")
    for size in range(P + 1):
        k = _covariance(s, np.asarray(size), np.asarray(P - 2.0 * (s + size - 2 * t)), P, covariance)
        if size > 0:
            chance = _hypergeometric(t - 1, size - 1, s - 1, P - 1) - _hypergeometric(t, size - 1, s, P - 1)
            inside[size] = (chance * k).sum() / P
        if size < P:
            chance = _hypergeometric(t, size, s - 1, P - 1) - _hypergeometric(t, size, s, P - 1)
            outside[size] = (chance * k).sum() / P
    return inside, outside


def _hypergeometric(t: Indices, marked: int, drawn: Indices, total: int) -> Floats:
    """Probability that `drawn` of `total` players hold t of the `marked` ones; 0 where that cannot be."""
    possible = (t >= 0) & (t <= marked) & (drawn >= t) & (drawn - t <= total - marked) & (drawn <= total)
    held, others = t[possible], (drawn - t)[possible]
    log_factorial = gammaln(np.arange(total + 2) + 1.0)

    def log_comb(n: int, k: Indices) -> Floats:
        return np.asarray(log_factorial[n] - log_factorial[k] - log_factorial[n - k])

    chance = np.zeros(t.shape)
    chance[possible] = np.exp(
        log_comb(marked, held) + log_comb(total - marked, others) - log_comb(total, held + others)
    )
    return chance


def _prior_variance(inside: Floats, outside: Floats, n_players: int) -> float:
    """Variance of phi_j: Shapley value of the function that has these values for coalitions with and without j."""
    return float((inside[1:] - outside[:-1]).sum() / n_players)
