"""Kriging of games of pairs: exact where it can be, honest where it cannot."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from condshap.coalitions import all_coalitions, make_plan
from condshap.coalitions.nested import beginning, nested_plan, pair_sequence
from condshap.numerics.kriging import PairKriging
from condshap.numerics.kriging_prior import COVARIANCES, Covariance, odd_prior
from condshap.numerics.relevance import Involvement
from condshap.numerics.shapley import exact_shapley, wls_operator
from condshap.numerics.threes import threes
from condshap.solvers import solve_pairs, solve_shapley
from tests.unit.precision.pair_games import game


def involvement():
    """Seven players that take part in interactions more and more, and pairs of them that do so at random."""
    pairs = np.triu(np.random.default_rng(0).random((7, 7)), 1)
    return Involvement(np.array([0.1, 0.2, 0.5, 1.0, 1.2, 2.0, 2.0]), pairs + pairs.T)


@pytest.mark.parametrize("involved", [None, involvement()])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_shapley_values_of_the_covariance_are_those_of_all_coalitions(covariance, involved):
    plan = all_coalitions(7)
    prior = odd_prior(
        plan.masks[:-1], replace(covariance, rest=0.0), involved
    )  # all coalitions: the grand one is added
    k = prior.matrix - np.diag([*[0.0] * 127, 1e-9])
    complement = np.array([np.flatnonzero((plan.masks == ~mask).all(axis=1))[0] for mask in plan.masks])
    np.testing.assert_allclose(k[complement], -k, atol=1e-12)  # odd
    assert np.linalg.eigvalsh(k).min() > -1e-9
    phi = exact_shapley(k, plan.masks)
    np.testing.assert_allclose(phi.T, prior.sections, atol=1e-12)
    twice = np.diag(exact_shapley(phi.T.copy(), plan.masks))
    np.testing.assert_allclose(twice, prior.variances, rtol=1e-10)


def test_interactions_of_three_go_by_the_pairs_among_them():
    signs, involved = 2.0 * all_coalitions(7).masks - 1.0, involvement()
    u, g = involved.players, involved.pairs
    found, matrix, with_each = threes(signs, u, g), np.zeros((128, 128)), np.zeros((128, 7))
    for j, k, l in combinations(range(7), 3):
        weight, product = u[j] * u[k] * u[l] * (g[j, k] + g[k, l] + g[j, l]), signs[:, [j, k, l]].prod(axis=1)
        matrix += weight * np.outer(product, product)
        with_each[:, [j, k, l]] += weight * product[:, None]
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-12)
    np.testing.assert_allclose(found.with_each, with_each, atol=1e-12)
    np.testing.assert_allclose(found.total_with_each, with_each[-1], rtol=1e-12)
    assert found.total == pytest.approx(matrix[-1, -1])


@pytest.mark.parametrize("P", [6, 7])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_all_pairs_give_the_exact_answer_whatever_the_covariance(covariance, P):
    # any game at all, noise of its own in every v(S): what no term describes is a part of the game
    plan = all_coalitions(P)
    first, last = np.array(plan.pairs()).T
    v = np.random.default_rng(0).normal(size=2**P)
    solver = odd_prior(plan.masks[first], covariance).solver()
    phi = solver.A @ np.append(v[first] - v[last], v[-1] - v[0]) / 2
    np.testing.assert_allclose(phi, exact_shapley(v[:, None], plan.masks)[:, 0], atol=1e-5)
    assert solver.posterior.max() < 1e-8


def test_errors_keep_falling_and_cover_in_games_that_are_not_smooth():
    # sums of 30 sets of all sizes of 10 players, of which no covariance is true: 12 games, 4 seeds
    everything, rng = all_coalitions(10), np.random.default_rng(0)
    sets = [rng.choice(10, size, replace=False) for size in rng.integers(1, 11, 30)]
    v = np.column_stack([everything.masks[:, members].all(axis=1) for members in sets]) @ rng.random((30, 12))
    truth = exact_shapley(v, everything.masks).T
    position = {mask.tobytes(): i for i, mask in enumerate(everything.masks)}
    errors = []
    for n_pairs in (25, 100, 200, 400):
        off, own = [], []
        for seed in range(4):
            plan = make_plan(10, 2 * n_pairs + 2, seed=seed)
            values = v[[position[mask.tobytes()] for mask in plan.masks]][..., None]
            solved = solve_shapley(values, np.zeros_like(values), plan)
            off.append(solved.values[..., 0] - truth)
            own.append(solved.std_errors[..., 0])
        errors.append(np.sqrt((np.array(off) ** 2).mean()))
        assert (np.abs(off) <= 1.96 * np.array(own)).mean() >= 0.93
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.7 * errors[1]
    assert errors[3] < 0.5 * errors[2]


@pytest.mark.parametrize("n_players", [2, 3, 5])
def test_terms_of_more_players_than_there_are_count_nothing(n_players):
    masks = all_coalitions(n_players).masks[:-1]
    few = odd_prior(masks, Covariance((((1, 0), 1.0), ((7, 0), 1.0)), 0.0))
    one = odd_prior(masks, Covariance((((1, 0), 1.0),), 0.0))
    np.testing.assert_allclose(few.matrix, one.matrix, atol=1e-14)


def test_nugget_is_noise_on_the_diagonal_and_posterior_is_what_is_left_without_it():
    prior, noise = odd_prior(pair_sequence(8, 40, seed=0), COVARIANCES[1]), np.linspace(0.1, 2.0, 40)
    solver = prior.solver(noise)
    signs, V = prior.signs, prior.matrix + np.diag([*noise, 0.0])
    K = np.linalg.inv(V)
    Q = K - K @ signs @ np.linalg.inv(signs.T @ K @ signs) @ signs.T @ K
    np.testing.assert_allclose(solver.own, np.diag(Q), rtol=1e-7)
    np.testing.assert_allclose(solver.A @ signs, 2 * np.eye(8), atol=1e-9)  # effects of players are met exactly
    error = prior.variances - 2 * (solver.A * prior.sections.T).sum(axis=1)
    error += np.einsum("pn,nm,pm->p", solver.A, prior.matrix, solver.A)
    np.testing.assert_allclose(solver.posterior, error, rtol=1e-7)


def test_left_out_pairs_are_predicted_as_if_they_were_left_out():
    masks = pair_sequence(8, 40, seed=0)
    odd = np.random.default_rng(1).normal(size=(41, 2))
    solver = odd_prior(masks, COVARIANCES[1]).solver()
    error = np.array([solver.residuals(one)[0][7] / solver.own[7] for one in odd.T])
    without = odd_prior(np.delete(masks, 7, axis=0), COVARIANCES[1]).solver()
    # a game whose value for the pair is predicted has residual 0 there: found by trying two values
    rest = np.delete(odd, 7, axis=0)
    np.testing.assert_allclose(without.A @ rest, solver.A @ _with(odd, 7, odd[7] - error), atol=1e-9)


def _with(odd, position, value):
    changed = odd.copy()
    changed[position] = value
    return changed


def test_games_of_pairs_are_solved_exactly_by_any_beginning():
    plan, pairs = nested_plan(9, None, seed=0)
    truth = solve_shapley(game(plan, order=2), np.zeros((512, 2, 1)), plan).values
    some, positions = beginning(plan, pairs, 20)
    v = game(plan, order=2)[positions]
    solved, missing = solve_pairs(v, np.zeros_like(v), some)
    np.testing.assert_allclose(solved.values, truth, atol=1e-7)
    assert missing.max() < 1e-6


def test_covariances_are_averaged_by_their_probabilities(monkeypatch):
    plan, pairs = nested_plan(10, None, seed=0)
    some, positions = beginning(plan, pairs, 30)  # so few that the likelihoods of some rows do not decide
    v = np.concatenate([game(plan, seed, order=5) for seed in range(4)], axis=1)[positions]
    noise = np.zeros_like(v)
    monkeypatch.setattr("condshap.numerics.kriging._OWN_PAIRS", 0)  # the common covariances alone
    first, last = np.array(some.pairs()).T
    odd = np.concatenate([v[first] - v[last], v[-1:] - v[:1]])[..., 0] / 2
    solvers = [odd_prior(some.masks[first], covariance).solver() for covariance in COVARIANCES]
    likelihood = np.array([[solver.residuals(one)[1] for one in odd.T] for solver in solvers])
    probability = (np.exp(likelihood) / np.exp(likelihood).sum(axis=0))[:, :, None, None]
    assert 0.3 < probability.max(axis=0).min() < 0.9
    solved, missing = solve_pairs(v, noise, some)
    alone = []
    for covariance in COVARIANCES:
        monkeypatch.setattr("condshap.numerics.kriging.COVARIANCES", (covariance,))
        alone.append(solve_pairs(v, noise, some))
    phi, without_noise = np.array([one[0].values for one in alone]), np.array([one[1] for one in alone])
    mean = (probability * phi).sum(axis=0)
    np.testing.assert_allclose(solved.values, mean, atol=1e-10)
    apart = (probability * (phi - mean) ** 2).sum(axis=0)
    assert apart.max() > 1e-6
    np.testing.assert_allclose(missing**2, (probability * without_noise**2).sum(axis=0) + apart, rtol=1e-8)
    total = np.array([one[0].std_errors for one in alone])
    np.testing.assert_allclose(solved.std_errors**2, (probability * total**2).sum(axis=0) + apart, rtol=1e-8)


def test_clear_likelihood_decides_alone(monkeypatch):
    monkeypatch.setattr("condshap.numerics.kriging._OWN_PAIRS", 0)
    plan, pairs = nested_plan(10, None, seed=0)
    some, positions = beginning(plan, pairs, 120)
    v = game(plan, order=3)[positions]  # interactions of three: the first covariance
    first, last = np.array(some.pairs()).T
    odd = np.concatenate([v[first] - v[last], v[-1:] - v[:1]])[:, 0] / 2
    solvers = [odd_prior(some.masks[first], covariance).solver() for covariance in COVARIANCES]
    found = solve_pairs(v, np.zeros_like(v), some)[0].values[0]
    np.testing.assert_allclose(found, solvers[0].A @ odd, atol=1e-7)
    assert np.abs(found - solvers[2].A @ odd).max() > 1e-4


def test_values_add_up_and_all_coalitions_give_the_exact_answer():
    plan, pairs = nested_plan(9, None, seed=0)
    v, noise = game(plan), np.full((512, 2, 1), 0.1)
    some, positions = beginning(plan, pairs, 60)
    solved, missing = solve_pairs(v[positions], noise[positions], some)
    np.testing.assert_allclose(solved.values.sum(axis=1), v[-1] - v[0], atol=1e-12)
    assert (solved.std_errors > missing).all()
    every, nothing = solve_pairs(v, noise, plan)
    exact = solve_shapley(v, noise, plan)
    np.testing.assert_allclose(every.values, exact.values, atol=1e-14)
    np.testing.assert_allclose(every.std_errors, exact.std_errors, atol=1e-14)
    assert (nothing == 0).all()


def test_monte_carlo_noise_is_not_counted_as_missing_coalitions():
    # an additive game has no error but noise: over 200 noisy games the reported error matches the real one within 15 %
    # (its own standard error is 1 / sqrt(2 * 200 * 9) = 2 %), and the part of missing coalitions stays well below it
    plan, pairs = nested_plan(9, None, seed=0)
    some, positions = beginning(plan, pairs, 60)
    rng = np.random.default_rng(0)
    additive = np.repeat((plan.masks @ np.arange(9.0))[positions][:, None, None], 200, axis=1)
    noise = np.full(additive.shape, 0.3)
    noise[[0, -1]] = 0.0
    solved, missing = solve_pairs(additive + noise * rng.normal(size=noise.shape), noise, some)
    real = np.sqrt(((solved.values[..., 0] - np.arange(9.0)) ** 2).mean())
    claimed = np.sqrt((solved.std_errors**2).mean())
    assert 0.85 < claimed / real < 1.15
    assert np.sqrt((missing**2).mean()) < 0.4 * real


def interacting(masks, seed=0):
    """Effects of all players and all interactions of three among the first four, (C,)."""
    rng = np.random.default_rng(seed)
    v = masks @ np.r_[3.0, 2.0, 2.0, 3.0, 0.1 * rng.normal(size=masks.shape[1] - 4)]
    for members in ([0, 1], [1, 2], [2, 3], [0, 1, 2], [1, 2, 3], [0, 2, 3], [0, 1, 3]):
        v = v + masks[:, members].all(axis=1) * rng.normal()
    return v


def test_players_that_interact_are_found_and_help():
    everything = all_coalitions(12)
    truth = exact_shapley(interacting(everything.masks)[:, None], everything.masks)[:, 0]
    plan = make_plan(12, 100, seed=0)
    first, last = np.array(plan.pairs()).T
    v = interacting(plan.masks)
    odd, even = np.append(v[first] - v[last], v[-1] - v[0]) / 2, (v[first] + v[last]) / 2
    kriging = PairKriging(plan.masks[first], plan.inclusion[first])
    involved = kriging.relevance.measure(odd, even)
    assert involved.players[:4].min() > 2 * involved.players[4:].max()
    assert involved.players.mean() == pytest.approx(1)
    np.testing.assert_array_equal(involved.pairs, involved.pairs.T)
    assert (np.diag(involved.pairs) == 0).all()
    assert min(involved.pairs[j, j + 1] for j in range(3)) > 2 * involved.pairs[4:].max()
    with_players = kriging.solve(odd, even, np.zeros(len(first))).phi
    kriging.relevance = None
    without = kriging.solve(odd, even, np.zeros(len(first))).phi
    assert ((with_players - truth) ** 2).mean() < 0.5 * ((without - truth) ** 2).mean()


def test_of_many_pairs_of_players_the_heaviest_keep_their_weights(monkeypatch):
    plan = make_plan(12, 100, seed=0)
    first, last = np.array(plan.pairs()).T
    v = interacting(plan.masks)
    odd, even = np.append(v[first] - v[last], v[-1] - v[0]) / 2, (v[first] + v[last]) / 2
    relevance = PairKriging(plan.masks[first], plan.inclusion[first]).relevance
    every = relevance.measure(odd, even).pairs[np.triu_indices(12, 1)]
    monkeypatch.setattr("condshap.numerics.relevance._MOST_PAIRS", 10)
    some = relevance.measure(odd, even).pairs[np.triu_indices(12, 1)]
    kept = np.argsort(every)[-10:]
    np.testing.assert_array_equal(some[kept], every[kept])
    np.testing.assert_allclose(np.delete(some, kept), np.delete(every, kept).mean())


def test_players_are_not_looked_at_when_there_are_many_pairs():
    plan = make_plan(10, 2 * 120 + 2, seed=0)
    first = np.array(plan.pairs())[:, 0]
    assert PairKriging(plan.masks[first], plan.inclusion[first]).relevance is not None
    plan = make_plan(10, 2 * 121 + 2, seed=0)
    first = np.array(plan.pairs())[:, 0]
    assert PairKriging(plan.masks[first], plan.inclusion[first]).relevance is None


def test_with_noise_alone_kriging_is_as_good_as_least_squares():
    # 300 additive games with noise: ratio of mean squares within 8 % (standard error of their ratio, which share the
    # noise, below 1 %; the excess is what the fit spends on interactions that are not there)
    plan = make_plan(12, 122, seed=0)
    rng = np.random.default_rng(0)
    noise = np.full((122, 300, 1), 0.3)
    noise[[0, -1]] = 0.0
    v = (plan.masks @ np.arange(12.0))[:, None, None] + noise * rng.normal(size=noise.shape)
    A, _ = wls_operator(plan.masks, np.ones(122))
    solved = solve_shapley(v, noise, plan)
    ours, plain = (((phi - np.arange(12.0)) ** 2).mean() for phi in (solved.values[..., 0], (A @ v[..., 0]).T))
    assert ours < 1.08 * plain
    assert 0.9 < np.sqrt((solved.std_errors**2).mean() / ours) < 1.2


def test_noise_of_each_pair_counts():
    # additive games, every second pair with ten times the noise: weights by variance beat equal ones by far
    plan = make_plan(10, 102, seed=0)
    rng = np.random.default_rng(0)
    noise = np.zeros((102, 200, 1))
    for i, pair in enumerate(plan.pairs()):
        noise[pair] = 0.5 if i % 2 else 0.05
    v = (plan.masks @ np.arange(10.0))[:, None, None] + noise * rng.normal(size=noise.shape)
    A, _ = wls_operator(plan.masks, np.ones(102))
    ours = ((solve_shapley(v, noise, plan).values[..., 0] - np.arange(10.0)) ** 2).mean()
    assert ours < 0.6 * (((A @ v[..., 0]).T - np.arange(10.0)) ** 2).mean()


def test_fixed_plan_is_the_beginning_of_the_sequence_and_solved_as_auto_is():
    plan, (whole, pairs) = make_plan(12, 200, seed=3), nested_plan(12, None, seed=3)
    some, positions = beginning(whole, pairs, 99)
    np.testing.assert_array_equal(plan.masks, some.masks)
    v = game(whole, order=4)[positions]
    fixed, auto = solve_shapley(v, np.zeros_like(v), plan), solve_pairs(v, np.zeros_like(v), some)[0]
    np.testing.assert_array_equal(fixed.values, auto.values)
    np.testing.assert_array_equal(fixed.std_errors, auto.std_errors)


def test_rows_of_a_fixed_plan_do_not_depend_on_each_other():
    plan, rng = make_plan(12, 150, seed=0), np.random.default_rng(0)
    noise = rng.random((150, 5, 2)) * np.array([0.0, 0.01, 0.1, 1.0, 5.0])[:, None]
    v = rng.normal(size=noise.shape) + (plan.masks @ np.arange(12.0))[:, None, None]
    together = solve_shapley(v, noise, plan)
    for r in range(5):
        alone = solve_shapley(v[:, [r]], noise[:, [r]], plan)
        np.testing.assert_array_equal(alone.values[0], together.values[r])
        np.testing.assert_array_equal(alone.std_errors[0], together.std_errors[r])
