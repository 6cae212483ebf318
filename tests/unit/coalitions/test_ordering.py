import numpy as np
import pytest

from condshap.coalitions import Players, all_coalitions
from condshap.coalitions.ordering import Ordering, chain_of, drawing_plan, ordered_plan
from condshap.exceptions import CoalitionError, OptionError
from condshap.precision.influence import influences, sensitivities, squared_influences
from condshap.solvers import solve_shapley

FIVE = Players.of(("a", "b", "c", "d", "e"), None)
ORDER = [["c", "a"], ["b"], ["d", "e"]]


def average_over_orders(v, components, n_players):
    """Asymmetric values by their definition: marginal contributions over all orders that respect the components."""
    from itertools import permutations, product

    phi, orders = np.zeros(n_players), list(product(*(permutations(c) for c in components)))
    for order in orders:
        before = frozenset()
        for player in (p for part in order for p in part):
            phi[player] += v[before | {player}] - v[before]
            before |= {player}
    return phi / len(orders)


def test_coalitions_touch_a_component_only_if_earlier_ones_are_complete():
    plan = ordered_plan(Ordering.of(FIVE, ORDER, None, True), None, seed=0)
    found = {"".join(np.array(list("abcde"))[mask]) for mask in plan.masks}
    assert found == {"", "a", "c", "ac", "abc", "abcd", "abce", "abcde"}
    assert plan.has_all
    assert not plan.is_exact
    assert (plan.weights[plan.interior] > 0).all()


def test_values_are_the_average_over_orders_that_respect_the_components():
    ordering = Ordering.of(FIVE, ORDER, None, True)
    plan = ordered_plan(ordering, None, seed=0)
    v = np.random.default_rng(0).normal(size=(len(plan.masks), 3, 2))
    solved = solve_shapley(v, np.zeros_like(v), plan)
    names = [frozenset(np.flatnonzero(mask).tolist()) for mask in plan.masks]
    for r, o in np.ndindex(3, 2):
        game = dict(zip(names, v[:, r, o], strict=True))
        np.testing.assert_allclose(
            solved.values[r, :, o], average_over_orders(game, ordering.components, 5), atol=1e-12
        )


def test_values_of_a_component_sum_to_its_step_of_v():
    plan = ordered_plan(Ordering.of(FIVE, ORDER, None, True), None, seed=0)
    v = np.random.default_rng(1).normal(size=(len(plan.masks), 4, 1))
    solved = solve_shapley(v, np.zeros_like(v), plan)
    for step in plan.steps():
        own = v[step.positions[-1]] - v[step.positions[0]]
        np.testing.assert_allclose(solved.values[:, step.players].sum(axis=1), own, atol=1e-12)


def test_one_component_is_the_ordinary_game():
    plan, usual = ordered_plan(Ordering.of(FIVE, [list("abcde")], None, True), None, seed=0), all_coalitions(5)
    v = np.random.default_rng(2).normal(size=(32, 3, 1))
    np.testing.assert_array_equal(plan.masks, usual.masks)
    ours, theirs = solve_shapley(v, np.abs(v), plan), solve_shapley(v, np.abs(v), usual)
    np.testing.assert_array_equal(ours.values, theirs.values)
    np.testing.assert_array_equal(ours.std_errors, theirs.std_errors)


def test_standard_errors_follow_from_the_influences():
    plan = ordered_plan(Ordering.of(FIVE, ORDER, None, True), None, seed=0)
    rng = np.random.default_rng(3)
    v, errors = rng.normal(size=(len(plan.masks), 2, 1)), rng.random((len(plan.masks), 2, 1))
    solved, A = solve_shapley(v, errors, plan), influences(plan)
    np.testing.assert_allclose(solved.values[..., 0].T, A @ v[..., 0], atol=1e-12)
    np.testing.assert_allclose(solved.std_errors[..., 0].T, np.sqrt(A**2 @ errors[..., 0] ** 2), atol=1e-12)
    np.testing.assert_allclose(squared_influences(plan), A**2)
    np.testing.assert_allclose(sensitivities(plan), (A**2).sum(axis=0))


