"""Errors at the stop of ``n_coalitions="auto"`` are honest although stopping prefers errors that came out small.

Games have no Monte Carlo noise, so all coalitions give the truth. All seeds are fixed, so a passing test passes again. With
these seeds coverage was between 97.2 and 98.7 % in the six cases, with a standard deviation of 0.8 to 2.6 % between seeds,
that is at most 0.5 % for 30 seeds together. The lower bound of 93 % is eight standard deviations away; the upper one of 99 %
is two in one case (sparse, 2 %), so other seeds would fail there about once in a hundred runs.
"""

import numpy as np
import pytest

from condshap.coalitions import all_coalitions
from condshap.coalitions.nested import nested_plan
from condshap.precision.convergence import Goal, converge
from condshap.solvers import solve_shapley
from condshap.values.table import ValueTable

pytestmark = pytest.mark.slow

P, ROWS, SEEDS = 12, 20, 30


def dependent(masks, interactions):
    """Linear or bilinear model of features with one common factor, E[f | x_S] in closed form, (C, R)."""
    rng = np.random.default_rng(5)
    loadings = rng.uniform(0.4, 0.9, P)
    rows = loadings * rng.normal(size=(ROWS, 1)) + np.sqrt(1 - loadings**2) * rng.normal(size=(ROWS, P))
    pull = loadings / (1 - loadings**2)
    variance = 1 / (1 + masks @ (loadings * pull))[:, None]
    mean = masks @ (pull[:, None] * rows.T) * variance
    expected = [np.where(masks[:, [j]], rows[:, j], loadings[j] * mean) for j in range(P)]
    v = sum(b * e for b, e in zip(rng.normal(size=P), expected, strict=True))
    if interactions:
        for j, c in enumerate(rng.normal(size=P)):
            k = (j + 2) % P
            both_unknown = ~(masks[:, [j]] | masks[:, [k]])
            v = v + c * (expected[j] * expected[k] + both_unknown * loadings[j] * loadings[k] * variance)
    return v


def sparse(masks):
    """Sums of products of up to five players, as trees make them under independence, (C, R)."""
    rng = np.random.default_rng(6)
    v = np.zeros((len(masks), ROWS))
    for size, n in ((1, 12), (2, 10), (3, 10), (4, 5), (5, 5)):
        for _ in range(n):
            v += masks[:, rng.choice(P, size, replace=False)].all(axis=1)[:, None] * rng.normal(size=ROWS)
    return v


GAMES = {
    "linear": lambda masks: dependent(masks, interactions=False),
    "interactions": lambda masks: dependent(masks, interactions=True),
    "sparse": sparse,
}


@pytest.mark.parametrize("tolerance", [0.05, 0.02])
@pytest.mark.parametrize("name", GAMES)
def test_intervals_cover_where_rows_stopped(name, tolerance):
    everything = all_coalitions(P)
    v = GAMES[name](everything.masks)[..., None]
    truth = solve_shapley(v, np.zeros_like(v), everything).values
    inside = []
    for seed in range(SEEDS):
        plan, pairs = nested_plan(P, None, seed=seed)

        def estimate(positions, rows, plan=plan):
            found = v[np.ix_(positions, rows)]
            return ValueTable(plan.masks[positions], found, np.zeros_like(found), 0)

        solved = converge(estimate, plan, pairs, Goal(tolerance, np.zeros((ROWS, 1)), False)).solved
        inside.append(np.abs(solved.values - truth) <= 1.96 * solved.std_errors)
    assert 0.93 <= np.mean(inside) <= 0.99
