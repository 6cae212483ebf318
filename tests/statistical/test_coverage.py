"""95 % intervals from `std_errors` cover the large-K answer about 95 % of the time.

All seeds are fixed, so a passing test passes again. With other seeds: over 60 seeds at K = 32 the gaussian intervals covered
94.2 % (smooth) and 94.5 % (boosted), with a standard deviation of 4.3 % and 3.6 % between seeds, that is 0.8 % and 0.7 % for
30 seeds together. The bounds of 90 and 99 % are then at least five standard deviations away: false alarms are negligible.

Row by row, in 18 cases and 200 seeds each: rows covered 92.5 to 98.0 %, the means of cases were 94.5 to 96.6 %, and single
features 89 % or more. By the binomial distribution a feature that covers 92 % is below 85 % in one of 3,000 runs, one that
covers 94 % in one of a million; few are as low as 92 %, so that a run of all cases raises a false alarm in the order of one
time in a hundred. Of rows one tenth may be outside the bounds; with 200 other seeds none was in three cases.
"""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import condshap as cs

pytestmark = pytest.mark.slow


def equicorrelated(n, M, seed):
    rng = np.random.default_rng(seed)
    return np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, M))


def smooth(X):
    M = X.shape[1]
    return X @ np.linspace(0.5, 1.5, M) + X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + np.exp(0.3 * X[:, 3])


def lognormal_model(X):
    return np.log1p(np.exp(X[:, 0])) * X[:, 1] + np.abs(X[:, 2] - X[:, 3]) + X[:, 4]


def models(X):
    y = smooth(X) + np.random.default_rng(9).normal(size=len(X))
    boosted = GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0).fit(X, y)
    forest = RandomForestRegressor(30, max_features="sqrt", random_state=0).fit(X, y)
    return {"smooth": smooth, "kinked": lognormal_model, "boosted": boosted.predict, "forest": forest.predict}


X5, X10 = equicorrelated(800, 5, seed=1), equicorrelated(800, 10, seed=2)
MODELS5, MODELS10 = models(X5), models(X10)


ROWS5 = np.concatenate([X5[:6], equicorrelated(10, 5, seed=77)])  # half of them had 82 to 89 % by a factor for all rows
ROWS10 = equicorrelated(10, 10, seed=78)
CASES = {5: (X5, ROWS5, MODELS5), 10: (X10, ROWS10, MODELS10)}


def explanations(f, X, rows, approach, seeds):
    """Explanations by seed. Networks are trained once, and only their draws vary; all else is fitted with every seed."""
    explainer = cs.Explainer(f, approach=approach, check_draws=False, progress=False).fit(X)
    for seed in seeds:
        explainer.set_params(seed=seed)
        yield (explainer if approach == "vaeac" else explainer.fit(X)).explain(rows)


@pytest.mark.parametrize("M", CASES)
@pytest.mark.parametrize("model", ["forest", "boosted", "smooth"])
@pytest.mark.parametrize("approach", ["gaussian", "copula", "vaeac"])
def test_intervals_cover_row_by_row(approach, model, M):
    # coverage of a row is that of its M features together; the mean of 200 unbiased answers is the truth
    X, rows, of_model = CASES[M]
    found = [(e.values, e.std_errors) for e in explanations(of_model[model], X, rows, approach, range(200))]
    values, errors = np.moveaxis(np.array(found), 1, 0)
    inside = np.abs(values - values.mean(axis=0)) <= 1.96 * errors
    by_row = inside.mean(axis=(0, 2))
    assert ((by_row >= 0.88) & (by_row <= 0.995)).mean() >= 0.9, by_row
    assert by_row.min() >= 0.8, by_row
    assert inside.mean(axis=0).min() >= 0.85, inside.mean(axis=0)  # single features


@pytest.mark.parametrize("model", ["forest", "boosted"])
def test_a_target_that_is_reported_as_reached_is_reached(model):
    # a standard deviation from 60 seeds is known to 9 %, and the largest of 80 of them is what is asked for
    X, rows, of_model = CASES[5]
    explainer = cs.Explainer(of_model[model], approach="gaussian", target_error=0.01, check_draws=False, progress=False)
    found = [explainer.set_params(seed=seed).fit(X).explain(rows) for seed in range(60)]
    assert max(one.std_errors.max() for one in found) <= 0.01
    deviations = np.std([one.values for one in found], axis=0, ddof=1)
    assert deviations.max() <= 0.0135
    assert np.sqrt((deviations**2).mean()) <= 0.01


def coverage(f, X, rows, reference, seeds, **options):
    inside = []
    for seed in seeds:
        explanation = cs.explain(f, X, rows, seed=seed, **options)
        error = np.hypot(explanation.std_errors, reference.std_errors)
        inside.append(np.abs(explanation.values - reference.values) <= 1.96 * error)
    return np.mean(inside)


@pytest.mark.parametrize("model", MODELS5)
@pytest.mark.parametrize("approach", ["gaussian", "copula"])
@pytest.mark.parametrize("n_samples", [32, 64, None])
def test_quasi_monte_carlo_intervals_cover_with_all_coalitions(model, approach, n_samples):
    f, rows = MODELS5[model], X5[:10]
    reference = cs.explain(f, X5, rows, approach=approach, n_samples=8192, seed=999)
    covered = coverage(f, X5, rows, reference, range(30), approach=approach, n_samples=n_samples)
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("model", ["smooth", "boosted"])
def test_independence_intervals_cover_the_answer_with_all_training_rows(model):
    f, rows = MODELS5[model], X5[:10]
    reference = cs.explain(f, X5, rows, approach="independence", n_samples=len(X5))
    covered = coverage(f, X5, rows, reference, range(30), approach="independence", n_samples=100)
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("model", ["smooth", "boosted"])
@pytest.mark.parametrize("n_coalitions", [30, 100, 300, 700])
def test_intervals_cover_with_sampled_coalitions(model, n_coalitions):
    f, rows = MODELS10[model], X10[:8]
    reference = cs.explain(f, X10, rows, approach="gaussian", n_samples=512, seed=999)
    covered = coverage(f, X10, rows, reference, range(20), approach="gaussian", n_coalitions=n_coalitions)
    assert 0.90 <= covered <= 0.99


@pytest.mark.parametrize("model", MODELS10)
@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_default_samples_keep_the_error_below_two_per_cent_of_the_spread(model, approach):
    f, rows = MODELS10[model], X10[:8]
    reference = cs.explain(f, X10, rows, approach=approach, n_samples=512, seed=999)
    explanation = cs.explain(f, X10, rows, approach=approach)
    spread = np.ptp(reference.values, axis=1)
    assert (np.abs(explanation.values - reference.values).max(axis=1) < 0.02 * spread).all()
    assert (explanation.std_errors.max(axis=1) < 0.02 * spread).all()


def test_msev_is_not_punished_for_few_samples():
    # the Monte Carlo variance of v is taken off: K = 16 and K = 1024 agree although the plain criterion would differ
    f, rows = MODELS5["boosted"], X5[:200]
    few, many = (cs.explain(f, X5, rows, approach="independence", n_samples=k) for k in (16, 800))
    uncorrected = ((few.predictions - few.value_table.values[1:-1]) ** 2).mean()
    assert abs(float(few.msev) - float(many.msev)) < 0.2 * (uncorrected - float(many.msev))
