"""Options that are nothing of the kind are refused in our own words, wherever they are given; found by ``make fuzz``."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches import Categorical, Ctree, Empirical, Gaussian
from condshap.exceptions import CondShapError, ModelError, OptionError, SchemaError

X = np.random.default_rng(0).normal(size=(60, 3))


def model(x):
    return x[:, 0] * x[:, 1] + np.abs(x[:, 2])


def explain(f=model, table=X, approach="independence", **options):
    return cs.explain(f, table, table[:3], approach=approach, check_draws=False, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": int},
        {"n_samples": np.array([1, 2])},
        {"n_samples": 2**70},
        {"n_coalitions": pd.NA},
        {"n_coalitions": np.array([1, 2])},
        {"n_coalitions": np.ma.masked},
        {"n_coalitions": "auto", "tolerance": 10**400},
        {"target_error": 10**400},
        {"target_error": 1e300},
        {"target_error": 1e-320},
        {"base_value": 10**400},
        {"base_value": 1e100},
        {"base_value": np.array([1j])},
        {"categorical": 0.5},
    ],
    ids=repr,
)
def test_options_that_are_none(options):
    with pytest.raises(CondShapError, match="must"):
        explain(**options)


@pytest.mark.parametrize("value", [None, "x", {}, 10**400, [1j], pd.NA, np.array(["x"]), Decimal("NaN"), float("inf")])
def test_options_of_approaches_that_are_none(value):
    levels = np.round(X)
    for approach in (Empirical(sigma=value), Empirical(eta=value), Ctree(minsplit=value), Ctree(mincriterion=value)):
        with pytest.raises(OptionError, match="must be"):
            explain(approach=approach)
    with pytest.raises(OptionError, match="must be"):
        explain(approach=Gaussian(mean=value if value is not None else "x"))
    for approach in (Categorical(epsilon=value), Categorical(share_unseen=value)):
        with pytest.raises(OptionError, match="must be"):
            explain(table=levels, approach=approach, categorical=[0, 1, 2])


def test_numbers_of_other_libraries_are_numbers():
    plain = explain(n_coalitions="auto", tolerance=1 / 3)
    odd = explain(n_coalitions="auto", tolerance=Fraction(1, 3))
    np.testing.assert_array_equal(odd.values, plain.values)
    np.testing.assert_array_equal(
        explain(approach=Empirical(eta=Decimal("0.5"))).values, explain(approach=Empirical(eta=0.5)).values
    )
    table = cs.compare(model, X, X[:3], approaches=["independence"], level=Fraction(1, 2))
    assert table.equals(table.assign(low=cs.compare(model, X, X[:3], approaches=["independence"], level=0.5)["low"]))


@pytest.mark.parametrize("value", [None, 3, "gaussian", object()])
def test_approaches_to_compare_are_a_list(value):
    with pytest.raises(CondShapError, match="approaches must be a list"):
        cs.compare(model, X, X[:3], approaches=value)


@pytest.mark.parametrize("value", [None, 3, b"x", object()])
def test_paths_are_paths(value):
    found = explain()
    for use in (found.save, cs.load_explanation, cs.VAEACNetworks.load, lambda path: cs.load_explainer(path, model)):
        with pytest.raises(OptionError, match="a path must be text"):
            use(value)


@pytest.mark.parametrize("value", ["", {}, 10**400, [1, "x"], np.full((3, 3), np.inf), np.full((3, 3), 1j)])
def test_errors_and_weights_are_numbers(value):
    with pytest.raises(OptionError, match="errors must be finite, at least 0"):
        explain().with_model_errors(value)
    with pytest.raises(CondShapError, match="weights must be"):
        cs.CoalitionPlan.given(np.eye(3), value)


def test_refine_wants_an_explanation():
    explainer = cs.Explainer(model, approach="gaussian", n_coalitions="auto", check_draws=False).fit(X)
    with pytest.raises(OptionError, match="refine needs an explanation, got NoneType"):
        explainer.refine(None, tolerance=0.01)


def test_memory_without_bound_is_all_there_is():
    np.testing.assert_array_equal(explain(memory_budget=10**400).values, explain().values)


# --- numbers whose squares vanish -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-71, 1e-160, 1e-310])
@pytest.mark.parametrize("options", [{}, {"base_value": 0.0}])
def test_predictions_without_powers_are_refused_because_errors_would_be_zero(size, options):
    with pytest.raises(ModelError, match="must return numbers of at least 1e-70 in absolute value for some rows"):
        explain(lambda x: model(x) * size, approach="gaussian", **options)


def test_small_predictions_have_errors_to_scale():
    plain, small = (explain(lambda x, k=k: model(x) * k, approach="gaussian", n_samples=8) for k in (1.0, 2.0**-220))
    assert (plain.std_errors > 0).any()
    np.testing.assert_allclose(small.std_errors * 2.0**220, plain.std_errors, rtol=1e-9)
    found, wanted = small.msev.total_std_error() * 2.0**440, plain.msev.total_std_error()
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-160, 1e-310, 0.0])
def test_single_rows_and_outputs_may_be_as_small_as_they_like(size):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        explain(lambda x: np.column_stack([model(x), model(x) * size]), approach="gaussian")
        explain(lambda x: np.where(x[:, 0] < 0, size, model(x)), approach="gaussian")
        explain(lambda x: np.full(len(x), 0.0), approach="gaussian")


@pytest.mark.parametrize(
    "approach", ["gaussian", "copula", "empirical", "ctree", "independence", "regression_separate"]
)
@pytest.mark.parametrize("size", [1e-152, 1e-200, 1e-320])
def test_columns_without_squares_are_refused(approach, size):
    with pytest.raises(SchemaError, match="column 'x1' must be constant or span at least 1e-150"):
        explain(table=X * [1.0, size, 1.0], approach=approach)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "empirical", "ctree", "regression_separate"])
def test_small_columns_are_explained_as_large_ones_are(approach):
    size = 2.0**-490
    small = explain(lambda x: model(x / [1.0, size, 1.0]), X * [1.0, size, 1.0], approach)
    np.testing.assert_allclose(small.values, explain(approach=approach).values, rtol=0, atol=1e-9)


# --- what models say of themselves ------------------------------------------------------------------------------------


def test_integers_beyond_all_floats_are_no_outputs():
    with pytest.raises(ModelError, match="must return an array of numbers"):
        explain(lambda x: [10**400] * len(x))


def test_names_that_are_none_are_ignored():
    class Odd:
        feature_names_in_ = 3

        def predict(self, x):
            return model(x)

    np.testing.assert_array_equal(explain(Odd()).values, explain().values)


@pytest.mark.parametrize("approach", ["categorical", "independence"])
def test_a_model_of_levels_only_that_is_no_sum_is_refused_as_additive(approach):
    levels = np.sign(X)
    with pytest.raises(OptionError, match="additive=True needs a model that is a sum"):
        explain(lambda x: x[:, 0] * x[:, 1], levels, approach, categorical=[0, 1, 2], additive=True)
