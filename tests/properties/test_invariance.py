"""One seed, one answer: blocks, jobs, bars and other rows do not change numbers."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import condshap as cs
from condshap.testing import example_table

TABLE = example_table(150)
CONTINUOUS = TABLE[["a", "b", "c"]]
MIXED = TABLE[["a", "b", "d", "f"]]


def forest(X):
    y = np.random.default_rng(1).normal(size=len(X)) + TABLE["a"]
    encode = OrdinalEncoder() if X is MIXED else "passthrough"
    return make_pipeline(encode, RandomForestRegressor(20, random_state=0)).fit(X, y)


PROBLEMS = {
    "gaussian": (CONTINUOUS, {"approach": "gaussian"}),
    "gaussian, K = 100": (CONTINUOUS, {"approach": "gaussian", "n_samples": 100}),
    "copula": (CONTINUOUS, {"approach": "copula"}),
    "independence": (MIXED, {"approach": "independence", "n_samples": 30}),
    "independence, sampled": (MIXED, {"approach": "independence", "n_coalitions": 12}),
}


@pytest.fixture(scope="module", params=PROBLEMS, ids=lambda name: name.replace(" ", "_"))
def problem(request):
    X, options = PROBLEMS[request.param]
    model = forest(X)
    reference = cs.explain(model, X, X.iloc[:7], memory_budget="4GiB", **options)
    return model, X, options, reference


def assert_same(one, other):
    for name in ("values", "std_errors", "base_values", "predictions"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12, err_msg=name)
    for name in ("values", "std_errors"):
        left, right = getattr(one.value_table, name), getattr(other.value_table, name)
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12, err_msg=f"value table {name}")


@pytest.mark.parametrize(
    "how",
    [
        {"memory_budget": "32MiB"},
        {"memory_budget": "20KiB"},
        {"n_jobs": 2},
        {"n_jobs": 2, "memory_budget": "20KiB"},
        {"progress": True},
        {"progress": False},
    ],
    ids=str,
)
def test_computing_differently_gives_the_same_numbers(problem, how):
    model, X, options, reference = problem
    assert_same(cs.explain(model, X, X.iloc[:7], **options, **how), reference)


def test_rows_one_by_one_get_the_same_numbers(problem):
    model, X, options, reference = problem
    explainer = cs.Explainer(model, **options).fit(X)
    for i in range(7):
        assert_same(explainer.explain(X.iloc[i : i + 1]), reference[i])


def test_rows_in_another_order_get_the_same_numbers(problem):
    model, X, options, reference = problem
    order = [3, 0, 6, 5]
    assert_same(cs.explain(model, X, X.iloc[order], **options), reference[order])


def test_joblib_processes_give_the_same_numbers(problem):
    import joblib

    model, X, options, reference = problem
    with joblib.parallel_config(backend="loky"):
        again = cs.explain(model, X, X.iloc[:7], n_jobs=2, memory_budget="60KiB", **options)
    assert_same(again, reference)


def test_another_seed_gives_other_numbers(problem):
    model, X, options, reference = problem
    other = cs.explain(model, X, X.iloc[:7], seed=1, **options)
    assert not np.allclose(other.values, reference.values, rtol=1e-9)


def test_efficiency_holds_to_1e_9(problem):
    *_, reference = problem
    total = reference.base_values + reference.values.sum(axis=1)
    np.testing.assert_allclose(total, reference.predictions, atol=1e-9)
