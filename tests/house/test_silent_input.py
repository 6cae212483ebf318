"""Input that was once taken for something else without a word: masks, large integers, outputs that come and go."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import condshap as cs
from condshap.exceptions import CoalitionError, CondShapError, ModelError, OptionError, SchemaError
from condshap.tables.reading import plain_array

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 3))
MASK = RNG.random(X.shape) < 0.1


def first(rows):
    return np.nan_to_num(rows[:, 0])


def explain(model, train=X, rows=X[:3], **options):
    return cs.explain(model, train, rows, approach=options.pop("approach", "gaussian"), **options)


# --- masked arrays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool, object])
def test_masked_entries_are_missing_values(dtype, tmp_path):
    masked = np.ma.array((X > 0).astype(dtype) if dtype is not float else X, mask=MASK)
    gaps = plain_array(masked)
    rows = cs.FeatureSchema.learn(masked).encode(masked)
    np.testing.assert_array_equal(np.isnan(rows), MASK)
    np.testing.assert_array_equal(rows, cs.FeatureSchema.learn(gaps).encode(gaps))
    explanation = cs.explain(lambda t: np.zeros(len(t)), masked, masked[:9], approach="independence")
    assert not isinstance(explanation.data, np.ma.MaskedArray)
    explanation.save(tmp_path / "e.parquet")
    np.testing.assert_array_equal(pd.isna(cs.load_explanation(tmp_path / "e.parquet").data), MASK[:9])


def test_array_without_masked_entries_is_a_plain_one():
    assert plain_array(np.ma.array([[1, 2]])).dtype == int
    np.testing.assert_array_equal(explain(first, np.ma.array(X), np.ma.array(X[:3])).values, explain(first).values)


def test_masked_prediction_is_no_number():
    with pytest.raises(ModelError, match="must return finite numbers"):
        explain(lambda rows: np.ma.array(rows[:, 0], mask=rows[:, 0] > 1))
    with pytest.raises(ModelError, match="must return finite numbers"):
        explain(lambda rows: np.ma.array(np.arange(len(rows)), mask=rows[:, 0] > 1))


def test_masked_option_is_refused():
    hidden = np.ma.array(np.eye(3), mask=np.eye(3))
    with pytest.raises(OptionError, match="base_value must be one finite number"):
        explain(first, base_value=np.ma.array([1.0], mask=[True]))
    with pytest.raises(OptionError, match="covariance must be a symmetric finite matrix"):
        explain(first, approach=cs.approaches.Gaussian(covariance=hidden))
    with pytest.raises(CoalitionError):
        cs.CoalitionPlan.given(np.eye(3, dtype=bool), np.ma.array([1.0, 1, 1], mask=[True, False, False]))
    with pytest.raises(CoalitionError):
        cs.CoalitionPlan.given(hidden, np.ones(3))


# --- large integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [2.0**53, 2.0**63, 1e60, -1e60])
def test_numbers_that_are_not_exact_are_no_levels(large):
    codes = np.column_stack([RNG.choice([large, 2 * large], 60), X[:, 0]])
    with pytest.raises(SchemaError, match=r"column 'x0' must hold levels below 2\*\*53"):
        cs.FeatureSchema.learn(codes, [0])
    small = np.column_stack([RNG.choice([1.0, 2.0**53 - 1], 60), X[:, 0]])
    schema = cs.FeatureSchema.learn(small, [0])
    assert schema.features[0].levels == (1, 2**53 - 1)
    with pytest.raises(SchemaError, match=r"column 'x0' must hold levels below 2\*\*53"):
        schema.encode(codes)


@pytest.mark.parametrize("large", [2**53 + 1, 10**400, -(10**400)])
def test_large_integers_among_objects_are_refused_as_those_of_other_columns(large):
    table = pd.DataFrame({"a": pd.Series([large, 1, 2.5] * 20, dtype=object), "b": X[:, 0]})
    with pytest.raises(SchemaError, match=r"column 'a' must hold integers below 2\*\*53, .* in rows \[0, 3,"):
        cs.FeatureSchema.learn(table)


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approach", ["gaussian", "regression_separate"])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_model_with_another_number_of_outputs_later_is_refused(approach, before, after, calls):
    count = iter(range(10**6))

    def model(rows):
        return rows[:, : before if next(count) < calls else after]

    with pytest.raises(ModelError, match=f"the same number of outputs in every call, got {after} after {before}"):
        explain(model, approach=approach)


def test_module_with_another_number_of_outputs_on_a_device_is_refused():
    from condshap.models.predictor import Predictor

    schema = cs.FeatureSchema.learn(X)
    predictor = Predictor.of(torch.nn.Linear(3, 2), schema, X)
    with pytest.raises(ModelError, match="got 4 after 2"):
        Predictor(torch.nn.Linear(3, 4), predictor.table_format, None, ("a", "b"), None, 2).call_module(
            torch.as_tensor(X)
        )


def test_integer_that_is_a_class_and_a_position_is_refused_in_plots_too():
    classes = np.digitize(X[:, 0], [-0.5, 0.5]) + 1
    model = LogisticRegression().fit(X, classes)
    explanation = explain(model)
    assert explanation.output_names == ("1", "2", "3")
    with pytest.raises(OptionError, match="output must be unambiguous, but 1 is both the name at position 0"):
        cs.plots.bar(explanation, output=1)
    for output, position in (("1", 0), ("position:1", 1), (3, 2), (0, 0)):
        one = explain(model, output=output)
        np.testing.assert_allclose(one.values, explanation.values[:, :, position], atol=1e-12)
    assert len(cs.plots.facet(cs.plots.bar, explanation)) == 3
    with pytest.raises(CondShapError):
        explain(model, output="position:3")


def test_command_line_hands_outputs_on_as_python_takes_them():
    from condshap.cli.options import read_output

    assert [read_output(text) for text in ("1", "-1", "name:1", "low", None)] == [1, -1, "name:1", "low", None]
