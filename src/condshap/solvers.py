"""Value table, plan -> Shapley values and their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.numerics.shapley import exact_shapley, exact_shapley_variances, wls_operator
from condshap.types import Floats, Values


@dataclass(frozen=True, slots=True)
class ShapleyValues:
    """Shapley values and standard errors, both (R, P, O)."""

    values: Floats
    std_errors: Floats


def solve_shapley(values: Values, variances: Values, plan: CoalitionPlan) -> ShapleyValues:
    """Solve for Shapley values: by eq. (1) of the paper with all coalitions, by constrained regression otherwise.

    Parameters
    ----------
    values : (C, R, O) contribution function, in the plan's order
    variances : (C, R, O) Monte Carlo variances of `values`
    plan : the coalitions

    Returns
    -------
    Values that sum to v(all) - v(0) exactly, and standard errors from Monte Carlo and from sampling of coalitions.
    """
    n_coalitions, n_rows, n_outputs = values.shape
    v, noise = values.reshape(n_coalitions, -1), variances.reshape(n_coalitions, -1)
    if plan.is_exact:
        phi = exact_shapley(v, plan.masks)
        variance = exact_shapley_variances(noise, plan.masks)
    else:
        A, leverage = wls_operator(plan.masks, plan.weights)
        phi = A @ v
        variance = A**2 @ noise + _coalition_variances(v, noise, phi, A, leverage, plan)
    phi += (v[-1] - v[0] - phi.sum(axis=0)) / plan.n_players  # rounding only: both solvers are efficient already
    shape = (plan.n_players, n_rows, n_outputs)
    errors = np.sqrt(np.maximum(variance, 0.0))
    return ShapleyValues(phi.reshape(shape).swapaxes(0, 1).copy(), errors.reshape(shape).swapaxes(0, 1).copy())


def _coalition_variances(
    v: Floats, noise: Floats, phi: Floats, A: Floats, leverage: Floats, plan: CoalitionPlan
) -> Floats:
    """Variance (P, n) of phi because only some coalitions were drawn.

    The regression is a Horvitz-Thompson estimate of the one with all coalitions. A coalition and its complement come
    into the sample together, so the linearised variance is sum (1 - pi) u_p^2 over pairs p, with u_p the pair's
    residuals times their coefficients, enlarged by 1 / (1 - leverage). Monte Carlo noise in the residuals is
    counted elsewhere and taken off.
    """
    residuals = v - v[0] - plan.masks @ phi
    total = np.zeros_like(phi)
    for pair in plan.pairs():
        missing_share = 1.0 - plan.inclusion[pair[0]]
        if missing_share <= 0.0:
            continue
        kept = max(1.0 - leverage[pair].sum(), 0.05)
        influence = A[:, pair] @ residuals[pair]
        total += missing_share * (influence / kept) ** 2 - missing_share * A[:, pair] ** 2 @ noise[pair] / kept
    return np.maximum(total, 0.0)
