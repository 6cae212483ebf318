"""Losses: intervals cover, noise leaves no bias, and Shapley effects of linear models come out.

All seeds are fixed, so a passing test passes again. With 60 other seeds, loss values were covered 93.1 to 94.1 % (gaussian)
and 94.3 to 96.0 % (independence), log-odds 92.7 %, with a standard deviation of 2.3 to 3.9 % between seeds, that is of 0.4
to 0.6 % for 40 seeds together: the bounds of 90 and 99 % are at least four of these away. With 300 other tables of 100 rows,
importance was covered 92.7 % (squared error, whose values are skewed, so that a hundred rows say too little) and 94.8 %
(log loss), known to 0.9 and 0.7 %: one false alarm in several hundred runs with other seeds.
"""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import condshap as cs

pytestmark = pytest.mark.slow
QUIET = {"progress": False, "check_draws": False}


def equicorrelated(n, M, seed):
    rng = np.random.default_rng(seed)
    return np.sqrt(0.5) * rng.normal(size=(n, 1)) + np.sqrt(0.5) * rng.normal(size=(n, M))


def smooth(x):
    return x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + x[:, 3] + np.exp(0.3 * x[:, 0])


X = equicorrelated(400, 4, seed=0)
Y = smooth(X) + 0.5 * np.random.default_rng(1).normal(size=400)
BOOSTED = GradientBoostingRegressor(n_estimators=40, random_state=0).fit(X, Y)
CLASSES = LogisticRegression().fit(np.column_stack([X, X[:, :1] * X[:, 1:2]]), Y > 1)


def probability(x):
    return CLASSES.predict_proba(np.column_stack([x, x[:, :1] * x[:, 1:2]]))[:, 1]


def pinball(y, v):
    return np.maximum(0.8 * (y - v), 0.2 * (v - y))


LOSSES = {
    "squared": (smooth, Y, "squared_error"),
    "boosted": (BOOSTED, Y, "squared_error"),
    "absolute": (smooth, Y, "absolute_error"),
    "own": (smooth, Y, pinball),
    "log": (probability, (Y > 1).astype(int), "log_loss"),
}


@pytest.mark.parametrize("approach", ["gaussian", "independence"])
@pytest.mark.parametrize("case", LOSSES)
def test_intervals_of_loss_values_cover(case, approach):
    model, y, loss = LOSSES[case]
    many = {"gaussian": 4096, "independence": 400}[approach]
    truth = cs.Explainer(model, approach=approach, n_samples=many, **QUIET).fit(X).explain_loss(X[:25], y[:25], loss)
    few = cs.Explainer(model, approach=approach, n_samples=24, **QUIET)
    inside = []
    for seed in range(40):
        found = few.set_params(seed=seed).fit(X).explain_loss(X[:25], y[:25], loss)
        error = np.hypot(found.std_errors, truth.std_errors)
        inside.append(np.abs(found.values - truth.values) <= 1.96 * error)
    print(f"{case}, {approach}: {np.mean(inside):.3f}")
    assert 0.90 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("case", ["squared", "absolute", "own", "log"])
def test_few_samples_leave_no_bias_in_losses_of_coalitions(case):
    # mean loss over rows and interior coalitions, where the bias of all is of one sign and does not cancel
    model, y, loss = LOSSES[case]
    exact = cs.Explainer(model, approach="independence", n_samples=400, **QUIET).fit(X)
    truth = -exact.explain_loss(X[:40], y[:40], loss).value_table.values[1:-1].mean()
    few = cs.Explainer(model, approach="independence", n_samples=6, **QUIET).fit(X)
    corrected, naive = [], []
    for seed in range(100):
        few.set_params(seed=seed)
        corrected.append(-few.explain_loss(X[:40], y[:40], loss).value_table.values[1:-1].mean())
        v = few.explain(X[:40]).value_table.values[1:-1]
        naive.append(np.mean([plain_loss(case, y[:40], one) for one in v]))
    error = np.std(corrected, ddof=1) / 10
    print(
        f"bias, {case}: {np.mean(corrected) - truth:.5f} +- {error:.5f}, {np.mean(naive) - truth:.5f} if it were left"
    )
    assert np.mean(naive) - truth > 8 * np.std(naive, ddof=1) / 10  # there is something to take off
    assert abs(np.mean(corrected) - truth) < 4 * error + 0.1 * (np.mean(naive) - truth)


