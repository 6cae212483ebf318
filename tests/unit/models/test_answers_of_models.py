"""What a model may answer, and what is refused."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.svm import SVC

from condshap.exceptions import ModelError
from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema
from tests.unit.models.tables_for_models import CLASSES, MIXED, MIXED_MODELS, NUMBERS, predictions_of, predictor_of


@pytest.fixture(autouse=True)
def no_warning_may_leak():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    "give",
    [
        lambda a: a,
        lambda a: a[:, None],
        lambda a: a.tolist(),
        lambda a: pd.Series(a),
        lambda a: pd.Series(a).convert_dtypes(),
        lambda a: pd.DataFrame({"out": a}),
        lambda a: pl.Series(a),
        lambda a: pa.array(a),
        lambda a: a.astype(object),
        lambda a: torch.tensor(a, requires_grad=True),
    ],
    ids=["array", "column", "list", "series", "nullable", "frame", "polars", "pyarrow", "object", "tensor"],
)
def test_function_may_return_any_array_of_numbers(give):
    outputs = predictions_of(lambda X: give(X["a"].to_numpy() + 0.5), NUMBERS)
    assert outputs.dtype == np.float64
    np.testing.assert_allclose(outputs, NUMBERS[["a"]] + 0.5)


def test_function_may_squeeze_the_prediction_of_a_single_row():
    predictor, rows = predictor_of(lambda X: np.squeeze(X[["a"]].to_numpy()), NUMBERS)
    assert predictor(rows[:1]).shape == (1, 1)


def test_function_that_changes_its_input_does_not_change_the_training_rows():
    def spoil(X):
        total = X.sum(axis=1)
        X[:] = 0.0
        return total

    array = NUMBERS.to_numpy(copy=True)
    schema = FeatureSchema.learn(array)
    rows = schema.encode(array)
    Predictor.of(spoil, schema, rows)
    np.testing.assert_array_equal(rows, NUMBERS.to_numpy())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda X: np.array(["low"] * len(X)),
            r"'<lambda>' must return numbers, got <U3 such as \['low'\].*predict_proba",
        ),
        (lambda X: np.array(["1"] * len(X), dtype=object), "must return numbers, got object"),
        (lambda X: np.ones(len(X)) * 1j, "must return numbers, got complex128"),
        (lambda X: np.zeros(len(X), dtype="datetime64[s]"), "must return numbers, got datetime64"),
        (lambda X: [[1.0], [2.0, 3.0]], "must return an array of numbers, got list that is not one"),
        (lambda X: [object()] * len(X), "must return an array of numbers, got list"),
        (lambda X: 1.0, r"outputs for every row, in shape \(2,\) or \(2, outputs\), got shape \(\)"),
        (lambda X: np.ones(len(X) + 1), r"shape \(2,\) or \(2, outputs\), got shape \(3, 1\)"),
        (lambda X: np.ones((1, len(X))), r"got shape \(1, 2\)"),
        (lambda X: np.ones((len(X), 0)), r"got shape \(2, 0\)"),
        (lambda X: np.ones((len(X), 1, 1)), r"got shape \(2, 1, 1\)"),
        (
            lambda X: 1 / 0,
            r"must accept a DataFrame of shape \(2, 3\), but failed with ZeroDivisionError: division by zero",
        ),
    ],
)
def test_answer_that_is_no_table_of_numbers_is_refused(answer, message):
    with pytest.raises(ModelError, match=message):
        predictor_of(answer, NUMBERS)


def test_nan_prediction_names_the_model_and_the_rows():
    def fickle(X):
        return np.where(X["a"] > X["a"].iloc[0], np.nan, 1.0)

    schema = FeatureSchema.learn(NUMBERS)
    predictor = Predictor(fickle, schema.table_format, None, ("output",), None)
    with pytest.raises(
        ModelError,
        match=r"'fickle' must return finite numbers, got NaN or infinity for 2 of 3 rows, at positions \[1, 2\]; "
        r"the first is {a=1, b=2, c=3}. Make it return a number",
    ):
        predictor(np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def test_nan_prediction_of_a_row_with_gaps_hints_at_the_missing_values():
    frame = MIXED.assign(x=MIXED["x"].mask(MIXED["x"] < 0))
    frame.loc[0, "x"] = np.nan
    with pytest.raises(
        ModelError, match=r"the first is {x=missing, .*colour='.*That row has missing values: use a model that"
    ):
        predictions_of(lambda X: X["x"], frame)


@pytest.mark.parametrize("huge", [1e69, -1e70])
def test_prediction_may_be_huge(huge):
    assert (predictions_of(lambda X: np.full(len(X), huge), NUMBERS) == huge).all()


@pytest.mark.parametrize("huge", [1e71, -1e154, 1.5e308])
def test_prediction_whose_fourth_power_overflows_is_refused(huge):
    with pytest.raises(ModelError, match=r"must return numbers of at most 1e\+70 in absolute value, .* got 1"):
        predictions_of(lambda X: np.where(np.arange(len(X)) == 1, huge, 0.0), NUMBERS)


def test_infinite_prediction_is_refused():
    with pytest.raises(ModelError, match="finite numbers, got NaN or infinity for 120 of 120 rows"):
        predictions_of(lambda X: np.full(len(X), np.inf), NUMBERS)


@pytest.mark.parametrize("model", [3, "model", None, LinearRegression])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(ModelError, match=r"predict|failed with"):
        predictor_of(model, NUMBERS)


def test_unfitted_model_is_refused_with_its_own_words():
    with pytest.raises(ModelError, match=r"LinearRegression must accept .* but failed with NotFittedError"):
        predictor_of(LinearRegression(), NUMBERS)


@pytest.mark.parametrize("model", [SVC(), RidgeClassifier()])
def test_classifier_without_probabilities_is_refused_even_if_its_labels_are_numbers(model):
    model.fit(NUMBERS, (CLASSES == "low").astype(int))
    with pytest.raises(
        ModelError, match=f"classifier {type(model).__name__} must have predict_proba.*decision_function"
    ):
        predictor_of(model, NUMBERS)
    scores = predictions_of(model.decision_function, NUMBERS)
    np.testing.assert_allclose(scores[:, 0], model.decision_function(NUMBERS))


def test_classifier_of_several_targets_is_refused_by_the_shape_of_its_answer():
    model = RandomForestClassifier(2, random_state=0).fit(NUMBERS, np.column_stack([CLASSES, CLASSES]))
    with pytest.raises(ModelError, match=r"got shape \(2, 2, 3\)"):
        predictor_of(model, NUMBERS)


@pytest.mark.parametrize("name", ["pipeline", "xgboost", "lightgbm"])
def test_predictor_pickles_and_predicts_the_same(name):
    predictor, rows = predictor_of(MIXED_MODELS[name](), MIXED)
    again = pickle.loads(pickle.dumps(predictor))
    np.testing.assert_array_equal(again(rows), predictor(rows))
