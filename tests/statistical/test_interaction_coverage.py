"""95 % intervals of pair interactions cover those of a nearly exact table about 95 % of the time.

All seeds are fixed, so a passing test passes again. With all coalitions, the 20 cases of approach, model and index cover
94.4 to 96.2 %. Between seeds this varies with a standard deviation of 2.5 to 4.5 %, so at most 0.8 % for the mean of 30
seeds: the bounds of 90 and 99 % are about five of these away, and false alarms with other seeds are negligible.

Sampled coalitions are spread out, not random, which makes their intervals wider than they need be: they cover 95.9 to 97.7 %
with 160 and 220 of 256 coalitions (0.4 % standard deviation of the mean of 15 seeds, three or more of
which are left to the bounds), and 99.9 % with 100, where only the
lower bound is asked for.
"""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import condshap as cs
from condshap.numerics.interactions import INDICES

pytestmark = pytest.mark.slow


def equicorrelated(n, M, seed):
    rng = np.random.default_rng(seed)
    return np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, M))


def smooth(X):
    slopes = X @ np.linspace(0.5, 1.5, X.shape[1])
    return (
        slopes
        + X[:, 0] * X[:, 1]
        + np.sin(2 * X[:, 2])
        + np.exp(0.3 * X[:, 3]) * X[:, 4]
        + X[:, 0] * X[:, 2] * X[:, -1]
    )


X, ROWS = {M: equicorrelated(500, M, seed=1) for M in (5, 8)}, {M: equicorrelated(6, M, seed=77) for M in (5, 8)}
MODELS = {
    M: {
        "smooth": smooth,
        "boosted": GradientBoostingRegressor(n_estimators=60, max_depth=4, random_state=0)
        .fit(X[M], smooth(X[M]))
        .predict,
    }
    for M in (5, 8)
}


def explain(model, M, **options):
    return cs.explain(MODELS[M][model], X[M], ROWS[M], check_draws=False, progress=False, **options)


def pairs_of(interactions):
    """Values and errors (pairs, R)."""
    sets = [members for members in interactions.values if len(members) == 2]
    return np.array(
        [[by_set[members] for members in sets] for by_set in (interactions.values, interactions.std_errors)]
    )


def is_inside(interactions, reference):
    (values, errors), (expected, off) = pairs_of(interactions), pairs_of(reference)
    return np.abs(values - expected) <= 1.96 * np.hypot(errors, off)


@pytest.mark.parametrize("model", ["smooth", "boosted"])
@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_intervals_cover_with_all_coalitions(approach, model):
    exact = explain(model, 5, approach=approach, n_samples=4096, seed=999)
    inside = {index: [] for index in INDICES}
    for seed in range(30):
        one = explain(model, 5, approach=approach, n_samples=64, seed=seed)
        for index in INDICES:
            inside[index].append(is_inside(one.interactions(index), exact.interactions(index)))
    covered = {index: float(np.mean(found)) for index, found in inside.items()}
    print(approach, model, {index: round(share, 3) for index, share in covered.items()})
    assert all(0.90 <= share <= 0.99 for share in covered.values()), covered


@pytest.mark.parametrize("model", ["smooth", "boosted"])
@pytest.mark.parametrize(("n_coalitions", "most"), [(100, 1.0), (160, 0.99), (220, 0.99)])
def test_intervals_of_fsii_cover_with_sampled_coalitions(model, n_coalitions, most):
    exact = explain(model, 8, approach="gaussian", n_samples=512, seed=999).interactions("FSII")
    options = {"approach": "gaussian", "n_samples": 64, "n_coalitions": n_coalitions}
    found = [is_inside(explain(model, 8, seed=seed, **options).interactions("FSII"), exact) for seed in range(15)]
    print(f"FSII, {n_coalitions} coalitions, {model}: {np.mean(found):.3f}")
    assert 0.90 <= np.mean(found) <= most
