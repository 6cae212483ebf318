"""Plan -> influence of every v(S) on the Shapley values: phi = A v, so that v(S) enters their variance with A_jS^2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.numerics.kriging import kriging_influences
from condshap.numerics.shapley import can_separate, shapley_coefficients, wls_operator
from condshap.types import Floats


def influences(plan: CoalitionPlan) -> Floats | None:
    """A_jS of v(S) on every Shapley value, (P, C): exact, or those of the regression; None where that has no answer."""
    if plan.components:
        return _by_steps(plan, influences)
    if plan.is_exact:
        inside, outside = shapley_coefficients(plan.n_players)
        return np.asarray(np.where(plan.masks.T, inside[plan.sizes], outside[plan.sizes]))
    if not can_separate(plan.masks[plan.interior], plan.weights[plan.interior]):
        return None
    return wls_operator(plan.masks, plan.weights)[0]


def squared_influences(plan: CoalitionPlan) -> Floats:
    """A_jS^2 of every v(S) on every Shapley value, (P, C); the largest of several where kriging chooses by the game."""
    if plan.components:
        return _by_steps(plan, squared_influences)
    if plan.is_exact or not plan.is_kriged:
        found = influences(plan)
        return np.asarray((wls_operator(plan.masks, plan.weights)[0] if found is None else found) ** 2)
    first, last = np.array(plan.pairs()).T
    found = np.zeros((plan.n_players, len(plan.masks)))  # v of the empty and of the grand coalition is known
    found[:, first] = found[:, last] = kriging_influences(plan.masks[first]) / 4  # o is half a difference
    return found


def _by_steps(plan: CoalitionPlan, of_plan: Callable[[CoalitionPlan], Floats | None]) -> Floats:
    """Influences (P, C) in the games of single components, as `of_plan` has them."""
    found = np.zeros((plan.n_players, len(plan.masks)))
    for step in plan.steps():
        own = of_plan(step.plan)
        assert own is not None  # a component's own plan tells its players apart
        found[np.ix_(step.players, step.positions)] = own
    return found


def sensitivities(plan: CoalitionPlan) -> Floats:
    """Squared influence sum_j A_jS^2 of every v(S) on the Shapley values, shape (C,)."""
    if plan.is_exact:
        inside, outside = shapley_coefficients(plan.n_players)
        sizes = np.arange(plan.n_players + 1)
        by_size = sizes * inside**2 + (plan.n_players - sizes) * outside**2
        return np.asarray(by_size[plan.sizes])
    return np.asarray(squared_influences(plan).sum(axis=0))
