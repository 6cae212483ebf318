import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import condshap as cs
from condshap.coalitions import all_coalitions, make_plan, sample_coalitions
from condshap.exceptions import CondShapWarning, OptionError
from condshap.numerics.shapley import wls_operator
from condshap.precision import target_error as adaptive
from condshap.precision.influence import squared_influences
from condshap.solvers import solve_pairs


def normals(n, M, seed):
    rng = np.random.default_rng(seed)
    return np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, M))


def smooth(X):
    # column by column: a product of matrices would round a row by its batch
    line = sum(slope * column for slope, column in zip(np.linspace(0.5, 1.5, X.shape[1]), X.T, strict=True))
    return line + X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + np.exp(0.3 * X[:, 3])


def two_outputs(X):
    return np.column_stack([smooth(X), 5 * np.cos(X[:, 0])])


X5, ROWS5 = normals(400, 5, seed=1), normals(12, 5, seed=2)


def test_influences_are_those_of_the_solver():
    plan = all_coalitions(4)
    A, _ = wls_operator(plan.masks, plan.weights)
    np.testing.assert_allclose(squared_influences(plan)[:, 1:-1], A[:, 1:-1] ** 2, atol=1e-12)
    sampled = sample_coalitions(8, 60, seed=0)
    A, _ = wls_operator(sampled.masks, sampled.weights)
    np.testing.assert_allclose(squared_influences(sampled), A**2)


def test_influences_with_kriging_are_at_least_those_that_a_game_chooses():
    # Monte Carlo noise in an additive game: what the errors are made of, but for the games' own relevances
    plan, rng = make_plan(8, 60, seed=0), np.random.default_rng(0)
    noise = rng.random((60, 20, 1)) * np.r_[0, np.full(58, 0.01), 0][:, None, None]
    v = (plan.masks @ np.arange(8.0))[:, None, None] + rng.normal(size=noise.shape) * noise
    promised = np.sqrt(np.einsum("pc,crn->rpn", squared_influences(plan), noise**2))
    solved, missing = solve_pairs(v, noise, plan)
    reported = np.sqrt(np.maximum(solved.std_errors**2 - missing**2, 0))
    assert (reported <= 1.05 * promised).all()
    assert (reported >= 0.4 * promised).all()


@pytest.mark.parametrize("target", [0.05, 0.01, 0.003])
def test_every_row_and_feature_reaches_the_target(target):
    # the mean square of 60 errors over the square of the target was 0.27 to 1.24 in 60 runs of other seeds (20 a target),
    # with a standard deviation of 0.2: 1.5 is seen by chance in less than 1 %
    explanation = cs.explain(smooth, X5, ROWS5, approach="gaussian", target_error=target)
    reference = cs.explain(smooth, X5, ROWS5, approach="gaussian", n_samples=8192, seed=99)
    assert explanation.std_errors.max() <= target
    assert explanation.std_errors.mean() > 0.3 * target
    assert ((explanation.values - reference.values) ** 2).mean() < 1.5 * target**2


def test_fewer_rows_are_predicted_than_with_the_same_number_of_samples_everywhere():
    X, rows = normals(400, 8, seed=3), normals(5, 8, seed=4)
    adaptive_k = cs.explain(smooth, X, rows, approach="gaussian", target_error=0.005)
    flat = cs.explain(smooth, X, rows, approach="gaussian", n_samples=64)
    assert flat.std_errors.max() > adaptive_k.std_errors.max()
    assert adaptive_k.value_table.n_evaluations < flat.value_table.n_evaluations


def test_a_row_gets_the_same_answer_alone_and_in_any_block():
    explainer = cs.Explainer(smooth, approach="gaussian", target_error=0.008).fit(X5)
    together = explainer.explain(ROWS5)
    n_first = sum(explainer.n_samples_[1:-1]) * len(ROWS5) + len(ROWS5)
    assert together.value_table.n_evaluations > n_first  # some rows got more
    explainer.memory_budget = 2**15
    for part in (slice(3, 4), slice(6, 12)):
        alone = explainer.explain(ROWS5[part])
        assert np.array_equal(alone.value_table.values, together.value_table.values[:, part])
        assert np.array_equal(alone.std_errors, together.std_errors[part])
        assert np.array_equal(alone.values, together.values[part])


def test_several_outputs_all_reach_the_target():
    explanation = cs.explain(two_outputs, X5, ROWS5, approach="copula", target_error=0.02)
    assert explanation.std_errors.shape == (12, 5, 2)
    assert explanation.std_errors.max() <= 0.02


def test_donors_are_drawn_without_replacement_up_to_all_of_them():
    explainer = cs.Explainer(smooth, approach="independence", target_error=0.02).fit(X5)
    assert explainer.n_samples_[1:-1].max() <= len(X5)
    explanation = explainer.explain(ROWS5)
    everyone = cs.explain(smooth, X5, ROWS5, approach="independence", n_samples=len(X5))
    assert explanation.std_errors.max() <= 0.02
    assert ((explanation.values - everyone.values) ** 2).mean() < 1.5 * 0.02**2  # as above


def test_where_nothing_is_random_nothing_is_added():
    explanation = cs.explain(LinearRegression().fit(X5, smooth(X5)), X5, ROWS5, approach="gaussian", target_error=1e-9)
    assert explanation.value_table.n_evaluations == len(ROWS5)
    assert explanation.provenance.n_samples == (1,)


def test_sampled_coalitions_leave_their_own_error():
    X, rows = normals(400, 11, seed=5), normals(3, 11, seed=6)
    explainer = cs.Explainer(smooth, approach="gaussian", n_coalitions=100, target_error=0.01).fit(X)
    table = explainer.explain(rows).value_table
    monte_carlo = np.sqrt(squared_influences(explainer.plan_) @ table.std_errors**2)
    assert monte_carlo.max() <= 0.01


def test_a_target_out_of_reach_is_announced(monkeypatch):
    monkeypatch.setattr(adaptive, "_CAP", 256)
    monkeypatch.setattr(adaptive, "_MOST", 64)
    with pytest.warns(
        CondShapWarning, match=r"target_error=0.001 was not reached for 12 of 12 rows, even with 256 samples"
    ):
        explanation = cs.explain(smooth, X5, ROWS5, approach="gaussian", target_error=0.001)
    assert explanation.std_errors.max() > 0.001
    assert any("target_error=0.001 was not reached" in text for text in explanation.provenance.warnings)
    assert explanation.value_table.n_evaluations < 256 * 30 * 12


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, True, "small", [0.1]])
def test_targets_that_mean_nothing_are_refused(bad):
    with pytest.raises(OptionError, match="target_error must be a finite number above 0"):
        cs.Explainer(smooth, approach="gaussian", target_error=bad).fit(X5)


def test_a_target_needs_samples_to_choose():
    with pytest.raises(OptionError, match="n_samples and target_error cannot be combined"):
        cs.Explainer(smooth, approach="gaussian", target_error=0.1, n_samples=8).fit(X5)
    with pytest.raises(
        OptionError, match=r"'regression_separate' uses no samples, so target_error must be None, got 0\.1"
    ):
        cs.Explainer(smooth, approach="regression_separate", target_error=0.1).fit(X5)
