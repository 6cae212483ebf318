"""95 % intervals of causal and asymmetric values cover about 95 % of the time, for every approach that samples.

All seeds are fixed, so a passing test passes again. The mean of all seeds is taken for the truth, whose own error makes
intervals of 100 seeds cover half a per cent too much at most. Coverage of a case is that of 10 rows, 5 features and 100
seeds together. Between single seeds it varies by about 4 %, so by 0.4 % for 100 seeds: a case that covers 92 % falls below
the bound of 90 % far less than once in a thousand runs.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import condshap as cs

pytestmark = pytest.mark.slow

ORDER = [["x0", "x1"], ["x2"], ["x3", "x4"]]
KINDS = {
    "causal": {"confounding": [True, False, False]},
    "asymmetric": {"asymmetric": True},
    "both": {"confounding": False, "asymmetric": True},
}


def chained(n, seed):
    """Rows in which later features follow from earlier ones, not linearly."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, 5))
    common = rng.normal(size=n)
    x0, x1 = common + 0.5 * noise[:, 0], common + 0.5 * noise[:, 1]
    x2 = np.sin(x0) + 0.5 * x1 + 0.5 * noise[:, 2]
    x3 = x2 + 0.3 * x2**2 + 0.5 * noise[:, 3]
    x4 = 0.5 * x3 - x0 + 0.5 * noise[:, 4]
    return pd.DataFrame(np.column_stack([x0, x1, x2, x3, x4]), columns=[f"x{j}" for j in range(5)])


TRAIN, ROWS = chained(600, 0), chained(10, 1)
Y = TRAIN["x0"] * TRAIN["x2"] + np.abs(TRAIN["x3"]) + TRAIN["x4"] + np.random.default_rng(2).normal(size=len(TRAIN))
FOREST = RandomForestRegressor(30, max_features="sqrt", random_state=0).fit(TRAIN, Y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("approach", ["gaussian", "copula", "independence", "empirical", "ctree", "vaeac"])
def test_intervals_cover(approach, kind):
    if kind == "asymmetric" and approach in ("empirical", "independence", "ctree"):
        pytest.skip("nothing is random, or the intervals are those of tests/statistical/test_coverage.py")
    options = {"causal_ordering": ORDER, "n_samples": 64, "check_draws": False, "progress": False, **KINDS[kind]}
    explainer = cs.Explainer(FOREST, approach=approach, **options).fit(TRAIN)
    found = []
    for seed in range(100):
        explainer.set_params(seed=seed)
        one = (explainer if approach in ("vaeac", "empirical") else explainer.fit(TRAIN)).explain(ROWS)
        found.append((one.values, one.std_errors))
    values, errors = np.moveaxis(np.array(found), 1, 0)
    inside = np.abs(values - values.mean(axis=0)) <= 1.96 * errors
    by_row = inside.mean(axis=(0, 2))
    print(f"{approach} {kind}: {inside.mean():.3f}, rows {by_row.min():.3f} to {by_row.max():.3f}")
    assert 0.90 <= inside.mean() <= 0.99
    assert by_row.min() >= 0.8, by_row
