"""The four axioms, and all coalitions by formula = all coalitions by regression, for any game."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from condshap.coalitions import all_coalitions, make_plan
from condshap.numerics.shapley import exact_shapley, wls_operator
from condshap.solvers import solve_shapley

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")

MONEY = st.floats(-1e3, 1e3, allow_subnormal=False)


@st.composite
def games(draw, least=1, most=7):
    n_players = draw(st.integers(least, most))
    plan = all_coalitions(n_players)
    return plan, draw(arrays(np.float64, (len(plan.masks), 2), elements=MONEY))


def solve(plan, v):
    return solve_shapley(v[:, :, None], np.zeros((*v.shape, 1)), plan).values[:, :, 0]


def by_definition(plan, v):
    """Average over all orders of the players' marginal contributions."""
    from itertools import permutations

    position = {tuple(np.flatnonzero(mask)): i for i, mask in enumerate(plan.masks)}
    phi = np.zeros((v.shape[1], plan.n_players))
    orders = list(permutations(range(plan.n_players)))
    for order in orders:
        for i, player in enumerate(order):
            before, after = tuple(sorted(order[:i])), tuple(sorted(order[: i + 1]))
            phi[:, player] += v[position[after]] - v[position[before]]
    return phi / len(orders)


@given(games(most=5))
def test_formula_is_the_average_over_all_orders(game):
    plan, v = game
    np.testing.assert_allclose(solve(plan, v), by_definition(plan, v), atol=1e-10)


@given(games())
def test_efficiency(game):
    plan, v = game
    np.testing.assert_allclose(solve(plan, v).sum(axis=1), v[-1] - v[0], atol=1e-9)


@given(games(least=2), st.data())
def test_symmetric_players_get_the_same(game, data):
    plan, v = game
    i, k = data.draw(st.permutations(range(plan.n_players)))[:2]
    swapped = plan.masks.copy()
    swapped[:, [i, k]] = swapped[:, [k, i]]
    position = {mask.tobytes(): c for c, mask in enumerate(plan.masks)}
    mirror = np.array([position[mask.tobytes()] for mask in swapped])
    symmetric = (v + v[mirror]) / 2
    phi = solve(plan, symmetric)
    np.testing.assert_allclose(phi[:, i], phi[:, k], atol=1e-9)


@given(games(least=2), st.data())
def test_a_player_who_adds_nothing_gets_nothing(game, data):
    plan, v = game
    dummy = data.draw(st.integers(0, plan.n_players - 1))
    without = plan.masks.copy()
    without[:, dummy] = False
    position = {mask.tobytes(): c for c, mask in enumerate(plan.masks)}
    ignoring = v[[position[mask.tobytes()] for mask in without]]
    np.testing.assert_allclose(solve(plan, ignoring)[:, dummy], 0, atol=1e-9)


@given(games(), st.data())
def test_linearity(game, data):
    plan, v = game
    other = data.draw(arrays(np.float64, v.shape, elements=MONEY))
    together = solve(plan, 2 * v - 3 * other)
    np.testing.assert_allclose(together, 2 * solve(plan, v) - 3 * solve(plan, other), atol=1e-8)


@given(games(least=2))
def test_regression_with_kernel_weights_and_all_coalitions_is_the_formula(game):
    plan, v = game
    A, leverage = wls_operator(plan.masks, plan.weights)
    np.testing.assert_allclose(A @ v, exact_shapley(v, plan.masks), atol=1e-10 * max(1.0, np.abs(v).max()))
    assert leverage.sum() == pytest.approx(plan.n_players - 1)


@given(st.integers(4, 12), st.integers(0, 10), st.floats(0.1, 0.95))
def test_sampled_plans_are_efficient_ordered_and_exact_for_additive_games(n_players, seed, share):
    n = max(n_players + 1, min(2**n_players - 1, int(share * 200)))
    plan = make_plan(n_players, n, seed=seed)
    assert len(plan.masks) == n - n % 2 + plan.n_repaired  # whole pairs
    sizes = plan.masks.sum(axis=1)
    assert sizes[0] == 0
    assert sizes[-1] == n_players
    assert (np.diff(sizes) >= 0).all()
    assert len(np.unique(plan.masks, axis=0)) == len(plan.masks)
    worth = np.random.default_rng(seed).normal(size=(n_players, 3))
    np.testing.assert_allclose(solve(plan, 5 + plan.masks @ worth), worth.T, atol=1e-8)


@given(st.integers(4, 8), st.integers(0, 10))
def test_sampled_plans_keep_efficiency_for_any_game(n_players, seed):
    plan = make_plan(n_players, 2 * n_players, seed=seed)
    v = np.random.default_rng(seed).normal(size=(len(plan.masks), 2)) * 100
    np.testing.assert_allclose(solve(plan, v).sum(axis=1), v[-1] - v[0], atol=1e-9)
