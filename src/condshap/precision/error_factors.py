"""Pilot -> how much better than independent draws samples are, so that standard errors are honest.

The spread of blocks of a net (`condshap.numerics.blocks`) tells the error of each row and coalition up to a factor; a pilot
run at fit measures it, on training rows, so that errors do not depend on which rows are explained together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from condshap.approaches.base import ConditionalSampler
from condshap.coalitions import CoalitionPlan
from condshap.precision.influence import sensitivities
from condshap.seeding import generator, hash_words, row_keys, stage_word
from condshap.types import Floats, Indices, Masks, Rows
from condshap.values.assignments import Part
from condshap.values.engine import Request, ValueEngine
from condshap.values.table import Moments

_PILOT_PAIRS = 48
_PILOT_COALITIONS = 16
_PRIOR_PAIRS = 4
_CELLS = 8
_PILOT_NUMBERS = 2**22  # drawn at once


def measure_error_factors(
    part: Part,
    engine: ValueEngine,
    X: Rows,
    plan: CoalitionPlan,
    masks: Masks,
    n_samples: Indices,
    *,
    seed: int,
) -> Floats:
    """Variance of v(S) over what `Moments` say, per output, for the part's coalitions, shape (c, O).

    In cells of coalitions of similar size, pairs of a coalition and a training row are estimated twice, with independent
    randomisations. The squared differences estimate the variance without any assumption on the sampler. A single sample
    says nothing about its own variance, so no factor can help; it is 1.

    Parameters
    ----------
    X : (N, M) training rows
    masks : (C, M) known features of the plan's coalitions
    n_samples : (C,) samples per coalition
    """
    rng = generator(seed, "pilot")
    influence = sensitivities(plan)
    cells = [cell for cell in _cells(part, plan, n_samples) if n_samples[cell[0]] > 1]
    factors = np.ones((len(plan.masks), len(engine.predictor.output_names)))
    if not cells:
        return np.asarray(factors[part.positions])
    requests: list[list[Request]] = []
    for cell in cells:
        chance = influence[cell] / influence[cell].sum()
        chosen = rng.choice(cell, size=min(len(cell), _PILOT_COALITIONS), replace=False, p=chance)
        n_rows = min(len(X), _PILOT_PAIRS // len(chosen))
        rows = [X[rng.choice(len(X), size=n_rows, replace=False)] for _ in chosen]
        own = _ask_twice(part.approach, rows, masks[chosen], int(n_samples[cell[0]]), seed, engine.predictor.units)
        requests.append(list(own))
    (found,) = engine.run([[one for own in requests for one in own]])  # one call of the model
    moments = iter(found)
    ratios, n_pairs = np.swapaxes([_variance_ratio(_pair_up(own, moments)) for own in requests], 0, 1)
    for cell, factor in zip(cells, _shrink(ratios, n_pairs), strict=True):
        factors[cell] = factor
    return np.asarray(factors[part.positions])


def _ask_twice(
    sampler: ConditionalSampler,
    rows: Sequence[Rows],
    masks: Masks,
    n_samples: int,
    seed: int,
    units: Floats | None,
) -> Iterator[Request]:
    """Ask for each coalition (C, M) and its own rows (n, M) twice, in requests that come in pairs of different streams.

    A few coalitions at a time are sampled for each other's rows as well: that is cheaper than a call for each.
    """
    at_once = max(1, int(np.sqrt(_PILOT_NUMBERS / (rows[0].size * n_samples))))
    for start in range(0, len(masks), at_once):
        some, asked = rows[start : start + at_once], masks[start : start + at_once]
        together, n = np.concatenate(some), len(some[0])
        own = tuple(slice(c * n, (c + 1) * n) for c in range(len(some)))
        for stage in ("pilot", "pilot again"):
            keys = hash_words(stage_word(stage), row_keys(together, units))
            yield Request(sampler, together, keys, asked, n_samples, seed, own)


def _pair_up(requests: Sequence[Request], moments: Iterator[Moments]) -> list[tuple[Moments, Moments]]:
    """Both answers for each coalition of requests that come in pairs; takes as many of the moments."""
    pairs: list[tuple[Moments, Moments]] = []
    for request in requests[::2]:
        assert request.own is not None
        first, second = ([next(moments) for _ in request.own] for _ in range(2))
        pairs += zip(first, second, strict=True)
    return pairs


def _variance_ratio(replicates: list[tuple[Moments, Moments]]) -> tuple[Floats, Floats]:
    """Measured over stated variance of a cell's pairs, and how many pairs of equal weight are as much evidence, both (O,).

    A pair counts by its variance up to the cell's mean, and hardly more beyond: large variances matter most for phi, but a
    single pair must not decide alone.
    """
    measured = np.concatenate([(a.means[0] - b.means[0]) ** 2 / 2 for a, b in replicates])  # (pairs, O)
    stated = np.concatenate([(a.variances[0] + b.variances[0]) / 2 for a, b in replicates])
    scale = stated + stated.mean(axis=0)
    weighted = stated / np.where(scale > 0, scale, 1.0)
    total = weighted.sum(axis=0)
    found = (measured / np.where(scale > 0, scale, 1.0)).sum(axis=0)
    ratio = np.where(total > 0, found / np.where(total > 0, total, 1.0), 1.0)
    return ratio, total**2 / np.where(total > 0, (weighted**2).sum(axis=0), 1.0)


def _shrink(ratios: Floats, n_pairs: Floats) -> Floats:
    """Factors (cells, O) from ratios and the pairs behind them, both (cells, O), drawn to those of all cells, these to 1.

    Where the model does not move around the training rows, nothing was measured: the factor of independent blocks, 1, is
    then on the safe side, because nets do no worse.
    """
    common = ((n_pairs * ratios).sum(axis=0) + _PRIOR_PAIRS) / (n_pairs.sum(axis=0) + _PRIOR_PAIRS)
    return np.asarray((n_pairs * ratios + _PRIOR_PAIRS * common) / (n_pairs + _PRIOR_PAIRS))


def _cells(part: Part, plan: CoalitionPlan, n_samples: Indices) -> list[Indices]:
    """Coalitions of a part by size, neighbouring sizes together where there are many, never with different K."""
    sizes = plan.sizes[part.positions]
    present = np.unique(sizes)
    cells: list[Indices] = []
    for some in np.array_split(present, min(_CELLS, max(1, len(present)))):
        positions = part.positions[np.isin(sizes, some)]
        cells += [positions[n_samples[positions] == k] for k in np.unique(n_samples[positions])]
    return cells
