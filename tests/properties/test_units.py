"""Units have no say: tables whose numbers are multiplied by any positive factors give the same trees and the same values."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condshap as cs
from condshap.approaches import find_approach
from condshap.coalitions import all_coalitions
from condshap.ctree import TrainingTable, grow_tree
from condshap.exceptions import OptionError
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys

N_LEVELS = [0, 0, 0, 4, 0]


def tree_table(seed):
    """Dependent columns: numbers, one of them skewed and one a copy of another in other units, and levels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, 5)) + 1.2 * rng.normal(size=(160, 1))
    X[:, 1] = np.exp(2 * X[:, 1])
    X[:, 3] = np.clip(np.round(X[:, 3]) + 2, 0, 3)
    X[:, 4] = 0.37 * X[:, 0]
    return X


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.lists(st.floats(-12, 12), min_size=5, max_size=5), st.integers(1, 3))
def test_trees_do_not_change_with_the_units(seed, powers, n_known):
    factors = np.where(np.array(N_LEVELS) > 0, 1.0, 10.0 ** np.array(powers))
    X, features = tree_table(seed), np.random.default_rng(seed).permutation(5)
    grown = [
        grow_tree(TrainingTable.build(rows, N_LEVELS), np.sort(features[:n_known]), np.sort(features[n_known:]))
        for rows in (X, X * factors)
    ]
    plain, moved = grown
    for name in ("feature", "left", "right", "leaf_rows", "first_row"):
        assert np.array_equal(getattr(plain, name), getattr(moved, name)), name
    numeric = np.isfinite(plain.threshold)
    moved_thresholds = plain.threshold[numeric] * factors[plain.feature[numeric]]
    assert np.array_equal(moved.threshold[numeric], moved_thresholds)  # observed values, so the very product


def table(n, seed):
    """Dependent numbers: normal, of few values, skewed, positive."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, 5))
    Z[:, 2] = np.clip(np.round(Z[:, 2]), -2, 2) + 0.5
    Z[:, 3] *= np.abs(Z[:, 3])
    Z[:, 4] = np.exp(Z[:, 4] / 4) + 2
    return Z


TRAIN, ROWS = table(200, 0), np.vstack([table(3, 1), table(200, 0)[:2]])


def curved(x):
    a, b, c, d, e = x.T
    return a * b + c * np.abs(d) - 0.3 * e * e + a / (1 + c * c) + 0.7 * b


def line(x):
    a, b, c, d, e = x.T
    return 0.3 * a - 1.7 * b + 0.11 * c + 0.9 * d + 0.013 * e + 0.4


def waves(x):
    a, b, c, d, e = x.T
    return np.sin(a) + np.sin(2 * b) + c * c + (d > 0.3) + np.exp(-e)


APPROACHES = {
    **{name: {} for name in (
        "independence", "gaussian", "copula", "ctree", "empirical", "regression_separate", "regression_surrogate"
    )},
    "empirical, aicc": {"bandwidth": "aicc_by_size"},
    "copula, kde": {"margins": "kde"},
    "gaussian, shrunk": {"covariance": "ledoit_wolf"},
}  # fmt: skip
FACTORS = [np.full(5, 1e-9), np.full(5, 1e9), np.array([1e-9, 1e9, 3e-4, 1e5, 0.7])]
MODELS = {"curved": (curved, {}), "line": (line, {"additive": True}), "waves": (waves, {"additive": True})}
NETWORKS = {"epochs": 2, "width": 16, "latent": 4, "progress": False, "scales": ["standard", "normal_scores"]}


def explain(model, approach, factors, **options):
    """Explain rows in other units by a model that knows them."""
    made = find_approach(approach.split(",")[0])(**(NETWORKS if approach == "vaeac" else APPROACHES[approach]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of standard errors, and of parts of the table that are hard to draw
        return cs.explain(
            lambda x: model(x / factors), TRAIN * factors, ROWS * factors,
            approach=made, device="cpu", progress=False, check_draws=False, **options,
        )  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("approach", APPROACHES)
def test_values_do_not_change_with_the_units(approach, model):
    function, options = MODELS[model]
    if "aicc" in approach and model != "curved":
        pytest.skip("the same search")
    plain = explain(function, approach, np.ones(5), **options)
    for factors in FACTORS if model == "curved" else FACTORS[2:]:
        moved = explain(function, approach, factors, **options)
        np.testing.assert_allclose(moved.values, plain.values, atol=1e-10 * np.abs(plain.values).max())
        if plain.provenance.approach in (
            "independence",
            "ctree",
            "empirical",
        ):  # errors of others are measured by draws
            np.testing.assert_allclose(moved.std_errors, plain.std_errors, atol=1e-10)


@pytest.mark.parametrize("approach", ["ctree", "empirical", "regression_separate", "independence"])
def test_sampled_coalitions_do_not_change_with_the_units(approach):
    plain = explain(curved, approach, np.ones(5), n_coalitions="auto")
    moved = explain(curved, approach, FACTORS[2], n_coalitions="auto")
    np.testing.assert_allclose(moved.values, plain.values, atol=1e-10 * np.abs(plain.values).max())


def test_networks_do_not_change_with_the_units():
    """Not by a bit with powers of two. Other factors round the rows, which training carries on: 3e-16 were measured here."""
    plain = explain(curved, "vaeac", np.ones(5))
    assert np.array_equal(explain(curved, "vaeac", np.ldexp(1.0, [-30, 30, -11, 17, 0])).values, plain.values)
    for factors in FACTORS[:1]:
        moved = explain(curved, "vaeac", factors)
        np.testing.assert_allclose(moved.values, plain.values, atol=1e-10 * np.abs(plain.values).max())


def test_ties_are_not_broken_by_the_units():
    """Whole numbers have many donors at the same distance; rounding in other units must not choose among them."""
    X = np.random.default_rng(3).integers(0, 4, size=(120, 3)).astype(float)
    rows, masks = X[:30], np.array([[True, False, False], [True, True, False], [False, True, True]])
    schema = FeatureSchema.learn(X)
    chosen = []
    for factors in (np.ones(3), np.array([1e-9, 0.3, 7e5])):
        approach = find_approach("empirical")().fit(X * factors, schema, plan=all_coalitions(3), seed=0)
        chosen.append(approach.sample(rows * factors, masks, 10, keys=row_keys(rows), seed=0))
    assert np.array_equal(chosen[0].indices, chosen[1].indices)
    np.testing.assert_allclose(chosen[1].weights, chosen[0].weights, rtol=1e-9)


def test_asymmetric_covariances_are_refused_in_any_units():
    covariance = np.array([[1.0, 0.5, 0.1], [0.2, 1.0, 0.1], [0.1, 0.1, 1.0]])
    for factor in (1.0, 1e-10):
        with pytest.raises(OptionError, match="symmetric"):
            find_approach("gaussian")(covariance=covariance * factor).fit(
                TRAIN[:, :3], FeatureSchema.learn(TRAIN[:, :3]), plan=all_coalitions(3), seed=0
            )
