"""Values of coalition pairs with known noise -> Shapley values of one game, and what their errors come from.

Every game takes the mean over several covariances, weighted by their restricted likelihoods, which are their posterior
probabilities. The same covariances serve all games, but for one: up to 12 pairs a player, and 512 in all, the likeliest of
them is tried again with what the game's own players and pairs of players tell and the noise of each pair. Beyond that, pairs
of coalitions tell more than a guess at interactions.

Noise enters the common covariances as one nugget for all pairs, a power of two, so that few decompositions serve all games
and no game's answer depends on the others. Its ratio to the covariance comes from what a regression on the players leaves:
its mean square less the variance of the noise is the covariance's share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from condshap.numerics.kriging_prior import COVARIANCES, OddPrior, OddSolver, odd_prior, pair_coefficients
from condshap.numerics.relevance import Relevance
from condshap.types import Floats, Masks

_DRAWN = 0.4
"""Weight of Horvitz and Thompson's variance: with it two standard errors cover 93 % or more in every game of the suite."""
_APART = 3.0  # ratio of the two variances, on average over players, beyond which the larger one is not believed
_OWN_PER_PLAYER, _OWN_PAIRS = 12, 512
_LEAST_SHARE = 0.02  # of what the regression leaves: less cannot be told from nothing
_MOST_NOISE = 256.0  # variance of the noise over that of the covariance
_NO_NOISE = 1e-4
_FOLLOWED = 1e-9  # of the largest: a pair that the fit follows exactly whatever its value tells nothing about errors


@dataclass(frozen=True, slots=True, eq=False)
class Kriged:
    """Shapley values (P,) of one game, and their variances because pairs are missing and because v(S) is noisy."""

    phi: Floats
    missing: Floats
    noisy: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """What one solver says about one game; the same as `Kriged`, and the logarithm of its likelihood."""

    phi: Floats
    missing: Floats
    noisy: Floats
    likelihood: float


