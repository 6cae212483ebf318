import time

import numpy as np
import pytest

from condshap.coalitions import all_coalitions, make_plan, sample_coalitions
from condshap.numerics.shapley import exact_shapley, exact_shapley_variances, shapley_coefficients
from condshap.solvers import solve_shapley


def test_twenty_players_and_twenty_rows_take_less_than_ten_seconds():
    plan = all_coalitions(20)
    rng = np.random.default_rng(0)
    worth = rng.normal(size=(20, 20))
    v = (plan.masks @ worth)[..., None]
    start = time.process_time()
    solved = solve_shapley(v, np.zeros_like(v), plan)
    assert time.process_time() - start < 10
    np.testing.assert_allclose(solved.values[..., 0].T, worth, atol=1e-9)


def test_three_player_glove_game_by_hand():
    # players 0 and 1 hold a left glove, player 2 the right one: 1/6, 1/6, 4/6
    plan = all_coalitions(3)
    v = (plan.masks[:, 2] & (plan.masks[:, 0] | plan.masks[:, 1])).astype(float)
    np.testing.assert_allclose(exact_shapley(v[:, None], plan.masks)[:, 0], [1 / 6, 1 / 6, 4 / 6])


def test_variances_are_those_of_the_dense_operator():
    plan = all_coalitions(4)
    inside, outside = shapley_coefficients(4)
    dense = np.where(plan.masks, inside[plan.sizes][:, None], outside[plan.sizes][:, None]).T
    variances = np.random.default_rng(0).random((16, 3))
    np.testing.assert_allclose(exact_shapley_variances(variances, plan.masks), dense**2 @ variances)


def test_monte_carlo_errors_are_propagated_exactly():
    # 4000 noisy games: the standard deviation of each value within 5 % (4.5 of its own standard errors of 1.1 %)
    plan = all_coalitions(5)
    rng = np.random.default_rng(1)
    errors = rng.random(32) * np.r_[0, np.ones(30), 0]
    v = rng.normal(size=(32, 4000)) * errors[:, None]
    std_errors = np.broadcast_to(errors[:, None, None], (32, 4000, 1))
    solved = solve_shapley(v[..., None], std_errors, plan)
    np.testing.assert_allclose(solved.values[..., 0].std(axis=0), solved.std_errors[0, :, 0], rtol=0.05)


def test_an_additive_game_has_no_coalition_error():
    plan = make_plan(12, 200, seed=0)
    v = (plan.masks @ np.arange(12.0))[:, None, None]
    solved = solve_shapley(v, np.zeros_like(v), plan)
    np.testing.assert_allclose(solved.std_errors, 0, atol=1e-7)


def test_given_coalitions_have_no_coalition_error_because_nothing_was_drawn():
    from condshap.coalitions import CoalitionPlan

    masks = np.random.default_rng(0).random((40, 6)) < 0.5
    masks = masks[(masks.sum(1) > 0) & (masks.sum(1) < 6)]
    plan = CoalitionPlan.given(masks, np.ones(len(masks)))
    v = np.random.default_rng(1).normal(size=(len(plan.masks), 2, 1))
    assert (solve_shapley(v, np.zeros_like(v), plan).std_errors == 0).all()


@pytest.mark.parametrize("n_coalitions", [24, 40, 80, 200])
def test_coalition_errors_cover_the_answer_with_all_coalitions(n_coalitions):
    # random games with interactions, P = 8, 60 seeds x 20 games x 8 players: coverage of 1.96 errors
    everything = all_coalitions(8)
    rng = np.random.default_rng(0)
    pairs = everything.masks[:, :, None] & everything.masks[:, None, :]
    game = everything.masks @ rng.normal(size=(8, 20)) + np.einsum("cij,ijn->cn", pairs, rng.normal(size=(8, 8, 20)))
    game += (everything.masks[:, :3].all(axis=1) * 3.0)[:, None] + np.sqrt(everything.masks.sum(axis=1))[:, None]
    truth = exact_shapley(game, everything.masks)
    position = {mask.tobytes(): i for i, mask in enumerate(everything.masks)}
    covered = []
    for seed in range(60):
        plan = sample_coalitions(8, n_coalitions, seed=seed)
        v = game[[position[mask.tobytes()] for mask in plan.masks]][..., None]
        solved = solve_shapley(v, np.zeros_like(v), plan)
        covered.append(np.abs(solved.values[..., 0].T - truth) <= 1.96 * solved.std_errors[..., 0].T + 1e-9)
    assert 0.90 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("n_coalitions", [24, 40, 80, 200])
