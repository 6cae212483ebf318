"""Plan, approaches -> samples per coalition: where v(S) has much influence, and f given x_S is uncertain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condshap.approaches.base import is_sampler
from condshap.coalitions import CoalitionPlan
from condshap.numerics.sobol import nearest_power_of_two
from condshap.precision.influence import sensitivities
from condshap.types import Indices
from condshap.values.assignments import Part

_MOST, _LEAST = 256, 16
_MEAN_CAP, _FEW = 64, 64


def allocate_samples(plan: CoalitionPlan) -> Indices:
    """Samples per coalition when the user gives no number, shape (C,): powers of two, the same for all of one size.

    K is proportional to the influence of a coalition of that size times sqrt(share of unknown players), a guess at the
    standard deviation of f given x_S (Neyman allocation), at most 256 and at least 16. Among many coalitions, those with
    one unknown player get half of it: even draws of one player leave so little error that it hardly shows in phi.
    """
    sizes = plan.sizes
    influence = np.sqrt(sensitivities(plan))
    is_small = len(sizes) <= _FEW
    wanted = np.zeros(plan.n_players + 1)
    for size in np.unique(sizes[plan.interior]):
        wanted[size] = influence[sizes == size].mean() * np.sqrt(1 - size / plan.n_players)
    if not is_small:
        wanted[-2] /= 2
    top = wanted.max() or 1.0
    most = _MOST
    while True:
        K = nearest_power_of_two(np.maximum(wanted / top * most, 1.0)).astype(np.intp)
        samples = np.clip(K, _LEAST, most)[sizes]
        if is_small or samples[plan.interior].mean() <= _MEAN_CAP or most <= _LEAST:
            return np.asarray(samples, dtype=np.intp)
        most //= 2


def share_samples(
    parts: Sequence[Part], plan: CoalitionPlan, usual: CoalitionPlan, n_samples: int | None, n_train: int
) -> Indices:
    """Samples per coalition of a plan, (C,): as given, else as the approach wants it, else by coalition size.

    Parameters
    ----------
    parts : approaches and their coalitions; those that do not sample have 0
    usual : coalitions that are certainly asked for, by which sizes get their number
    n_samples : as given by the user
    n_train : training rows, of which there are no more to sample from
    """
    samples = np.zeros(len(plan.masks), dtype=np.intp)
    for part in parts:
        if not is_sampler(part.approach):
            continue
        default = part.can.default_samples
        if n_samples is not None:
            samples[part.positions] = n_samples
        elif default is None:
            by_size = np.zeros(usual.n_players + 1, dtype=np.intp)
            by_size[usual.sizes] = allocate_samples(usual)  # the same for all coalitions of a size
            samples[part.positions] = by_size[plan.sizes[part.positions]]
        else:
            samples[part.positions] = min(n_train, int(default))
    return samples
