import numpy as np
import pytest

import condshap as cs
from condshap.approaches import Empirical
from condshap.coalitions import all_coalitions
from condshap.exceptions import OptionError
from condshap.numerics.aicc import _criterion, best_bandwidths
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys

RNG = np.random.default_rng(0)
X = RNG.multivariate_normal(np.zeros(3), np.full((3, 3), 0.7) + 0.3 * np.eye(3), size=200)


def model(rows):
    return rows[:, 0] * rows[:, 1] + rows[:, 2]


def fitted(approach, train=X):
    schema = FeatureSchema.learn(train)
    extra = {"predict": lambda rows: model(rows)[:, None]} if approach.needs_model else {}
    return approach.fit(train, schema, plan=all_coalitions(train.shape[1]), seed=0, **extra)


def by_hand(x, mask, *, sigma=0.1, eta=0.95, cap=10**6, covariance=None):
    """Weights of all training rows, straight from the definition."""
    covariance = np.cov(X.T) if covariance is None else covariance
    d = X[:, mask] - x[mask]
    D = np.einsum("ij,jk,ik->i", d, np.linalg.inv(covariance[np.ix_(mask, mask)]), d) / mask.sum() ** 2
    w = np.exp(-(D - D.min()) / (2 * sigma**2))
    order = np.argsort(w, kind="stable")
    kept = order[np.cumsum(w[order]) / w.sum() > 1 - eta] if eta < 1 else order
    weights = np.zeros(len(X))
    weights[kept[-cap:]] = w[kept[-cap:]]
    return weights / weights.sum()


@pytest.mark.parametrize(
    "options", [{}, {"sigma": 0.5}, {"eta": 0.5}, {"sigma": 1.0, "eta": 1.0}, {"sigma": 2.0, "cap": 20}]
)
def test_weights_are_those_of_the_definition(options):
    cap = options.get("cap", 200)
    approach = fitted(Empirical(**{k: v for k, v in options.items() if k != "cap"}))
    masks = all_coalitions(3).masks[1:-1]
    donors = approach.sample(X[:4] + 0.1, masks, cap, keys=row_keys(X[:4]), seed=0)
    for c, mask in enumerate(masks):
        for r in range(4):
            weights = np.bincount(donors.indices[c, r], donors.weights[c, r], minlength=len(X))
            np.testing.assert_allclose(weights / weights.sum(), by_hand(X[r] + 0.1, mask, **options), atol=1e-12)


def test_a_given_covariance_is_used():
    given = np.diag([1.0, 4.0, 9.0])
    donors = fitted(Empirical(covariance=given)).sample(
        X[:1], np.array([[True, True, False]]), 200, keys=row_keys(X[:1]), seed=0
    )
    weights = np.bincount(donors.indices[0, 0], donors.weights[0, 0], minlength=len(X))
    wanted = by_hand(X[0], np.array([True, True, False]), covariance=given)
    np.testing.assert_allclose(weights / weights.sum(), wanted, atol=1e-12)


def test_rows_far_away_still_have_donors():
    explanation = cs.explain(model, X, X[:1] + 1e6, approach="empirical")
    assert np.isfinite(explanation.values).all()


def test_nothing_is_random_so_errors_are_zero_and_seeds_do_not_matter():
    one, other = (cs.explain(model, X, X[:3], approach="empirical", seed=s) for s in (0, 1))
    np.testing.assert_array_equal(one.values, other.values)
    assert (one.std_errors == 0).all()


def test_a_wide_kernel_is_independence():
    wide = cs.explain(model, X, X[:3], approach=Empirical(sigma=1e4, eta=1.0), n_samples=200)
    all_rows = cs.explain(model, X, X[:3], approach="independence", n_samples=200)
    np.testing.assert_allclose(wide.values, all_rows.values, atol=1e-5)


def test_criterion_by_hand_on_three_points():
    distance = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    y = np.array([1.0, 2.0, 4.0])
    hat = np.exp(-distance / (2 * 0.3**2))
    hat /= hat.sum(axis=1, keepdims=True)
    value = _criterion(0.3, [distance], [y[None, :, None]])
    assert np.isinf(value[0])  # tr H + 2 exceeds the three points
    many = np.kron(np.ones((4, 4)), distance)
    y4 = np.tile(y, 4) + np.arange(12) / 10
    hat = np.exp(-many / (2 * 0.3**2))
    hat /= hat.sum(axis=1, keepdims=True)
    trace = np.trace(hat)
    wanted = np.log(np.mean((y4 - hat @ y4) ** 2)) + (1 + trace / 12) / (1 - (trace + 2) / 12)
    assert _criterion(0.3, [many], [y4[None, :, None]])[0] == pytest.approx(wanted)


def test_bandwidth_search_finds_the_minimum_of_a_fine_grid():
    x = np.sort(RNG.normal(size=80))
    y = np.sin(2 * x) + 0.3 * RNG.normal(size=80)
    distance = (x[:, None] - x) ** 2
    found = best_bandwidths([distance], [y[None, :, None]])[0]
    grid = np.geomspace(0.01, 10, 2000)
    values = [_criterion(h, [distance], [y[None, :, None]])[0] for h in grid]
    assert _criterion(found, [distance], [y[None, :, None]])[0] <= min(values) + 1e-4


@pytest.mark.parametrize("bandwidth", ["aicc", "aicc_by_size"])
def test_chosen_bandwidths_do_not_depend_on_blocks(bandwidth):
    small = X[:60]
    one, other = (
        cs.explain(model, small, small[:3], approach=Empirical(bandwidth=bandwidth), memory_budget=budget)
        for budget in ("1GiB", "10KiB")
    )
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)


def test_bandwidth_by_size_pools_all_coalitions_of_that_size():
    approach = fitted(Empirical(bandwidth="aicc_by_size"))
    masks = all_coalitions(3).masks[1:-1]
    singles = masks[masks.sum(axis=1) == 1]
    sigmas = [approach._sigma(X[:2], mask) for mask in singles]
    np.testing.assert_array_equal(sigmas[0], sigmas[1])
    pooled = approach._search(X[:2], singles)
    np.testing.assert_allclose(sigmas[0], pooled)
    separate = fitted(Empirical(bandwidth="aicc"))._sigma(X[:2], singles[0])
    assert not np.allclose(separate, pooled)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0}, "sigma must be positive, .* got 0"),
        ({"sigma": -1.0}, "sigma must be positive"),
        ({"eta": 0}, "eta must be above 0 and at most 1, got 0"),
        ({"eta": 1.5}, "eta must be above 0 and at most 1"),
        ({"bandwidth": "best"}, "bandwidth must be one of"),
        ({"covariance": np.eye(2)}, r"covariance must be a symmetric finite matrix of shape \(3, 3\)"),
        ({"covariance": np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]])}, "positive semi-definite"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        cs.explain(model, X, X[:1], approach=Empirical(**options))
