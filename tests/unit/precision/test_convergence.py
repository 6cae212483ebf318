"""The loop of n_coalitions="auto": every row gets coalitions until it is precise."""

from __future__ import annotations

import numpy as np
import pytest

import condshap as cs
from condshap.coalitions import all_coalitions
from condshap.coalitions.nested import nested_plan
from condshap.exceptions import CondShapWarning
from condshap.precision.convergence import Goal, converge, least_spread
from condshap.solvers import noise_with_all, solve_shapley
from condshap.values.table import ValueTable
from tests.unit.precision.pair_games import M, X, blurred, fit, game


def settle(v, plan, pairs, tolerance=0.02, known=None, asked=None):
    def estimate(positions, rows):
        if asked is not None:
            asked.append((positions, rows))
        found = v[np.ix_(positions, rows)]
        return ValueTable(plan.masks[positions], found, np.zeros_like(found), found.size)

    return converge(estimate, plan, pairs, Goal(tolerance, np.zeros(v.shape[1:]), False), known)


def test_noise_with_all_coalitions_is_what_the_exact_formula_says():
    plan = all_coalitions(6)
    by_size = np.random.default_rng(0).random((7, 2, 1))
    errors = by_size[plan.sizes]
    errors[[0, -1]] = 0.0
    exact = solve_shapley(np.zeros_like(errors), errors, plan).std_errors
    np.testing.assert_allclose(noise_with_all(errors, plan), exact[:, 0], rtol=1e-12)


def test_every_row_reaches_the_tolerance_and_stops_by_itself():
    plan, pairs = nested_plan(12, None, seed=0)
    v = game(plan, order=5)
    v = np.concatenate(
        [v, v * [[[1.0], [0.2]]] + (plan.masks @ np.arange(12.0))[:, None, None]], axis=1
    )  # two easy rows
    result = settle(v, plan, pairs)
    spread = np.ptp(result.solved.values, axis=1)
    shares = result.solved.std_errors.max(axis=1) / spread
    assert (shares <= 0.02).all()
    assert result.reached == shares.max()
    used = (~np.isnan(result.table.values[..., 0])).sum(axis=0)
    assert used[:2].min() > used[2:].max()
    for row in range(4):
        alone = settle(v[:, [row]], plan, pairs)
        np.testing.assert_array_equal(alone.solved.values[0], result.solved.values[row])
        assert len(alone.plan.masks) == used[row]


def test_row_goes_on_until_its_most_difficult_output_has_settled():
    plan, pairs = nested_plan(12, None, seed=0)
    hard = game(plan, order=5)[:, :1]
    easy = (plan.masks @ np.arange(12.0))[:, None, None]
    both, alone = (settle(v, plan, pairs) for v in (np.concatenate([easy, hard], axis=2), hard))
    assert len(both.plan.masks) == len(alone.plan.masks) > len(settle(easy, plan, pairs).plan.masks)
    np.testing.assert_allclose(both.solved.values[..., 1], alone.solved.values[..., 0], atol=1e-12)
    np.testing.assert_allclose(both.solved.values[0, :, 0], np.arange(12.0), atol=1e-7)


def test_no_coalition_is_asked_for_twice_and_going_on_gives_what_starting_gives():
    plan, pairs = nested_plan(12, None, seed=0)
    v = game(plan, order=5)
    asked: list = []
    first = settle(v, plan, pairs, 0.05, asked=asked)
    further = settle(v, plan, pairs, 0.01, known=first.table, asked=asked)
    at_once = settle(v, plan, pairs, 0.01)
    np.testing.assert_array_equal(further.solved.values, at_once.solved.values)
    np.testing.assert_array_equal(further.solved.std_errors, at_once.solved.std_errors)
    np.testing.assert_array_equal(further.table.values, at_once.table.values)
    assert further.table.n_evaluations == at_once.table.n_evaluations
    assert len(first.plan.masks) < len(further.plan.masks)
    assert further.n_iterations == at_once.n_iterations > first.n_iterations
    cells = [(p, r) for positions, rows in asked for p in positions for r in rows]
    assert len(cells) == len(set(cells)) == (~np.isnan(further.table.values)).sum()


def test_row_with_nothing_to_explain_is_judged_by_the_range_of_predictions():
    plan, pairs = nested_plan(12, None, seed=0)
    v = game(plan, order=5)[:, :1] * 1e-9
    asked: list = []

    def estimate(positions, rows):
        asked.append(positions)
        return ValueTable(plan.masks[positions], v[positions], np.zeros_like(v[positions]), 0)

    scale = least_spread(np.zeros((1, 1)), np.array([[0.0], [1.0]]))
    assert scale.tolist() == [[0.01]]
    converge(estimate, plan, pairs, Goal(0.02, scale, False))
    assert sum(map(len, asked)) == 2 + 2 * 30  # the first look was enough


def test_constant_game_settles_at_once():
    plan, pairs = nested_plan(12, None, seed=0)
    result = settle(np.full((len(plan.masks), 2, 1), 3.0), plan, pairs)
    assert (result.solved.values == 0).all()
    assert (result.solved.std_errors == 0).all()
    assert result.n_iterations == 1


def test_cap_is_announced():
    explainer = fit(tolerance=0.0001, max_coalitions=120)
    with pytest.warns(CondShapWarning, match="2 of 2 rows have up to .* with up to 120 coalitions. .*max_coalitions"):
        found = explainer.explain(X[:2])
    assert found.provenance.n_coalitions == 120
    assert found.provenance.reached > 0.0001
    assert any("at most 0.0001 of every row's spread" in text for text in found.provenance.warnings)
    assert explainer.refine(found, tolerance=0.5).provenance.warnings == ()


def test_noise_as_large_as_the_values_is_announced_with_auto_too():
    with pytest.warns(CondShapWarning, match="mean absolute value .* Lower the tolerance, raise max_coalitions or"):
        found = fit(model=blurred, n_samples=10, tolerance=0.9, max_coalitions=62).explain(X[:3])
    assert any("standard errors must be well below" in text for text in found.provenance.warnings)


def test_monte_carlo_noise_that_coalitions_cannot_cure_is_announced():
    with pytest.warns(CondShapWarning, match="Monte Carlo noise in v\\(S\\) .* so raise n_samples"):
        found = fit(n_samples=4, tolerance=0.02).explain(X[:3])
    assert found.provenance.reached > 0.02
    assert found.provenance.n_coalitions < 2**M
    with pytest.warns(CondShapWarning, match="Monte Carlo noise"):
        few = cs.explain(lambda x: np.asarray(x)[:, :3].prod(axis=1), X[:, :3], X[:3, :3], approach="independence",
                         n_samples=3, n_coalitions="auto", tolerance=0.001)  # fmt: skip
    assert few.provenance.is_exact