def test_kriging_of_the_same_number_of_coalitions_is_better_and_covers(n_coalitions):
    # random games of one to four players, P = 8, 20 games, 20 fixed seeds
    everything, rng = all_coalitions(8), np.random.default_rng(0)
    game = np.zeros((256, 20))
    for size in [1] * 8 + [2] * 8 + [3] * 8 + [4] * 4:
        members = rng.choice(8, size, replace=False)
        game += everything.masks[:, members].all(axis=1)[:, None] * rng.normal(size=20)
    truth = exact_shapley(game, everything.masks)
    position = {mask.tobytes(): i for i, mask in enumerate(everything.masks)}
    covered, squares = [], np.zeros(2)
    for seed in range(20):
        for way, make in enumerate((make_plan, sample_coalitions)):
            plan = make(8, n_coalitions, seed=seed)
            v = game[[position[mask.tobytes()] for mask in plan.masks]][..., None]
            solved = solve_shapley(v, np.zeros_like(v), plan)
            off = solved.values[..., 0].T - truth
            squares[way] += (off**2).mean()
            if plan.is_kriged:
                covered.append(np.abs(off) <= 1.96 * solved.std_errors[..., 0].T + 1e-9)
    assert squares[0] < 0.7 * squares[1]
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize("P", [4, 9])
def test_unknown_noise_leaves_the_values_and_makes_the_errors_unknown(P):
    plan, rng = make_plan(P, 40, seed=0), np.random.default_rng(0)
    v = rng.normal(size=(len(plan.masks), 3, 2))
    nothing, unknown = np.zeros_like(v), np.zeros_like(v)
    unknown[3, 1, 0] = np.nan
    known, found = solve_shapley(v, nothing, plan), solve_shapley(v, unknown, plan)
    np.testing.assert_array_equal(found.values, known.values)
    assert np.isnan(found.std_errors[1, :, 0]).any()
    for r, o in ((0, 0), (1, 1), (2, 0)):
        np.testing.assert_array_equal(found.std_errors[r, :, o], known.std_errors[r, :, o])


def games_of(masks, rng):
    """Games that pairs alone do not settle: products of up to four players, and the largest worth of a member, (C, 24)."""
    P = masks.shape[1]
    products = np.zeros((len(masks), 12))
    for size in [1] * P + [2] * P + [3] * P + [4] * (P // 2):
        products += masks[:, rng.choice(P, size, replace=False)].all(axis=1)[:, None] * rng.normal(size=12)
    worth = rng.normal(size=(12, P))
    largest = np.where(masks[:, None], worth, -0.5).max(axis=2)
    return np.concatenate([products, largest], axis=1)


@pytest.mark.parametrize(("n_players", "n_seeds"), [(4, 40), (5, 20), (6, 8), (9, 6)])
def test_more_coalitions_never_make_a_worse_answer_and_few_cover(n_players, n_seeds):
    everything, numbers = all_coalitions(n_players), range(n_players + 1, min(2**n_players, 2 * n_players + 12))
    game = games_of(everything.masks, np.random.default_rng(0))
    truth = exact_shapley(game, everything.masks)
    position = {mask.tobytes(): i for i, mask in enumerate(everything.masks)}
    found = {}
    for n in numbers:
        squares, covered = [], []
        for seed in range(n_seeds):
            plan = make_plan(n_players, n, seed=seed)
            if n > numbers[0] and len(plan.masks) == len(make_plan(n_players, n - 1, seed=seed).masks):
                continue  # the same plan, see test_coalitions
            v = game[[position[mask.tobytes()] for mask in plan.masks]][..., None]
            solved = solve_shapley(v, np.zeros_like(v), plan)
            off = solved.values[..., 0].T - truth
            squares.append((off**2).mean())
            covered.append(
                (np.abs(off) <= 1.96 * solved.std_errors[..., 0].T + 1e-9).reshape(-1, 2, 12).mean(axis=(0, 2))
            )
        if squares:
            found[n] = np.mean(squares), np.mean(covered, axis=0)
    errors, coverages = zip(*found.values(), strict=True)
    assert (np.diff(errors) < 0).all(), found
    assert np.min(coverages) >= 0.9, found  # of both kinds of games