def test_large_components_are_sampled_and_tell_their_error():
    players = Players.of(tuple(f"x{j}" for j in range(14)), None)
    ordering = Ordering.of(players, [["x0", "x1"], [f"x{j}" for j in range(2, 14)]], None, True)
    plan = ordered_plan(ordering, 300, seed=0)
    assert not plan.has_all
    small, large = plan.steps()
    assert small.plan.is_exact
    assert 290 <= len(large.plan.masks) <= 300
    slopes, pair = np.linspace(-1, 1, 14), 0.3 * plan.masks[:, 3] * plan.masks[:, 7] * (1 + plan.masks[:, 9])
    v = (plan.masks @ slopes + pair)[:, None, None]
    solved = solve_shapley(v, np.zeros_like(v), plan)
    truth = slopes.copy()
    truth[[3, 7]] += 0.15 + 0.1
    truth[9] += 0.1
    assert np.abs(solved.values[0, :, 0] - truth).max() < 4 * solved.std_errors.max() + 1e-9 < 0.5
    np.testing.assert_allclose(solved.values.sum(axis=1), v[-1] - v[0])


def test_noise_at_the_ends_of_a_sampled_component_counts():
    players = Players.of(tuple(f"x{j}" for j in range(12)), None)
    plan = ordered_plan(Ordering.of(players, [["x11"], [f"x{j}" for j in range(11)]], None, True), 200, seed=0)
    v, errors = np.zeros((len(plan.masks), 1, 1)), np.zeros((len(plan.masks), 1, 1))
    start = plan.steps()[1].positions[0]
    errors[start] = 11.0
    solved = solve_shapley(v, errors, plan)
    np.testing.assert_allclose(solved.std_errors[0, :11, 0], 1.0, rtol=1e-6)


def test_groups_are_players_of_components():
    players = Players.of(("a", "b", "c"), {"first": ["a", "c"], "second": ["b"]})
    ordering = Ordering.of(players, [["second"], ["first"]], False, False)
    chain = chain_of(ordering, players)
    assert chain.components.tolist() == [[False, True, False], [True, False, True]]
    assert ordering.describe(players) == "second -> first"


def test_a_chain_asks_for_single_steps_only():
    chain = chain_of(Ordering.of(FIVE, ORDER, [True, False, True], False), FIVE)
    plan = drawing_plan(chain, all_coalitions(5))
    asked = {"".join(np.array(list("abcde"))[mask]) for mask in plan.masks[plan.interior]}
    assert asked == {"", "ac", "abc"}
    assert plan.weights.sum() == pytest.approx(1)


def test_components_may_be_positions_tuples_and_arrays():
    found = Ordering.of(FIVE, (np.array(["c", "a"]), (1,), range(3, 5)), np.array([True, False, False]), np.True_)
    assert found == Ordering(((0, 2), (1,), (3, 4)), (True, False, False), True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([["a", "b"], ["b", "c", "d", "e"]], r"occur more than once: \['b'\]"),
        ([["a", "b"], ["d", "e"]], r"missing: \['c'\]"),
        ([["a", "b", "c"], ["d", "e", "z"]], r"unknown: \['z'\]"),
        ([["a", "b", "c", "d", "e"], []], r"have none: \[2\]"),
    ],
)
def test_components_must_be_a_partition(given, message):
    with pytest.raises(CoalitionError, match=message):
        Ordering.of(FIVE, given, None, True)


@pytest.mark.parametrize("given", ["abcde", ["a", "b"], [], 3, {"a": ["b"]}, [["a"], "b"]])
def test_an_order_must_be_a_list_of_lists(given):
    with pytest.raises(OptionError, match="must be a list of lists of players"):
        Ordering.of(FIVE, given, None, True)


@pytest.mark.parametrize("given", [[True, False], [True] * 4, "yes", [1, 0, 1], 1, {"a": True}])
def test_confounding_must_have_one_answer_or_one_per_component(given):
    with pytest.raises(OptionError, match="confounding must be True, False or 3 of these"):
        Ordering.of(FIVE, ORDER, given, False)


@pytest.mark.parametrize("options", [(True, False), (False, False), ([True], False), (None, True)])
def test_confounding_and_asymmetric_need_an_order(options):
    with pytest.raises(OptionError, match="needs causal_ordering, which is None"):
        Ordering.of(FIVE, None, *options)


def test_asymmetric_must_be_an_answer():
    with pytest.raises(OptionError, match="asymmetric must be True or False, got 'yes'"):
        Ordering.of(FIVE, ORDER, None, "yes")
