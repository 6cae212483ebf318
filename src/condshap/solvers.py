"""Value table, plan -> Shapley values and their standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import TypeAlias

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.numerics.kriging import PairKriging, few_pairs_factor
from condshap.numerics.shapley import (
    column_sums,
    each_column,
    exact_shapley,
    exact_shapley_variances,
    shapley_coefficients,
    wls_operator,
)
from condshap.types import Floats, Values

_FOLLOWED = 0.1
_COLUMNS = 32


@dataclass(frozen=True, slots=True)
class ShapleyValues:
    """Shapley values and standard errors, both (R, P, O)."""

    values: Floats
    std_errors: Floats


def solve_shapley(values: Values, std_errors: Values, plan: CoalitionPlan) -> ShapleyValues:
    """Solve for Shapley values: by eq. (1) of the paper with all coalitions, by kriging from pairs, else by regression.

    Parameters
    ----------
    values : (C, R, O) contribution function, in the plan's order
    std_errors : (C, R, O) Monte Carlo standard errors of `values`; NaN where unknown, and then so are those of phi
    plan : the coalitions

    Returns
    -------
    Values that sum to v(all) - v(0) exactly, and standard errors from Monte Carlo and from sampling of coalitions.
    """
    if plan.components:
        return _solve_steps(values, std_errors, plan)
    if plan.is_kriged and not plan.is_exact:
        return solve_pairs(values, std_errors, plan)[0]
    n_coalitions, n_rows, n_outputs = values.shape
    v, errors = values.reshape(n_coalitions, -1), std_errors.reshape(n_coalitions, -1)
    phi, variance = np.empty((2, plan.n_players, v.shape[1]))
    solve = _solve_exactly if plan.is_exact else _regression(plan)
    at_once = max(_COLUMNS, 2**20 // n_coalitions)  # columns are rows times outputs; bounds the temporaries
    for start in range(0, v.shape[1], at_once):
        some = slice(start, start + at_once)
        phi[:, some], variance[:, some] = solve(v[:, some], errors[:, some] ** 2, plan)
    phi += (v[-1] - v[0] - column_sums(phi)) / plan.n_players  # rounding only: both solvers are efficient already
    shape = (plan.n_players, n_rows, n_outputs)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    return ShapleyValues(phi.reshape(shape).swapaxes(0, 1).copy(), deviation.reshape(shape).swapaxes(0, 1).copy())


def _solve_steps(values: Values, std_errors: Values, plan: CoalitionPlan) -> ShapleyValues:
    """Asymmetric values (Frye, Rowat and Feige 2020): Shapley values of one component's game after the other."""
    phi, errors = np.zeros((2, values.shape[1], plan.n_players, values.shape[2]))
    for step in plan.steps():
        own = solve_shapley(values[step.positions], std_errors[step.positions], step.plan)
        phi[:, step.players], errors[:, step.players] = own.values, own.std_errors
        # the sums of a sampled component are known but for the noise of its two ends, which kriging takes as exact
        if not step.plan.is_exact:
            ends = (std_errors[step.positions[[0, -1]]] ** 2).sum(axis=0) / len(step.players) ** 2
            errors[:, step.players] = np.hypot(errors[:, step.players], np.sqrt(ends)[:, None])
    return ShapleyValues(phi, errors)


def solve_pairs(values: Values, std_errors: Values, plan: CoalitionPlan) -> tuple[ShapleyValues, Floats]:
    """Solve for Shapley values from a plan of whole pairs by kriging, see `condshap.numerics.kriging`.

    Parameters
    ----------
    values, std_errors, plan : as in `solve_shapley`; with all coalitions the answer is the same

    Returns
    -------
    Values and standard errors, and (R, P, O) the part of these errors that more coalitions would take away.
    """
    if plan.is_exact:
        return solve_shapley(values, std_errors, plan), np.zeros((values.shape[1], plan.n_players, values.shape[2]))
    first, last = np.array(plan.pairs()).T
    kriging = PairKriging(plan.masks[first], plan.inclusion[first])
    phi, missing, noisy = np.empty((3, values.shape[1], plan.n_players, values.shape[2]))
    for r, o in np.ndindex(values.shape[1:]):  # one game at a time: products of matrices round by the number of columns
        v, noise = values[:, r, o], np.nan_to_num(std_errors[:, r, o]) ** 2  # unknown noise: as if there were none
        odd = np.append(v[first] - v[last], v[-1] - v[0]) / 2
        solved = kriging.solve(odd, (v[first] + v[last]) / 2, (noise[first] + noise[last]) / 4)
        phi[r, :, o], missing[r, :, o], noisy[r, :, o] = solved.phi, solved.missing, solved.noisy
    phi += (values[-1] - values[0] - phi.sum(axis=1))[:, None] / plan.n_players  # rounding only: they are efficient
    is_unknown = np.asarray(np.isnan(std_errors).any(axis=0))  # ... but errors say so
    noisy[np.broadcast_to(is_unknown[:, None], noisy.shape)] = np.nan
    return ShapleyValues(phi, np.sqrt(missing + noisy)), np.sqrt(missing)


