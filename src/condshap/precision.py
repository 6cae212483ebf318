"""Plan, pilot -> samples per coalition, and how much better than independent draws they are.

Shapley values are phi = A v, so v(S) enters their variance with sum_j A_jS^2. Samples go where that is large: to the few
smallest coalitions, mostly. Quasi-Monte Carlo makes the usual standard errors several times too wide; a pilot run at
fit measures by how much, on training rows, so that errors do not depend on which rows are explained together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.approaches.base import ConditionalSampler
from condshap.coalitions import CoalitionPlan
from condshap.numerics.shapley import shapley_coefficients, wls_operator
from condshap.predict import Predictor
from condshap.seeding import derive_seed, generator, row_keys
from condshap.types import Floats, Indices, Masks, Rows
from condshap.values import Moments, evaluate

_MOST, _LEAST = 256, 16
_MEAN_CAP, _FEW = 64, 64
_PILOT_PAIRS = 48
_PILOT_COALITIONS = 12
_CELLS = 8


def sensitivities(plan: CoalitionPlan) -> Floats:
    """Squared influence sum_j A_jS^2 of every v(S) on the Shapley values, shape (C,)."""
    if plan.is_exact:
        inside, outside = shapley_coefficients(plan.n_players)
        sizes = np.arange(plan.n_players + 1)
        by_size = sizes * inside**2 + (plan.n_players - sizes) * outside**2
        return np.asarray(by_size[plan.sizes])
    A, _ = wls_operator(plan.masks, plan.weights)
    return np.asarray((A**2).sum(axis=0))


def allocate_samples(plan: CoalitionPlan) -> Indices:
    """Samples per coalition when the user gives no number, shape (C,): powers of two, the same for all of one size.

    K is proportional to the influence of a coalition of that size times sqrt(share of unknown players), a guess at the
    standard deviation of f given x_S (Neyman allocation), at most 256 and at least 16.
    """
    sizes = plan.sizes
    influence = np.sqrt(sensitivities(plan))
    wanted = np.zeros(plan.n_players + 1)
    for size in np.unique(sizes[plan.interior]):
        wanted[size] = influence[sizes == size].mean() * np.sqrt(1 - size / plan.n_players)
    top = wanted.max() or 1.0
    most = _MOST
    while True:
        K = 2 ** np.rint(np.log2(np.maximum(wanted / top * most, 1.0))).astype(np.intp)
        samples = np.clip(K, _LEAST, most)[sizes]
        few = len(sizes) <= _FEW or samples[plan.interior].mean() <= _MEAN_CAP
        if few or most <= _LEAST:
            return np.asarray(samples, dtype=np.intp)
        most //= 2


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot run needs: a fitted sampler, a model, training rows (N, M) and a seed."""

    approach: ConditionalSampler
    predictor: Predictor
    X: Rows
    seed: int

    def error_factor(self, masks: Masks, n_samples: int, rng: np.random.Generator) -> Floats:
        """Ratio of measured to nominal variance of v(S) over coalitions (c, M), for one K and every output, shape (O,)."""
        n_rows = min(len(self.X), -(-_PILOT_PAIRS // len(masks)))
        pairs = [(self.X[rng.choice(len(self.X), size=n_rows, replace=False)], mask[None]) for mask in masks]
        first, second = (self._estimate(pairs, n_samples, stage) for stage in ("pilot", "pilot again"))
        measured = sum(((a.means - b.means) ** 2 / 2).sum(axis=(0, 1)) for a, b in zip(first, second, strict=True))
        nominal = sum((a.variances + b.variances).sum(axis=(0, 1)) / 2 for a, b in zip(first, second, strict=True))
        return np.asarray(np.where(nominal > 0, measured / np.where(nominal > 0, nominal, 1.0), 0.0))

    def _estimate(self, pairs: list[tuple[Rows, Masks]], n_samples: int, stage: str) -> list[Moments]:
        seed = derive_seed(self.seed, stage)
        sample = self.approach.sample
        return evaluate(
            [(sample(rows, mask, n_samples, keys=row_keys(rows), seed=seed), rows, mask) for rows, mask in pairs],
            self.predictor,
        )


def measure_error_factors(pilot: Pilot, plan: CoalitionPlan, masks: Masks, n_samples: Indices) -> Floats:
    """Variance of v(S) over its variance under independent draws, per coalition and output, shape (C, O).

    In cells of coalitions of similar size, pairs of a coalition and a training row are estimated twice, with independent
    randomisations. The squared differences estimate the variance without any assumption on the sampler.

    Parameters
    ----------
    masks : (C, M) known features of the plan's coalitions
    n_samples : (C,) samples per coalition
    """
    rng = generator(pilot.seed, "pilot")
    influence = sensitivities(plan)
    factors = np.zeros((len(plan.masks), len(pilot.predictor.output_names)))
    for cell in _cells(plan, n_samples):
        chance = influence[cell] / influence[cell].sum()
        chosen = rng.choice(cell, size=min(len(cell), _PILOT_COALITIONS), replace=False, p=chance)
        factors[cell] = pilot.error_factor(masks[chosen], int(n_samples[cell[0]]), rng)
    return factors


def _cells(plan: CoalitionPlan, n_samples: Indices) -> list[Indices]:
    """Interior coalitions by size, neighbouring sizes together where there are many, never with different K."""
    sizes = plan.sizes
    inside = np.zeros(len(sizes), dtype=bool)
    inside[plan.interior] = True
    present = np.unique(sizes[inside])
    cells: list[Indices] = []
    for some in np.array_split(present, min(_CELLS, max(1, len(present)))):
        positions = np.flatnonzero(np.isin(sizes, some) & inside)
        cells += [positions[n_samples[positions] == k] for k in np.unique(n_samples[positions])]
    return cells