def plain_loss(case, y, v):
    if case == "log":
        return -np.log(np.where(y == 1, v, 1 - v)).mean()
    return {"squared": (y - v) ** 2, "absolute": np.abs(y - v), "own": pinball(y, v)}[case].mean()


@pytest.mark.parametrize("case", ["squared", "log"])
def test_intervals_of_importance_cover_when_rows_are_drawn_again(case):
    model, _, loss = LOSSES[case]
    rng = np.random.default_rng(3)

    def answers(x):
        if case == "log":
            return (rng.random(len(x)) < probability(x)).astype(int)
        return smooth(x) + 0.5 * rng.normal(size=len(x))

    explainer = cs.Explainer(model, approach="gaussian", n_samples=16, **QUIET).fit(equicorrelated(4000, 4, seed=5))
    population = equicorrelated(30_000, 4, seed=6)
    truth = explainer.explain_loss(population, answers(population), loss)
    inside = []
    for table in range(300):
        rows = equicorrelated(100, 4, seed=1000 + table)
        found = explainer.explain_loss(rows, answers(rows), loss)
        error = np.hypot(found.importance_std_errors, truth.importance_std_errors)
        inside.append(np.abs(found.importance - truth.importance) <= 1.98 * error)
    print(f"importance, {case}: {np.mean(inside):.3f}")
    assert 0.90 <= np.mean(inside) <= 0.99


def shapley_effects(beta, covariance):
    """Shares of the variance of a linear model of normal features (Owen 2014, Song et al. 2016), in closed form."""
    with_f = covariance @ beta

    def explained(known):
        some = list(known)
        return float(with_f[some] @ np.linalg.solve(covariance[np.ix_(some, some)], with_f[some])) if some else 0.0

    d = len(beta)
    effects = np.zeros(d)
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for n in range(d):
            weight = factorial(n) * factorial(d - n - 1) / factorial(d)
            for some in combinations(others, n):
                effects[j] += weight * (explained((*some, j)) - explained(some))
    return effects


@pytest.mark.parametrize("d", [3, 10])
def test_shapley_effects_of_a_linear_model_come_out(d):
    # the loss of exact predictions is 0, so importance shares out the variance; 13 values at 3 errors alarm 1 time in 30
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    covariance = root @ root.T / d + 0.5 * np.eye(d)
    beta, factor = rng.normal(size=d), np.linalg.cholesky(covariance)
    train, rows = (rng.normal(size=(n, d)) @ factor.T for n in (100_000, 12_000))
    explainer = cs.Explainer(lambda x: x @ beta, approach="gaussian", additive=True, **QUIET).fit(train)
    found = explainer.explain_loss(rows, rows @ beta)
    wanted = shapley_effects(beta, covariance)
    off, size = np.abs(found.importance - wanted), found.importance_std_errors
    print(
        f"Shapley effects, d = {d}: off by {(off / size).max():.2f} errors, {size.max() / wanted.max():.4f} of the largest"
    )
    assert found.importance_std_errors.max() <= 0.02 * wanted.max()
    assert (np.abs(found.importance - wanted) <= 3 * found.importance_std_errors).all()
    assert wanted.sum() == pytest.approx(beta @ covariance @ beta)


def test_intervals_of_log_odds_cover():
    many = cs.Explainer(probability, approach="gaussian", n_samples=4096, link="logit", **QUIET).fit(X).explain(X[:25])
    few = cs.Explainer(probability, approach="gaussian", n_samples=24, link="logit", **QUIET)
    inside = []
    for seed in range(40):
        found = few.set_params(seed=seed).fit(X).explain(X[:25])
        inside.append(np.abs(found.values - many.values) <= 1.96 * np.hypot(found.std_errors, many.std_errors))
    print(f"log-odds: {np.mean(inside):.3f}")
    assert 0.90 <= np.mean(inside) <= 0.99