def noise_with_all(std_errors: Values, plan: CoalitionPlan) -> Floats:
    """Standard error (R, O) of a Shapley value if all coalitions had the Monte Carlo noise of those of their size here.

    Parameters
    ----------
    std_errors : (C, R, O) of v(S)
    """
    P = plan.n_players
    inside, outside = shapley_coefficients(P)
    variances = (std_errors**2).reshape(len(std_errors), -1)
    total = np.zeros(variances.shape[1])
    for s in np.unique(plan.sizes[plan.interior]):
        with_j, without_j = comb(P - 1, int(s) - 1) * inside[s] ** 2, comb(P - 1, int(s)) * outside[s] ** 2
        own = plan.sizes == s
        total += (with_j + without_j) * column_sums(variances[own]) / own.sum()
    return np.sqrt(total).reshape(std_errors.shape[1:])


Solve: TypeAlias = Callable[[Floats, Floats, CoalitionPlan], tuple[Floats, Floats]]
"""v and its variances, both (C, n) -> phi and its variances, both (P, n)."""


def _solve_exactly(v: Floats, noise: Floats, plan: CoalitionPlan) -> tuple[Floats, Floats]:
    return exact_shapley(v, plan.masks), exact_shapley_variances(noise, plan.masks)


def _regression(plan: CoalitionPlan) -> Solve:
    """Constrained regression, with everything that depends on the coalitions only done once."""
    A, leverage = wls_operator(plan.masks, plan.weights)

    def solve(v: Floats, noise: Floats, plan: CoalitionPlan) -> tuple[Floats, Floats]:
        phi = each_column(A, v)
        return phi, each_column(A**2, noise) + _coalition_variances(v, noise, phi, A, leverage, plan)

    return solve


def _coalition_variances(
    v: Floats, noise: Floats, phi: Floats, A: Floats, leverage: Floats, plan: CoalitionPlan
) -> Floats:
    """Variance (P, n) of phi because only some coalitions were drawn.

    The regression is a Horvitz-Thompson estimate of the one with all coalitions. A coalition and its complement come
    into the sample together, so the linearised variance is sum (1 - pi) (A_p r_p)^2 over pairs p, with r_p the
    difference of the pair's residuals, enlarged by 1 / (1 - leverage) because the fit has bent towards it. A pair that
    the fit follows nearly exactly gets the average residual instead. Monte Carlo noise in the residuals is counted
    elsewhere and taken off. Few spare pairs make all this uncertain: Student's t says by how much.
    """
    drawn = [pair for pair in plan.pairs() if plan.inclusion[pair[0]] < 1.0]
    if not drawn:
        return np.zeros_like(phi)
    first, last = np.array([(pair[0], pair[-1]) for pair in drawn]).T
    is_pair = (first != last).astype(np.float64)[:, None]
    residuals = v - v[0] - each_column(plan.masks.astype(np.float64), phi)
    squares = (residuals[first] - is_pair * residuals[last]) ** 2  # (pairs, n)
    random_part = noise[first] + is_pair * noise[last]
    kept = 1.0 - leverage[first] - is_pair[:, 0] * leverage[last]
    average = column_sums(squares) / kept.sum()
    followed = (kept < _FOLLOWED)[:, None]
    corrected = np.where(followed, average, squares / np.maximum(kept, _FOLLOWED)[:, None] ** 2)
    missing_share = 1.0 - plan.inclusion[first]
    total = each_column(A[:, first] ** 2 * missing_share, corrected - random_part)
    spare = min(len(plan.pairs()) - plan.n_players + 1, len(drawn))
    return np.asarray(np.maximum(total, 0.0)) * few_pairs_factor(spare)
