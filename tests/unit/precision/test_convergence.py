"""n_coalitions="auto": nested plans, a solver that learns interactions, and rows that stop when they are precise."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import condshap as cs
from condshap.approaches.empirical import Empirical
from condshap.approaches.regression_surrogate import RegressionSurrogate
from condshap.coalitions import all_coalitions, make_plan
from condshap.coalitions.nested import beginning, nested_plan, pair_sequence
from condshap.exceptions import CondShapWarning, NotFittedError, OptionError
from condshap.numerics.kriging import PairKriging
from condshap.numerics.kriging_prior import COVARIANCES, Covariance, odd_prior
from condshap.numerics.relevance import Involvement
from condshap.numerics.shapley import exact_shapley, wls_operator
from condshap.numerics.threes import threes
from condshap.precision.convergence import Goal, converge, least_spread
from condshap.solvers import noise_with_all, solve_pairs, solve_shapley
from condshap.testing import example_table
from condshap.values.table import ValueTable

M = 12
RNG = np.random.default_rng(0)
X = 0.7 * RNG.normal(size=(300, 1)) + 0.7 * RNG.normal(size=(300, M))
SLOPES = RNG.normal(size=M)


def model(x):
    x = np.asarray(x)
    products = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) * x[:, 3] + 2 * x[:, 4] * x[:, 5] * x[:, 6]
    return sum(x[:, j] * SLOPES[j] for j in range(M)) + products


def fit(**options):
    rows = options.pop("rows", X)
    given = {"approach": "independence", "n_samples": 300, "n_coalitions": "auto"}
    return cs.Explainer(options.pop("model", model), **{**given, **options}).fit(rows)


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


def game(plan, seed=0, order=3):
    """Sum of random products of up to `order` indicators, (C, 2, 1)."""
    rng = np.random.default_rng(seed)
    v = np.zeros((len(plan.masks), 2))
    for d in range(1, order + 1):
        for _ in range(20):
            members = rng.choice(plan.n_players, d, replace=False)
            v += plan.masks[:, members].all(axis=1)[:, None] * rng.normal(size=2)
    return v[..., None]


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


# --- the loop ---------------------------------------------------------------------------------------------------------


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


# --- the explainer ----------------------------------------------------------------------------------------------------


def test_explanation_reaches_the_truth_of_all_coalitions():
    found = fit().explain(X[:5])
    truth = fit(n_coalitions=2**M).explain(X[:5])
    spread = np.ptp(truth.values, axis=1)
    assert (found.std_errors.max(axis=1) <= 0.02 * np.ptp(found.values, axis=1)).all()
    assert (np.abs(found.values - truth.values).max(axis=1) <= 0.06 * spread).all()  # three standard errors
    about = found.provenance
    assert about.n_coalitions < 2**M / 4
    assert 0 < about.reached <= about.tolerance == 0.02
    assert not about.is_exact
    assert abs(float(found.msev) / float(truth.msev) - 1) < 0.5


def test_rows_do_not_depend_on_each_other_and_jobs_change_nothing():
    explainer = fit()
    together = explainer.explain(X[:4])
    alone = explainer.explain(X[2:3])
    np.testing.assert_array_equal(alone.values[0], together.values[2])
    np.testing.assert_array_equal(alone.std_errors[0], together.std_errors[2])
    np.testing.assert_array_equal(fit(n_jobs=2, memory_budget="1MB").explain(X[:4]).values, together.values)


def test_refining_continues_and_equals_a_run_from_the_start():
    explainer = fit()
    coarse = explainer.explain(X[:3])
    fine = explainer.refine(coarse, tolerance=0.005)
    at_once = fit(tolerance=0.005).explain(X[:3])
    np.testing.assert_array_equal(fine.values, at_once.values)
    np.testing.assert_array_equal(fine.std_errors, at_once.std_errors)
    assert fine.value_table.n_evaluations == at_once.value_table.n_evaluations
    assert fine.provenance.reached <= fine.provenance.tolerance == 0.005
    one = explainer.refine(coarse[1], tolerance=0.005)
    np.testing.assert_array_equal(one.values[0], fine.values[1])
    same = explainer.refine(fine, tolerance=0.05)
    np.testing.assert_array_equal(same.values, fine.values)


def test_refining_works_from_files(tmp_path):
    explainer = fit()
    explainer.save(tmp_path / "explainer")
    explainer.explain(X[:2]).save(tmp_path / "rows.parquet")
    loaded = cs.load_explainer(tmp_path / "explainer", model)
    saved = cs.load_explanation(tmp_path / "rows.parquet")
    assert saved.provenance.tolerance == 0.02
    fine = loaded.refine(saved, tolerance=0.01)
    np.testing.assert_array_equal(fine.values, fit(tolerance=0.01).explain(X[:2]).values)


ELSE = {
    "approach": ({}, {"approach": "empirical"}),
    "option": ({"approach": Empirical(sigma=0.1)}, {"approach": Empirical(sigma=0.2)}),
    "samples": ({}, {"n_samples": 256}),
    "seed": ({}, {"seed": 1}),
    "model": ({"base_value": 0.0}, {"base_value": 0.0, "model": lambda A: model(A) + 0.01 * A[:, 0] ** 2}),
    "rows": ({"base_value": 0.0}, {"base_value": 0.0, "rows": X[:-1]}),
}


@pytest.mark.parametrize("what", ELSE)
def test_refining_an_explanation_of_another_maker_is_refused(what):
    mine, other = (fit(**options, tolerance=0.2) for options in ELSE[what])
    with pytest.raises(OptionError, match=r"must come from this explainer.*Explain the rows again"):
        mine.refine(other.explain(X[:2]), tolerance=0.1)
    assert mine.refine(mine.explain(X[:2]), tolerance=0.1).provenance.made_by == mine.explain(X[:1]).provenance.made_by


def test_refining_with_a_seed_or_a_model_that_changed_since_is_refused():
    explainer = fit()
    coarse = explainer.explain(X[:2])
    with pytest.raises(OptionError, match="made by another one"):
        explainer.set_params(seed=5).refine(coarse, tolerance=0.01)
    scale = [1.0]
    changing = fit(model=lambda A: scale[0] * model(A))
    coarse = changing.explain(X[:2])
    scale[0] = 1.01
    with pytest.raises(OptionError, match="predictions for the explained rows differ"):
        changing.refine(coarse, tolerance=0.01)


def test_an_explainer_loaded_with_another_model_is_another_maker(tmp_path):
    explainer = fit()
    coarse = explainer.explain(X[:2])
    explainer.save(tmp_path / "explainer")
    with pytest.warns(cs.CondShapWarning, match="must be the one"):
        loaded = cs.load_explainer(tmp_path / "explainer", lambda A: 1.1 * model(A))
    with pytest.raises(OptionError, match="made by another one"):
        loaded.refine(coarse, tolerance=0.01)


@pytest.mark.parametrize("name", cs.available_approaches())
def test_the_digest_of_a_maker_is_the_same_after_the_same_fit_and_after_a_file(tmp_path, name):
    table = example_table(60)
    quick = {
        "vaeac": cs.approaches.VAEAC(epochs=2, depth=1),
        "regression_surrogate": RegressionSurrogate(LinearRegression()),
    }
    approach = quick.get(name, name)
    is_numeric = cs.Kind.CONTINUOUS in cs.approaches.find_approach(name).supports
    table = table[["a", "b", "c"] if is_numeric else ["d", "e", "f"]]

    def score(rows):
        return (np.asarray(rows.iloc[:, 0]) == table.iloc[0, 0]) + 0.5 * (
            np.asarray(rows.iloc[:, 1]) == table.iloc[1, 1]
        )

    one, two = (
        cs.Explainer(score, approach=approach, n_jobs=n, progress=False, check_draws=False).fit(table) for n in (1, 2)
    )
    one.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", score)
    assert one.made_by_ == two.made_by_ == loaded.made_by_
    other = cs.Explainer(score, approach=approach, progress=False, check_draws=False).fit(table[:-1])
    assert other.made_by_ != one.made_by_


def test_refining_something_else_is_refused():
    explainer = fit()
    with pytest.raises(OptionError, match="refine needs an explainer fitted with n_coalitions='auto', got 100"):
        fit(n_coalitions=100).refine(explainer.explain(X[:1]), tolerance=0.01)
    for other in (fit(seed=1), fit(base_value=3.0), fit(n_coalitions=100)):
        with pytest.raises(OptionError, match="must come from this explainer"):
            explainer.refine(other.explain(X[:1]), tolerance=0.01)
    with pytest.raises(OptionError, match="tolerance must be a number between 0 and 1"):
        explainer.refine(explainer.explain(X[:1]), tolerance=0)
    with pytest.raises(NotFittedError):
        cs.Explainer(model, n_coalitions="auto").refine(explainer.explain(X[:1]), tolerance=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_coalitions": "all"}, "n_coalitions must be an integer, 'auto' or None, got 'all'"),
        ({"tolerance": 0}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": 1.0}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": "small"}, "tolerance must be a number between 0 and 1"),
        ({"tolerance": True}, "tolerance must be a number between 0 and 1"),
        ({"max_coalitions": 0}, "max_coalitions must be an integer of at least 1"),
        ({"max_coalitions": 100, "n_coalitions": 50}, "max_coalitions needs n_coalitions='auto'"),
        ({"coalitions": all_coalitions(M)}, "n_coalitions and coalitions cannot be combined"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        fit(**options)


@pytest.mark.parametrize("n_players", [1, 2, 3, 4])
def test_few_players_are_explained_with_all_coalitions(n_players):
    rows = X[:, :n_players]

    def f(x):
        return np.asarray(x).prod(axis=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cs.explain(f, rows, rows[:3], approach="independence", n_samples=300, n_coalitions="auto")
    every = cs.explain(f, rows, rows[:3], approach="independence", n_samples=300)
    assert found.provenance.is_exact
    np.testing.assert_allclose(found.values, every.values, atol=1e-14)
    np.testing.assert_array_equal(found.value_table.coalitions, every.value_table.coalitions)


def test_groups_are_players():
    groups = {"first": [0, 1, 2, 3], "second": [4, 5, 6, 7], "rest": [8, 9, 10, 11]}
    found, every = (fit(groups=groups, n_coalitions=n, n_samples=300).explain(X[:2]) for n in ("auto", None))
    np.testing.assert_allclose(found.values, every.values, atol=1e-13)
    pairs = {f"g{j}": [2 * j, 2 * j + 1] for j in range(6)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(groups=pairs, n_samples=300).explain(X[:2]).values.shape == (2, 6)


def test_every_output_settles():
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
    classes = LogisticRegression().fit(X, y)
    found = fit(model=classes, tolerance=0.05).explain(X[:2])
    assert found.values.shape == (2, M, 3)
    reached = found.std_errors.max(axis=1) / np.ptp(found.values, axis=1)
    assert (reached <= 0.05).all()
    fine = fit(model=classes, tolerance=0.04)
    np.testing.assert_allclose(fine.refine(found, tolerance=0.04).values, fine.explain(X[:2]).values, atol=1e-12)


def test_list_of_approaches_and_regressions_work_with_it():
    mixed = ["independence"] * 5 + ["gaussian"] * (M - 6)
    found = fit(approach=mixed, tolerance=0.05).explain(X[:2])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, found.predictions, atol=1e-9)
    regression = fit(approach=RegressionSurrogate(LinearRegression()), n_samples=None, tolerance=0.1).explain(X[:2])
    assert regression.provenance.reached <= 0.1


def test_samples_by_size_are_the_same_for_all_coalitions_of_a_size():
    explainer = fit(approach="gaussian", n_samples=None)
    for size in range(1, M):
        assert len(np.unique(explainer.n_samples_[explainer.plan_.sizes == size])) == 1
    assert explainer.n_samples_[explainer.plan_.interior].min() >= 16


def test_progress_is_shown_towards_the_tolerance(capsys):
    fit(progress=True).explain(X[:1])
    shown = capsys.readouterr().err
    assert "precision: 100 %" in shown
    assert "0 rows to go" in shown
    assert "wanted 2.0%" in shown
    assert "v(S)" not in shown
    fit(progress=False).explain(X[:1])
    assert capsys.readouterr().err == ""


# --- errors as large as the values ------------------------------------------------------------------------------------


def blurred(x):
    """Interactions of many features and hardly any effect of one."""
    x = np.asarray(x)
    return 0.01 * x.sum(axis=1) + sum(x[:, j] * x[:, (j + 1) % M] * x[:, (j + 5) % M] for j in range(M))


def test_errors_as_large_as_the_values_are_announced_and_recorded():
    explainer = fit(model=blurred, n_coalitions=30)
    with pytest.warns(
        CondShapWarning, match=r"median error is .* Raise n_coalitions \(30 were used\) or n_samples, set"
    ):
        found = explainer.explain(X[:3])
    assert any("standard errors must be well below" in text for text in found.provenance.warnings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(n_coalitions=200).explain(X[:3]).provenance.warnings == ()


def test_noise_as_large_as_the_values_asks_for_samples_where_all_coalitions_are_there():
    def flat(x):
        return np.asarray(x)[:, :3] @ [1.0, 0.01, 0.01] + 30 * np.sin(40 * np.asarray(x)[:, :3]).prod(axis=1)

    with pytest.warns(CondShapWarning, match=r"mean absolute value .*\. Raise n_samples\.$"):
        cs.explain(flat, X[:, :3], X[:3, :3], approach="independence", n_samples=3)


def test_fixed_plans_survive_a_file(tmp_path):
    explainer = fit(n_coalitions=100)
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", model)
    assert loaded.plan_.is_kriged
    before, after = explainer.explain(X[:2]), loaded.explain(X[:2])
    np.testing.assert_array_equal(after.values, before.values)
    assert after.provenance.n_coalitions == 100


def test_odd_number_of_coalitions_is_told_as_what_was_used():
    even, odd = (fit(n_coalitions=n).explain(X[:2]) for n in (80, 81))
    np.testing.assert_array_equal(even.values, odd.values)
    assert odd.provenance.n_coalitions == 80
