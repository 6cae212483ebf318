"""A row's numbers are the same to the last bit, whatever rows are explained beside it and however they are cut into blocks.

The models here round every row by itself: products and sums of columns, element by element. What a model of matrix
products makes of one row may depend on its batch, and is no part of the promise.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from condshap.approaches import find_approach

N_ROWS = 7
WAYS = [slice(4, 5), slice(0, 1), slice(2, 5), [6, 3, 0, 5]]
BLOCKS = [{"memory_budget": 2**14}, {"memory_budget": 2**17, "n_jobs": 2}, {"memory_budget": "1GiB", "n_jobs": 2}]


def table(n, seed):
    """Dependent columns: five numbers, two of them skewed."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    Z = common + 0.8 * rng.normal(size=(n, 5))
    Z[:, 3:] = Z[:, 3:] * np.abs(Z[:, 3:]) + 0.1 * Z[:, 3:]
    return pd.DataFrame(Z, columns=list("abcde"))


def levels(n, seed):
    """The same, cut into levels."""
    Z = table(n, seed)
    return Z.apply(lambda column: pd.Categorical(np.digitize(column, [-0.6, 0.6]).astype(str), categories=list("012")))


NUMBERS, LEVELS = table(200, 0), levels(200, 0)
ROWS = {"numbers": table(N_ROWS, 1), "levels": LEVELS.iloc[20 : 20 + N_ROWS]}


def columns_of(X):
    return [np.asarray(column, dtype=np.float64) for _, column in X.items()]


def curved(X):
    a, b, c, d, e = columns_of(X)
    return a * b + c * np.abs(d) - 0.3 * e * e + a / (1.0 + c * c) + 0.7 * b


def three(X):
    a, b, c, d, e = columns_of(X)
    return np.column_stack([curved(X), 0.5 * a - b * e, c * d + np.maximum(a, e)])


def line(X):
    a, b, c, d, e = columns_of(X)
    return 0.3 * a - 1.7 * b + 0.11 * c + 0.9 * d + 0.013 * e + 0.4


def small(name):
    """An approach, networks with options that make them quick."""
    options = {"vaeac": {"epochs": 2, "width": 16, "latent": 4, "scales": ["standard"], "progress": False}}
    return find_approach(name)(**options.get(name, {}))


APPROACHES = {
    **{name: lambda name=name: small(name) for name in (
        "gaussian", "copula", "ctree", "empirical", "independence", "regression_separate", "regression_surrogate", "vaeac"
    )},
    "categorical": lambda: find_approach("categorical")(),
    "empirical_aicc": lambda: find_approach("empirical")(bandwidth="aicc_by_size"),
    "copula_kde": lambda: find_approach("copula")(margins="kde"),
}  # fmt: skip
SAMPLERS = ("gaussian", "copula", "ctree", "independence", "vaeac")
PLANS = {"all": {}, "some": {"n_coalitions": 20}, "auto": {"n_coalitions": "auto", "tolerance": 0.05}}


def explainer_of(approach, model, **options):
    X = LEVELS if approach == "categorical" else NUMBERS
    found = cs.Explainer(model, approach=APPROACHES[approach](), progress=False, device="cpu", **options).fit(X)
    return found, ROWS["levels" if approach == "categorical" else "numbers"]


def explained(explainer, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a precision that was not reached is not what is looked at here
        return explainer.explain(rows)


def assert_same(found, wanted, some, what):
    """Compare everything that belongs to a row with the same rows of another explanation, to the last bit."""
    for name in ("values", "std_errors", "model_errors", "predictions"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)[some]), f"{what}: {name}"
    ours, theirs = found.value_table, wanted.value_table
    for name in ("values", "std_errors"):
        left, right = getattr(ours, name), getattr(theirs, name)[:, some]
        if len(left) < len(right):  # with "auto", what no row of the smaller part has asked for
            at = {mask.tobytes(): i for i, mask in enumerate(theirs.coalitions)}
            kept = [at[mask.tobytes()] for mask in ours.coalitions]
            assert np.isnan(np.delete(right, kept, axis=0)).all(), f"{what}: coalitions"
            right = right[kept]
        assert np.array_equal(left, right, equal_nan=True), f"{what}: value table, {name}"
    if len(ours.values) == len(theirs.values) and not np.isnan(theirs.values).any():  # MSEv is over what all rows have
        assert np.array_equal(found.msev.per_row, wanted.msev.per_row[some]), f"{what}: msev"


def assert_rows_do_not_see_each_other(explainer, rows):
    together = explained(explainer, rows)
    is_slow = explainer.approach.name == "vaeac"  # every call fills whole tiles
    for some in WAYS[::3] if is_slow else WAYS:
        assert_same(explained(explainer, rows.iloc[some]), together, some, f"rows {some}")
    for how in BLOCKS[1:2] if is_slow else BLOCKS:
        explainer.set_params(**how)
        assert_same(explained(explainer, rows), together, slice(None), str(how))
        assert_same(explained(explainer, rows.iloc[4:5]), together, slice(4, 5), f"row 4, {how}")


@pytest.mark.parametrize("model", [curved, three])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("approach", APPROACHES)
def test_a_row_has_the_same_numbers_alone_and_with_others(approach, plan, model):
    assert_rows_do_not_see_each_other(*explainer_of(approach, model, **PLANS[plan]))


@pytest.mark.parametrize(  # networks take half a minute, and know nothing of how many outputs there are
    ("approach", "model"),
    [(name, model) for name in SAMPLERS for model in (curved, three) if name != "vaeac" or model is curved],
)
def test_with_a_target_error_a_row_has_the_same_numbers_alone_and_with_others(approach, model):
    assert_rows_do_not_see_each_other(*explainer_of(approach, model, target_error=0.15))


@pytest.mark.parametrize(
    ("approach", "plan"),
    [(name, plan) for name in (*SAMPLERS, "empirical") for plan in PLANS if name != "vaeac" or plan != "some"],
)
def test_with_an_additive_model_a_row_has_the_same_numbers_alone_and_with_others(approach, plan):
    assert_rows_do_not_see_each_other(*explainer_of(approach, line, additive=True, **PLANS[plan]))


@pytest.mark.parametrize("approach", ["gaussian", "ctree", "empirical"])
def test_going_on_to_a_smaller_tolerance_gives_the_numbers_of_asking_for_it_at_once(approach):
    explainer, rows = explainer_of(approach, curved, n_coalitions="auto", tolerance=0.2)
    coarse = explained(explainer, rows)
    explainer.set_params(tolerance=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refined = explainer.refine(coarse, tolerance=0.02)
    assert_same(refined, explained(explainer, rows), slice(None), "refined")


@pytest.mark.parametrize("approach", ["ctree", "empirical", "independence", "copula"])
def test_the_memory_budget_of_the_whole_run_changes_no_bit(approach):
    """Also where values are tied, donors are many, and the model is a forest: blocks cut donors and equal rows anew."""
    X, rows = table(400, 0).round(0), table(12, 1).round(0)
    forest = RandomForestRegressor(10, random_state=0).fit(X, curved(X))
    found = []
    for budget in ("1GiB", 2**13, 100_007):
        options = {"memory_budget": budget, "check_draws": False, "progress": False, "device": "cpu"}
        found.append(explained(cs.Explainer(forest, approach=APPROACHES[approach](), **options).fit(X), rows))
    for other in found[1:]:
        assert_same(other, found[0], slice(None), approach)
        assert np.array_equal(other.base_values, found[0].base_values)
