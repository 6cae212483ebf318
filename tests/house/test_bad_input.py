"""Outside data meets the gate: every mistake has its own message, through the public face."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import condshap as cs
from condshap.exceptions import (
    ApproachError,
    CoalitionError,
    CondShapError,
    CondShapWarning,
    ModelError,
    NotFittedError,
    OptionError,
    SchemaError,
)

RNG = np.random.default_rng(11)
N = 40
COVARIANCE = [[1.0, 0.6, 0.0], [0.6, 2.0, 0.3], [0.0, 0.3, 1.0]]
NUMBERS = pd.DataFrame(RNG.multivariate_normal([0, 1, 2], COVARIANCE, N), columns=["a", "b", "c"])
LABELS = pd.DataFrame({"a": RNG.normal(size=N), "Sex": np.array(["F", "I", "M"])[np.arange(N) % 3]})


def model(X):
    return X["a"].to_numpy() + 2.0 * X["b"].to_numpy()


def only_a(X):
    return X["a"].to_numpy()


def explain(X_train=NUMBERS, X=None, f=model, *, approach="gaussian", **options):
    return cs.explain(f, X_train, X_train.iloc[:3] if X is None else X, approach=approach, **options)


def refuses(error, message):
    assert issubclass(error, CondShapError)
    assert issubclass(error, ValueError)
    return pytest.raises(error, match=message)


# --- tables -----------------------------------------------------------------------------------------------------------


def test_empty_training_frame_is_refused_with_its_shape():
    with refuses(SchemaError, r"training rows must not be empty, got a table of shape \(0, 3\). Pass rows"):
        explain(NUMBERS.iloc[:0])
    with refuses(SchemaError, r"training rows must not be empty, got a table of shape \(40, 0\)"):
        explain(NUMBERS[[]])


def test_empty_frame_to_explain_is_refused():
    with refuses(SchemaError, r"rows must not be empty, got a table of shape \(0, 3\). Pass the rows to explain"):
        explain(X=NUMBERS.iloc[:0])


def test_no_column_names_in_common_lists_both_sides():
    with refuses(SchemaError, r"must have the training columns \['a', 'b', 'c'\], got \['x', 'y', 'z'\] instead"):
        explain(X=NUMBERS.set_axis(["x", "y", "z"], axis=1))


@pytest.mark.parametrize("approach", ["independence", "gaussian", "copula"])
def test_wrong_column_order_is_repaired_and_gives_the_same_numbers(approach):
    rows = NUMBERS.iloc[:5]
    right = explain(X=rows, approach=approach)
    for other in (rows[["c", "a", "b"]], pl.from_pandas(rows[["b", "c", "a"]])):
        repaired = explain(X=other, approach=approach)
        np.testing.assert_array_equal(repaired.values, right.values)
        np.testing.assert_array_equal(repaired.std_errors, right.std_errors)
        assert repaired.player_names == ("a", "b", "c")


def test_missing_columns_are_refused_and_named():
    with refuses(SchemaError, r"rows must have every training column, but lack \['a', 'c'\]. Add them"):
        explain(X=NUMBERS[["b"]])


def test_extra_columns_are_refused_and_named():
    with refuses(SchemaError, r"must have only the training columns, but also have \['target'\]. Drop"):
        explain(X=NUMBERS.assign(target=1.0))


def test_array_with_another_number_of_columns_is_refused():
    with refuses(SchemaError, r"rows must have 3 columns as in training, got 2. An array has no column names"):
        explain(X=NUMBERS.to_numpy()[:, :2])


def test_unseen_level_names_column_level_and_row():
    rows = pd.DataFrame({"a": [0.0, 1.0], "Sex": ["F", "X"]})
    with refuses(
        SchemaError, r"'Sex' must hold the levels \['F', 'I', 'M'\], got unseen levels \['X'\] in rows \[1\]. Add"
    ):
        explain(LABELS, rows, only_a, approach="independence")


def test_text_in_a_column_of_numbers_is_refused():
    with refuses(SchemaError, r"column 'b' must hold numbers as in training, got levels such as \['high'\]. Convert"):
        explain(X=NUMBERS.iloc[:1].assign(b="high"))


def test_infinite_value_names_column_and_row():
    train = NUMBERS.copy()
    train.loc[7, "b"] = -np.inf
    with refuses(SchemaError, r"column 'b' must be finite or missing, got infinite values in rows \[7\]. Replace"):
        explain(train)
    with refuses(SchemaError, r"column 'c' must be finite or missing, got infinite values in rows \[0, 1\]"):
        explain(X=NUMBERS.iloc[:2].assign(c=np.inf))


def test_duplicate_column_names_are_named():
    with refuses(SchemaError, r"column names must be unique, got \['a'\] more than once. Rename"):
        explain(NUMBERS.set_axis(["a", "b", "a"], axis=1))
    with refuses(SchemaError, r"column names must be unique, got \['a'\]"):
        explain(X=NUMBERS.set_axis(["a", "b", "a"], axis=1))


def test_object_column_of_mixed_types_names_them_and_where_they_are():
    mixed = pd.Series([1, 2, "three"] + [4] * (N - 3), dtype=object)
    with refuses(SchemaError, r"column 'b' must hold values of one type, got int \(row 0\), str \(row 2\). Convert"):
        explain(NUMBERS.assign(b=mixed))


def test_datetime_column_is_refused_with_its_dtype():
    dates = pd.date_range("2020-01-01", periods=N)
    with refuses(
        SchemaError, r"column 'when' must hold numbers or levels, got dtype datetime64\[.*\]. Convert it: dates"
    ):
        explain(NUMBERS.assign(when=dates))


def test_column_without_a_single_value_is_refused():
    with refuses(SchemaError, "column 'b' must have at least one value, but all are missing. Drop this column"):
        explain(NUMBERS.assign(b=np.nan), approach="independence")


def test_one_training_row_is_refused():
    with refuses(SchemaError, "there must be at least 2 training rows, got 1"):
        explain(NUMBERS.iloc[:1], NUMBERS)


def test_what_is_no_table_is_refused_by_its_type():
    with refuses(SchemaError, "must be a pandas, Polars or PyArrow table or a 2-D NumPy array, got list. Convert"):
        cs.explain(model, NUMBERS.to_numpy().tolist(), NUMBERS, approach="gaussian")
    with refuses(SchemaError, r"must have 2 dimensions \(rows, features\), got shape \(3,\). Reshape"):
        explain(X=NUMBERS.to_numpy()[0])


def test_declared_categorical_that_does_not_exist_is_refused():
    with refuses(SchemaError, r"categorical must name columns of the table, got \['Sex'\]. The columns are \['a', 'b'"):
        explain(categorical=["Sex"])


# --- what an approach can take ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_categorical_columns_are_refused_by_continuous_approaches(approach):
    with refuses(
        SchemaError,
        rf"approach '{approach}' needs continuous features, got categorical columns \['Sex'\]. Use approach='.*drop these",
    ):
        explain(LABELS, f=only_a, approach=approach)
    with refuses(SchemaError, r"got categorical columns \['b'\]"):
        explain(NUMBERS.round(), categorical=["b"], approach=approach)


@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_missing_values_are_refused_by_approaches_for_complete_rows(approach):
    gaps = NUMBERS.copy()
    gaps.loc[4, "b"] = np.nan
    gaps.loc[[6, 9], "c"] = np.nan
    message = (
        rf"approach '{approach}' needs complete {{}}, got missing values in columns \['b', 'c'\], rows \[4, 6, 9\]"
    )
    with refuses(SchemaError, message.format("training rows")):
        explain(gaps, NUMBERS, approach=approach)
    with refuses(SchemaError, message.format("rows to explain")):
        explain(NUMBERS, gaps, approach=approach)


def closed_form(train: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """Shapley values of a + 2 b under the bivariate normal distribution of a and b."""
    cov = np.cov(train[["a", "b"]].to_numpy().T)
    d = rows[["a", "b"]].to_numpy() - train[["a", "b"]].to_numpy().mean(axis=0)
    v_a = d[:, 0] + 2 * cov[0, 1] / cov[0, 0] * d[:, 0]
    v_b = 2 * d[:, 1] + cov[0, 1] / cov[1, 1] * d[:, 1]
    v_ab = d[:, 0] + 2 * d[:, 1]
    return np.column_stack([(v_a + v_ab - v_b) / 2, (v_b + v_ab - v_a) / 2])


def test_constant_column_is_announced_and_changes_nothing_for_the_others():
    train = NUMBERS.assign(c=5.0)
    with pytest.warns(
        CondShapWarning, match=r"feature 'c' is constant in the training rows \(value 5.0\).*Consider drop"
    ):
        explanation = explain(train, n_samples=1024)
    np.testing.assert_allclose(explanation.values[:, :2], closed_form(train, train.iloc[:3]), atol=0.02)
    np.testing.assert_allclose(explanation.values[:, 2], 0.0, atol=0.02)
    assert any("constant" in warning for warning in explanation.provenance.warnings)


@pytest.mark.parametrize("approach", ["independence", "gaussian", "copula"])
def test_other_value_than_the_constant_gets_its_whole_effect(approach):
    train = NUMBERS.assign(c=5.0)
    rows = train.iloc[:3].assign(c=[5.0, 6.0, 4.0])
    with pytest.warns(CondShapWarning, match="feature 'c' is constant"):
        explanation = explain(train, rows, lambda X: 10.0 * X["c"].to_numpy(), approach=approach)
    np.testing.assert_allclose(explanation.values, [[0, 0, 0], [0, 0, 10], [0, 0, -10]], atol=1e-9)


@pytest.mark.parametrize("approach", ["gaussian", "copula"])
@pytest.mark.parametrize("n_train", [2, 3])
def test_fewer_training_rows_than_features_are_announced_and_efficiency_holds(approach, n_train):
    with pytest.warns(CondShapWarning) as caught:
        explanation = explain(NUMBERS.iloc[:n_train], NUMBERS.iloc[10:14], approach=approach)
    (message,) = [str(w.message) for w in caught if f"approach '{approach}'" in str(w.message)]
    assert f"{n_train} training rows are too few for 3 features" in message
    assert message in explanation.provenance.warnings
    assert np.isfinite(explanation.values).all()
    assert np.isfinite(explanation.std_errors).all()
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, model(NUMBERS.iloc[10:14]), atol=1e-9)


def test_fewer_training_rows_than_features_are_no_matter_for_independence():
    rows = NUMBERS.iloc[10:14]
    explanation = explain(NUMBERS.iloc[:2], rows, approach="independence")
    effect = (rows - NUMBERS.iloc[:2].mean()).to_numpy() * [1.0, 2.0, 0.0]  # exact for a linear model
    np.testing.assert_allclose(explanation.values, effect, atol=1e-9)


# --- models -----------------------------------------------------------------------------------------------------------


def test_non_numeric_prediction_names_the_model_and_the_type():
    def grade(X):
        return np.where(X["a"] > 0, "good", "bad")

    with refuses(ModelError, r"model 'grade' must return numbers, got <U4 such as \['(good|bad)'\]. For a classifier"):
        explain(f=grade)


def test_nan_prediction_names_the_model_and_the_rows():
    def logarithm(X):
        return np.log(np.where(X["a"] == NUMBERS["a"].iloc[3], np.nan, 1.0))

    with refuses(
        ModelError, r"model 'logarithm' must return finite numbers, got NaN or infinity for 1 of 40 rows, at posit"
    ):
        explain(f=logarithm)
    with refuses(ModelError, rf"at positions \[3\]; the first is {{a={NUMBERS['a'].iloc[3]:.6g}, b=.*Make it return"):
        explain(f=logarithm)


def test_nan_prediction_for_a_row_with_gaps_hints_at_missing_values():
    gaps = NUMBERS.copy()
    gaps.loc[5, "a"] = np.nan
    with refuses(
        ModelError, r"the first is {a=missing, b=.*That row has missing values: use a model that accepts them"
    ):
        explain(gaps, approach="independence")


def test_prediction_of_wrong_length_or_shape_is_refused():
    with refuses(
        ModelError, r"must return outputs for every row, in shape \(2,\) or \(2, outputs\), got shape \(1, 1\)"
    ):
        explain(f=lambda X: np.zeros(1))
    with refuses(ModelError, r"got shape \(2, 2, 2\)"):
        explain(f=lambda X: np.zeros((len(X), 2, 2)))


def test_object_that_is_no_model_is_refused():
    with refuses(ModelError, "model must have predict or predict_proba, or be callable, got dict. Pass a fitted model"):
        explain(f={})


def test_model_that_raises_is_quoted():
    with refuses(
        ModelError, r"model '<lambda>' must accept a DataFrame of shape \(2, 3\), but failed with KeyError: 'weight'"
    ):
        explain(f=lambda X: X["weight"])


def test_model_that_changes_its_input_does_not_change_the_explanation():
    def spoil(X):
        total = X[:, 0] + 2.0 * X[:, 1]
        X[:] = 0.0
        return total

    array = NUMBERS.to_numpy(copy=True)
    spoiled = cs.explain(spoil, array, array[:3], approach="gaussian")
    np.testing.assert_array_equal(array, NUMBERS.to_numpy())
    np.testing.assert_allclose(spoiled.values, explain().values, atol=1e-12)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"p": ["a", "b"], "q": ["b", "c"]}, r"not overlap, but these features appear more than once: \['b'\]"),
        ({"p": ["a"], "q": ["b"]}, r"cover every feature, but these are in no group: \['c'\]"),
        ({"p": ["a", "b", "c"], "q": []}, r"have at least one feature each, but these have none: \['q'\]"),
        ({"p": ["a", "b"], "q": ["c", "d"]}, r"name features among \['a', 'b', 'c'\], but these are unknown: \['d'\]"),
        ({"p": "abc"}, "map a name to a list of columns"),
    ],
    ids=["overlap", "miss a feature", "empty", "unknown", "no lists"],
)
def test_groups_that_are_no_partition_are_refused(groups, message):
    with refuses(CoalitionError, f"groups must {message}"):
        explain(groups=groups)


def test_unknown_approach_suggests_the_nearest_name():
    with refuses(ApproachError, r"got 'gausian'. Did you mean 'gaussian'\? Choose one of \[.*'independence'"):
        explain(approach="gausian")
    with refuses(ApproachError, r"got 'independent'. Did you mean 'independence'\?"):
        explain(approach="independent")
    with refuses(ApproachError, r"a name, an object with fit and sample \(or estimate\), or a list of these, got 3"):
        explain(approach=3)


def test_too_few_coalitions_are_refused_with_the_least_number():
    with refuses(CoalitionError, "n_coalitions must be at least 4, one more than the 3 players, got 3"):
        explain(n_coalitions=3)
    with refuses(OptionError, "n_coalitions must be an integer, got 4.5"):
        explain(n_coalitions=4.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer, got 0.5"),
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, got 0"),
        ({"n_samples": True}, "n_samples must be an integer of at least 1, got True"),
        ({"memory_budget": "much"}, "memory_budget must be bytes or a text such as '1GiB' or '500MB', got 'much'"),
        ({"memory_budget": 0}, "memory_budget must be bytes or a text"),
        ({"n_jobs": 0}, "n_jobs must not be 0. Use 1 for no workers, -1 for one per core"),
        ({"device": "gpu"}, r"device must be one of \['auto', 'cpu', 'cuda'\], got 'gpu'"),
        ({"progress": "yes"}, r"progress must be one of \['auto', True, False\], got 'yes'"),
        ({"base_value": [1.0, 2.0]}, r"base_value must be .*finite number.*got \[1.0, 2.0\]"),
        ({"device": "cuda"}, "device='cuda' needs an accelerator"),
        ({"base_value": "mean"}, "base_value must be one finite number, .* got 'mean'"),
        ({"base_value": np.nan}, "base_value must be .*finite number.*got nan"),
        ({"output": "price"}, r"output must be a name among \['output'\] or a position below 1, got 'price'"),
        ({"output": 2}, "output must be a name among .* or a position below 1, got 2"),
        ({"coalitions": [[True, False, False]]}, "coalitions must be a CoalitionPlan, got list"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_option_outside_its_range_is_refused(options, message):
    with refuses(OptionError, message):
        explain(**options)


def test_base_value_of_several_outputs_needs_one_or_one_each():
    def two(X):
        return np.column_stack([X["a"], X["b"]])

    assert explain(f=two, base_value=[1.0, 2.0]).base_values.tolist() == [[1.0, 2.0]] * 3
    assert explain(f=two, base_value=1.0).base_values.tolist() == [[1.0, 1.0]] * 3
    with refuses(OptionError, r"base_value must be .*2.*one per output, .*got \[1.0, 2.0, 3.0\]"):
        explain(f=two, base_value=[1.0, 2.0, 3.0])


def test_coalitions_of_another_number_of_players_are_refused():
    plan = cs.CoalitionPlan.given(~np.eye(4, dtype=bool), np.ones(4))
    with refuses(CoalitionError, "coalitions must be for 3 players, got coalitions for 4"):
        explain(coalitions=plan)


def test_explainer_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError, match=r"must be fitted before it can explain. Call fit\(X_train\) first"):
        cs.Explainer(model, approach="gaussian").explain(NUMBERS)


@pytest.mark.parametrize(("n", "warns"), [(49, True), (50, False)])
def test_few_training_rows_are_announced_and_recorded(n, warns):
    X = np.random.default_rng(0).normal(size=(n, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explanation = cs.explain(lambda x: x.sum(axis=1), X, X[:2], approach="gaussian")
    assert any("at least 50 training rows, got 49" in str(w.message) for w in caught) is warns
    assert any("at least 50" in text for text in explanation.provenance.warnings) is warns