class PairKriging:
    """Kriging of games of which one coalition (n, P) of every pair is known, with its probability (n,) of being drawn."""

    def __init__(self, masks: Masks, inclusion: Floats) -> None:
        n_pairs, n_players = masks.shape
        self.masks = masks
        self.priors = [odd_prior(masks, covariance) for covariance in COVARIANCES]
        self.unexplained = [prior.unexplained() for prior in self.priors]
        self.solvers: dict[tuple[int, float], OddSolver] = {}
        self.basis = np.linalg.qr(self.priors[0].signs)[0]
        self.influence = missing_influence(masks, inclusion)
        self.n_free = n_pairs + 1 - n_players
        looks_at_players = n_pairs <= min(_OWN_PER_PLAYER * n_players, _OWN_PAIRS)
        self.relevance = Relevance.of(masks) if looks_at_players else None

    def solve(self, odd: Floats, even: Floats, noise: Floats) -> Kriged:
        """Solve one game.

        Parameters
        ----------
        odd : (n + 1,) odd parts of the pairs and, last, of the grand coalition
        even : (n,) even parts
        noise : (n,) variances of the odd parts
        """
        ratio = self._noise_ratio(odd, noise)
        answers = [self._answer(self._common(c, ratio), odd, noise) for c in range(len(self.priors))]
        if self.relevance is not None:
            likeliest = int(np.argmax([answer.likelihood for answer in answers]))
            prior = odd_prior(self.masks, COVARIANCES[likeliest], self.relevance.measure(odd, even))
            answers.append(self._answer(self._own(prior, ratio, noise), odd, noise))
        return _averaged(answers)

    def _noise_ratio(self, odd: Floats, noise: Floats) -> float:
        """Mean variance of the noise over that of what else a regression on the players leaves."""
        left = float(odd @ odd - ((self.basis.T @ odd) ** 2).sum()) / self.n_free
        mean = float(noise.mean())
        game = max(left - mean, _LEAST_SHARE * left, mean / _MOST_NOISE)
        return mean / game if mean > _NO_NOISE * game else 0.0

    def _common(self, c: int, ratio: float) -> OddSolver:
        """Solver of one of the common covariances, from those at hand if there is one with this nugget."""
        nugget = float(2.0 ** np.rint(np.log2(ratio * self.unexplained[c]))) if ratio > 0 else 0.0
        if (c, nugget) not in self.solvers:
            self.solvers[c, nugget] = self.priors[c].solver(nugget)
        return self.solvers[c, nugget]

    def _own(self, prior: OddPrior, ratio: float, noise: Floats) -> OddSolver:
        """Solver for the noise (n,) of each pair."""
        return prior.solver(ratio * prior.unexplained() * noise / noise.mean() if ratio > 0 else 0.0)

    def _answer(self, solver: OddSolver, odd: Floats, noise: Floats) -> _Answer:
        """Answer of one solver, with the variance because some pairs were drawn and others not.

        That is estimated twice, from what the fit misses of every pair when that pair is left out: by the kriging
        variance, scaled to these misses, and by Horvitz and Thompson's formula, which trusts no covariance but takes pairs
        as drawn independently. They are not, they keep apart, so it is too large and has less weight; with few pairs it
        says nothing, and where nearly all are there the covariance claims too much, so neither may be more than three times
        the other. The formula sees the misses of pairs that are there, and a player's own pairs matter most when they are
        not, so it speaks for all players together. The scale looks at pairs by their influence, so that sizes of which all
        coalitions are there do not speak for the others.
        """
        residuals, likelihood = solver.residuals(odd)
        is_judged = solver.own[:-1] > _FOLLOWED * solver.own[:-1].max()
        own, squares = np.where(is_judged, solver.own[:-1], 1.0), np.where(is_judged, residuals[:-1] ** 2, 0.0)
        weights = np.where(is_judged, self.influence, 0.0)
        scale = float(weights @ (squares / own)) / max(float(weights.sum()), 1e-300)
        with_noise = float(self.influence @ (squares / own**2))
        kriged = solver.posterior * scale
        kriged *= min(1.0, _APART * with_noise / max(float(kriged.mean()), 1e-300))
        drawn = max(with_noise - float(self.influence @ noise), 0.0)
        drawn = min(drawn, _APART * float(kriged.mean()))
        missing = ((1.0 - _DRAWN) * kriged + _DRAWN * drawn) * few_pairs_factor(self.n_free)
        return _Answer(solver.A @ odd, missing, solver.A[:, :-1] ** 2 @ noise, likelihood)


def _averaged(answers: list[_Answer]) -> Kriged:
    """Mean by probability; how far answers lie apart is counted among what is missing."""
    likelihood = np.array([answer.likelihood for answer in answers])
    probability = np.exp(likelihood - likelihood.max())
    probability /= probability.sum()
    phi = np.array([answer.phi for answer in answers])
    mean = probability @ phi
    missing = probability @ (np.array([answer.missing for answer in answers]) + (phi - mean) ** 2)
    return Kriged(mean, missing, probability @ np.array([answer.noisy for answer in answers]))


def kriging_influences(masks: Masks) -> Floats:
    """Largest squared influence (P, n) that o of a pair has on the Shapley values by any of the common covariances."""
    return np.asarray(np.max([odd_prior(masks, one).solver().A[:, :-1] ** 2 for one in COVARIANCES], axis=0))


def missing_influence(masks: Masks, inclusion: Floats) -> Floats:
    """Weights (n,) of squared misses of pairs in the variance by Horvitz and Thompson, on average over players."""
    return np.asarray((pair_coefficients(masks) ** 2).mean(axis=0) * (1.0 - inclusion) / inclusion**2)


def few_pairs_factor(spare: int) -> float:
    """Square of the t over the normal quantile at 97.5 %, so that 1.96 standard errors cover 95 % with few spare pairs."""
    return float(stdtrit(max(spare, 1), 0.975) / ndtri(0.975)) ** 2
