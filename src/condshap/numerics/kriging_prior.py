r"""Coalition pairs -> Shapley values by kriging: far fewer coalitions than by regression on the players alone.

Shapley values depend on the odd part o(S) = (v(S) - v(S^c)) / 2 of a game only. In signs z_j = 1 for j in S and -1
otherwise, o is a sum of odd monomials. Its linear part is estimated without any prior, as in the constrained regression of
KernelSHAP. What that regression calls error is mostly interactions of three and more players, and those are smooth: o of
one coalition tells something about its neighbours. So the rest is taken as a Gaussian process with the covariance

.. math::

    k(S, S') = \sum_{d, b} w_{db}\, e_d(r_1 z_1 z'_1, \ldots, r_P z_P z'_P)\, (\sigma \sigma')^b,

where e_d sums the products of d different arguments, sigma = (2 |S| - P) / P, and d + b is odd. Terms with b = 0 are
interactions of d players; those with b > 0 are effects and interactions that change with the size of the coalition, as they
do when features depend on each other. r_j > 0 is the relevance of player j: interactions of relevant players are larger. All
r_j are 1 unless a game tells otherwise, see `condshap.numerics.relevance`; then the interactions of three, e_3, go by pairs
of players as well, see `condshap.numerics.threes`.

Shapley values of a realisation are known in closed form: z_T sigma^b is symmetric in the members of T and in the others,
so every coefficient spreads over players by two numbers that depend on (P, d, b) only. Leaving out one pair after the other
costs nothing, so the error is judged by pairs that the fit has not seen. What no term describes is a part of the game, of
every coalition by itself: it counts in the Shapley values wherever a pair is known, so that all pairs together give them
exactly. Monte Carlo noise of o, whose variances are known, stands beside it on the diagonal and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri

from condshap.numerics.relevance import Involvement
from condshap.numerics.shapley import shapley_coefficients
from condshap.numerics.threes import threes
from condshap.types import Floats, Masks


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
        (
            {(3, 0): 0.3, (5, 0): 0.01, (1, 2): 0.5, (1, 4): 0.3, (2, 1): 1.0, (2, 3): 1.0, (3, 2): 0.3, (4, 1): 0.1},
            0.0005,
        ),
        (
            {(1, 2): 1.0, (1, 4): 1.0, (1, 6): 0.3, (2, 1): 0.3, (2, 3): 0.3, (2, 5): 0.1, (3, 0): 0.01, (3, 2): 0.01},
            0.0001,
        ),
    )
)
"""Games of interactions among few players, games of strongly dependent features, one between, smooth ones, and games in
which little but the size of the coalition changes the effects."""
_EXACTLY = 1e-9
_BLOCK = 32


@dataclass(frozen=True, slots=True, eq=False)
class OddSolver:
    """Linear solver for n pairs and the grand coalition, whose o come last; P players.

    Attributes
    ----------
    A : (P, n + 1) such that phi = A o
    whitener : (n + 1, n + 1), the inverse of the covariance's lower Cholesky factor
    basis : (n + 1, P) orthonormal, of the players' effects after whitening
    own : (n + 1,) diagonal of Q, where (Q o)_i / Q_ii is the error of predicting o_i from all others
    posterior : (P,) variances of phi because pairs are missing, for a scale of 1 and without the nugget's part
    log_volume : logarithm of the determinants in the restricted likelihood
    """

    A: Floats
    whitener: Floats
    basis: Floats
    own: Floats
    posterior: Floats
    log_volume: float

    def residuals(self, odd: Floats) -> tuple[Floats, float]:
        """Q o (n + 1,) of one game o (n + 1,), and its restricted log-likelihood at the best scale, up to a constant."""
        white = self.whitener @ odd
        white = white - self.basis @ (self.basis.T @ white)
        n_free = len(odd) - len(self.A)
        likelihood = -0.5 * (n_free * np.log(max(float(white @ white), 1e-300)) + self.log_volume)
        return np.asarray(self.whitener.T @ white), float(likelihood)


@dataclass(frozen=True, slots=True, eq=False)
class OddPrior:
    """Covariance of n pairs and the grand coalition, and of these with the Shapley values of P players.

    Attributes
    ----------
    signs : (n + 1, P)
    matrix : (n + 1, n + 1) covariance of o, the diagonal with what no term describes
    sections : (n + 1, P) covariances of o with the Shapley values
    variances : (P,) of the Shapley values
    """

    signs: Floats
    matrix: Floats
    sections: Floats
    variances: Floats

    def unexplained(self) -> float:
        """Mean variance of o per degree of freedom that effects of single players leave, for a scale of 1."""
        basis = np.linalg.qr(self.signs)[0]
        explained = float((basis * (self.matrix @ basis)).sum())
        return (float(np.trace(self.matrix)) - explained) / (len(self.signs) - len(self.variances))

    def solver(self, nugget: Floats | float = 0.0) -> OddSolver:
        """Universal kriging with noise of these variances (n,) in o of the pairs, in units of this covariance."""
        n_players = self.signs.shape[1]
        noise = np.broadcast_to(np.asarray(nugget, dtype=np.float64), (len(self.signs) - 1,))
        factor = np.linalg.cholesky(self.matrix + np.diag(np.append(noise, 0.0)))
        whitener = np.asarray(dtrtri(factor, lower=1)[0])
        trend, sections = whitener @ self.signs, whitener @ self.sections
        small = np.linalg.cholesky(trend.T @ trend)
        basis = solve_triangular(small, trend.T, lower=True, check_finite=False).T
        wanted = 2.0 * np.eye(n_players) - trend.T @ sections  # z_j has the Shapley value 2 for j, 0 for others
        left = solve_triangular(small, wanted, lower=True, check_finite=False)
        A = (sections + basis @ left).T @ whitener
        total = self.variances - (sections**2).sum(axis=0) + (left**2).sum(axis=0)
        own = (whitener**2).sum(axis=0) - ((basis.T @ whitener) ** 2).sum(axis=0)
        posterior = np.maximum(total - A[:, :-1] ** 2 @ noise, 0.0)
        log_volume = 2.0 * float(np.log(np.diagonal(factor)).sum() + np.log(np.diagonal(small)).sum())
        return OddSolver(A, whitener, basis, own, posterior, log_volume)


def odd_prior(masks: Masks, covariance: Covariance, involved: Involvement | None = None) -> OddPrior:
    """Prior for one coalition (n, P) of every pair; without `involved` all players and pairs of players are alike."""
    n_pairs, P = masks.shape
    signs = 2.0 * np.concatenate([masks, np.ones((1, P), dtype=bool)]) - 1.0
    r = np.ones(P) if involved is None else involved.players
    slopes, all_slopes = signs.mean(axis=1), (2.0 * np.arange(1, P) - P) / P
    degrees = range(1, max(d for (d, _), _ in covariance.terms) + 1)
    of_one = _elementary([signs @ r**k if k % 2 else np.full(n_pairs + 1, (r**k).sum()) for k in degrees])
    of_all = _elementary([np.asarray((r**k).sum()) for k in degrees])
    without_one, without_all = _without_each(of_one, signs * r), _without_each(of_all, r)
    sections, variances = np.zeros((n_pairs + 1, P)), np.zeros(P)
    scaled: list[tuple[int, int, float]] = []
    by_pairs = 0.0
    for (d, b), weight in covariance.terms:
        scale = float(of_all[d]) * float((all_slopes ** (2 * b)).mean())
        if d > P or scale <= 0:  # fewer players than the term has
            continue
        if (d, b) == (3, 0) and involved is not None:
            by_pairs = weight
            continue
        w = weight / scale
        scaled.append((d, b, w))
        member, other = _shapley_of_term(P, d, b)
        spread = other * of_one[d][:, None] + (member - other) * signs * r * without_one[d - 1]
        sections += w * (slopes**b)[:, None] * spread
        variances += w * (other**2 * without_all[d] + member**2 * r * without_all[d - 1])
    prior = OddPrior(signs, _matrix(signs, r, scaled), sections, variances)
    if involved is not None and by_pairs > 0:
        _add_threes(prior, involved, by_pairs)
    _add_rest(prior, masks, covariance.rest)
    prior.matrix[-1, -1] += _EXACTLY  # v(all) - v(0) is met: the shares add up
    return prior


def _add_threes(prior: OddPrior, involved: Involvement, weight: float) -> None:
    """Add interactions of three players by the pairs among them, in place."""
    member = _shapley_of_term(len(prior.variances), 3, 0)[0]
    found = threes(prior.signs, np.sqrt(involved.players), involved.pairs)
    w = weight / found.total
    prior.matrix[:] += w * found.matrix
    prior.sections[:] += w * member * found.with_each
    prior.variances[:] += w * member**2 * found.total_with_each


def _add_rest(prior: OddPrior, masks: Masks, rest: float) -> None:
    """Add what no term describes, in place: independent from pair to pair, and a part of the game."""
    P = masks.shape[1]
    sizes, (inside, outside) = np.arange(1, P), shapley_coefficients(P)
    with_j, without_j = (np.array([comb(P - 1, s - k) for s in sizes]) for k in (1, 0))
    of_pairs = 2.0 * float(with_j @ inside[sizes] ** 2 + without_j @ outside[sizes] ** 2)  # half as many as coalitions
    prior.matrix[np.diag_indices(len(masks))] += rest
    prior.sections[:-1] += rest * pair_coefficients(masks).T
    prior.variances[:] += rest * of_pairs


def pair_coefficients(masks: Masks) -> Floats:
    """Coefficients (P, n) of o in the Shapley values, by eq. (1) of the paper, of one coalition (n, P) of every pair."""
    inside, outside = shapley_coefficients(masks.shape[1])
    sizes = masks.sum(axis=1)
    return np.asarray(2.0 * np.where(masks.T, inside[sizes], outside[sizes]))  # v(S) - v(S^c) is twice its odd part


def _matrix(signs: Floats, relevance: Floats, terms: Sequence[tuple[int, int, float]]) -> Floats:
    """Sum (n, n) of terms (d, b, w) for coalitions with these signs (n, P), in blocks of lines that the cache can hold."""
    found, slopes = np.zeros((len(signs), len(signs))), signs.mean(axis=1)
    largest = max((d for d, _, _ in terms), default=1)
    for start in range(0, len(signs), _BLOCK):
        some = slice(start, start + _BLOCK)
        e = _elementary(_power_sums(signs[some], signs, relevance, largest))
        for b in {b for _, b, _ in terms}:
            total = np.asarray(sum(w * e[d] for d, own, w in terms if own == b))
            power = slopes**b
            found[some] += total * (power[some, None] * power) if b else total
    return found


def _power_sums(some: Floats, signs: Floats, relevance: Floats, largest: int) -> list[Floats]:
    """Sums over j of (r_j z_j z'_j)^k, k = 1, ..., largest: (m, n) for odd k, one number for even k."""
    r = relevance
    if (r == 1.0).all():  # all odd powers are the same
        odd = some @ signs.T
        return [odd if k % 2 else np.full((1, 1), float(len(r))) for k in range(1, largest + 1)]
    return [(some * r**k) @ signs.T if k % 2 else np.full((1, 1), (r**k).sum()) for k in range(1, largest + 1)]


def _elementary(sums: Sequence[Floats]) -> list[Floats]:
    """Elementary symmetric polynomials e_0, e_1, ... from power sums p_1, p_2, ..., by Newton's identities."""
    found: list[Floats] = [np.ones_like(sums[0])]
    for d in range(1, len(sums) + 1):
        total = found[d - 1] * sums[0]
        for k in range(2, d + 1):
            total = total + found[d - k] * sums[k - 1] if k % 2 else total - found[d - k] * sums[k - 1]
        found.append(np.asarray(total / d))
    return found


def _without_each(elementary: Sequence[Floats], arguments: Floats) -> list[Floats]:
    """Elementary polynomials (..., P) of all arguments (..., P) but one, for each one."""
    found: list[Floats] = [np.ones_like(arguments)]
    for e in elementary[1:]:
        found.append(e[..., None] - arguments * found[-1])
    return found


@lru_cache(maxsize=256)
def _shapley_of_term(n_players: int, d: int, b: int) -> tuple[float, float]:
    """Shapley values of S -> z_T sigma^b for |T| = d: of a member of T and of any other player.

    phi_j is the mean over sizes s of the others of E[v(S + j) - v(S)], with S uniform among coalitions of s others.
    """
    P = n_players
    slopes = (2.0 * np.arange(P + 1) - P) / P
    after, before = slopes[1:] ** b, slopes[:-1] ** b
    member = float((_mean_products(d - 1, P - 1) * (after + before)).mean()) if d <= P else 0.0
    other = float((_mean_products(d, P - 1) * (after - before)).mean()) if d < P else 0.0
    return member, other


def _mean_products(d: int, n_players: int) -> Floats:
    """Mean product of the signs of d players when s = 0, ..., n of all n are in the coalition, shape (n + 1,)."""
    total = np.zeros(n_players + 1)
    for s in range(n_players + 1):
        held = range(max(0, d + s - n_players), min(d, s) + 1)
        signed = sum((-1) ** (d - t) * comb(d, t) * comb(n_players - d, s - t) for t in held)
        total[s] = signed / comb(n_players, s)  # whole numbers until here: nothing cancels
    return total
