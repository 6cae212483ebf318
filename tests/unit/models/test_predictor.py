"""Models get the table that they were trained on, and their outputs have names."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xgboost as xgb
from sklearn.ensemble import RandomForestClassifier, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from condshap.exceptions import ModelError, OptionError
from tests.unit.models.tables_for_models import (
    CLASSES,
    MIXED,
    MIXED_MODELS,
    NUMBERS,
    Y_MIXED,
    mixed_pipeline,
    predictions_of,
    predictor_of,
)


@pytest.fixture(autouse=True)
def no_warning_may_leak():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


Y = NUMBERS.to_numpy() @ [1.0, 0.2, 0.03] + NUMBERS["a"].to_numpy() ** 2


def native(frame: pd.DataFrame) -> dict[str, object]:
    polars = pl.from_pandas(frame)
    for name in frame.select_dtypes("category"):
        polars = polars.with_columns(pl.col(name).cast(pl.String).cast(pl.Enum(frame[name].cat.categories.tolist())))
    return {"pandas": frame, "polars": polars, "pyarrow": pa.Table.from_pandas(frame)}


@pytest.mark.parametrize("trained_on", ["pandas", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize("explained_on", ["pandas", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize(
    "make",
    [
        LinearRegression,
        lambda: make_pipeline(StandardScaler(), LinearRegression()),
        lambda: GridSearchCV(LinearRegression(), {"fit_intercept": [True]}, cv=2),
        lambda: StackingRegressor([("linear", LinearRegression())], cv=2),
        lambda: xgb.XGBRegressor(n_estimators=5, n_jobs=1),
        lambda: lgb.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1, min_child_samples=2),
    ],
    ids=["linear", "pipeline", "search", "stacking", "xgboost", "lightgbm"],
)
def test_tables_and_arrays_may_be_mixed_between_training_and_explaining(make, trained_on, explained_on):
    tables = {**native(NUMBERS), "numpy": NUMBERS.to_numpy()}
    model = make().fit(tables[trained_on], Y)
    expected = model.predict(tables[trained_on])
    np.testing.assert_allclose(predictions_of(model, tables[explained_on])[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("order", [["c", "a", "b"], ["b", "c", "a"]])
@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: LinearRegression().fit(X, y),
        lambda X, y: xgb.XGBRegressor(n_estimators=5, n_jobs=1).fit(X, y),
        lambda X, y: xgb.train({"nthread": 1}, xgb.DMatrix(X, y), 5),
        lambda X, y: lgb.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1, min_child_samples=2).fit(X, y),
        lambda X, y: lgb.train({"verbose": -1, "min_data_in_leaf": 2, "num_threads": 1}, lgb.Dataset(X, y), 5),
    ],
    ids=["linear", "xgboost", "xgboost booster", "lightgbm", "lightgbm booster"],
)
def test_model_trained_in_another_column_order_gets_its_own_order(make, order, backend):
    model = make(NUMBERS, Y)
    is_booster = isinstance(model, xgb.Booster)
    expected = model.predict(xgb.DMatrix(NUMBERS) if is_booster else NUMBERS)
    np.testing.assert_allclose(predictions_of(model, native(NUMBERS[order])[backend])[:, 0], expected, rtol=1e-6)


def test_lightgbm_model_of_other_columns_is_refused_because_it_would_not_notice():
    model = lgb.LGBMRegressor(n_estimators=2, n_jobs=1, verbose=-1).fit(NUMBERS, Y)
    with pytest.raises(
        ModelError, match=r"LGBMRegressor must be explained with the columns that it was trained on, \['a'"
    ):
        predictor_of(model, NUMBERS.rename(columns={"c": "d"}))


def test_lightgbm_renames_columns_and_still_finds_them():
    spaced = NUMBERS.rename(columns={"a": "the first", "b": "the second"})
    booster = lgb.train({"verbose": -1, "min_data_in_leaf": 2, "num_threads": 1}, lgb.Dataset(spaced, Y), 5)
    np.testing.assert_allclose(predictions_of(booster, spaced.iloc[:, ::-1])[:, 0], booster.predict(spaced))


@pytest.mark.parametrize("name", MIXED_MODELS)
@pytest.mark.parametrize("order", [1, -1])
def test_native_categories_reach_the_model_as_in_training(name, order):
    model = MIXED_MODELS[name]()
    is_booster = isinstance(model, xgb.Booster)
    expected = model.predict(xgb.DMatrix(MIXED, enable_categorical=True) if is_booster else MIXED)
    assert np.std(expected[(MIXED["colour"] == "green").to_numpy()]) < np.std(expected)  # colour matters
    np.testing.assert_allclose(predictions_of(model, MIXED.iloc[:, ::order])[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "lightgbm booster", "pipeline"])
def test_models_with_categories_of_pandas_take_rows_from_other_tables(name, backend):
    model = MIXED_MODELS[name]()
    np.testing.assert_allclose(predictions_of(model, native(MIXED)[backend])[:, 0], model.predict(MIXED), rtol=1e-5)


def test_pipeline_trained_on_a_frame_takes_an_object_array():
    model = mixed_pipeline(LinearRegression()).fit(MIXED, Y_MIXED)
    array = MIXED.astype(object).to_numpy()
    np.testing.assert_allclose(predictions_of(model, array)[:, 0], model.predict(MIXED))


def test_pipeline_that_needs_the_frame_is_not_given_an_array():
    select = FunctionTransformer(lambda frame: frame[["a"]])
    model = make_pipeline(select, LinearRegression()).fit(NUMBERS, Y)
    np.testing.assert_allclose(predictions_of(model, NUMBERS)[:, 0], model.predict(NUMBERS))
    integers = NUMBERS.set_axis([1, 2, 3], axis=1)  # scikit-learn remembers no names that are not text
    model = make_pipeline(FunctionTransformer(lambda frame: frame[[1]]), LinearRegression()).fit(integers, Y)
    np.testing.assert_allclose(predictions_of(model, integers)[:, 0], model.predict(integers))


def test_model_trained_on_an_array_takes_a_frame_with_booleans_and_codes():
    array = np.column_stack([MIXED["x"], MIXED["n"], MIXED["colour"].cat.codes, MIXED["flag"]]).astype(float)
    frame = MIXED.assign(colour=pd.Categorical(array[:, 2], categories=[2.0, 0.0, 1.0]))
    model = LinearRegression().fit(array, Y_MIXED)
    np.testing.assert_allclose(predictions_of(model, frame, categorical=["n"])[:, 0], model.predict(array))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomForestClassifier(5, random_state=0),
        lambda: LogisticRegression(max_iter=2000),
        lambda: lgb.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=["forest", "logistic", "lightgbm", "pipeline"],
)
def test_classifier_has_one_named_output_per_class(make):
    model = make().fit(NUMBERS, CLASSES)
    predictor, rows = predictor_of(model, NUMBERS)
    assert predictor.output_names == ("high", "low", "middle")
    np.testing.assert_allclose(predictor(rows), model.predict_proba(NUMBERS))


def test_xgboost_classifier_names_its_classes():
    model = xgb.XGBClassifier(n_estimators=3, n_jobs=1).fit(NUMBERS, (CLASSES == "low").astype(int))
    predictor, rows = predictor_of(model, NUMBERS)
    assert predictor.output_names == ("0", "1")
    np.testing.assert_allclose(predictor(rows).sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize(("output", "column"), [("low", 1), (1, 1), (-1, 2), (np.int64(0), 0), (np.str_("middle"), 2)])
def test_one_output_is_picked_by_name_or_position(output, column):
    model = RandomForestClassifier(5, random_state=0).fit(NUMBERS, CLASSES)
    predictor, rows = predictor_of(model, NUMBERS, output)
    assert predictor.output_names == (["high", "low", "middle"][column],)
    np.testing.assert_array_equal(predictor(rows), model.predict_proba(NUMBERS)[:, [column]])


@pytest.mark.parametrize("kind", [int, float])
def test_integer_classes_are_picked_by_name_as_text_and_refused_as_numbers_that_could_be_positions(kind):
    model = LogisticRegression(max_iter=2000).fit(NUMBERS, np.unique(CLASSES, return_inverse=True)[1].astype(kind) + 1)
    one, two, three = (str(kind(i)) for i in (1, 2, 3))
    message = (
        rf"must be unambiguous, but 1 is both the name at position 0 and the position of '{two}'. Write 'name:{one}' or"
    )
    with pytest.raises(OptionError, match=message):
        predictor_of(model, NUMBERS, 1)
    for output, name in [(one, one), (f"name:{one}", one), ("position:1", two), (3, three), (0, one), (-1, three)]:
        assert predictor_of(model, NUMBERS, output)[0].output_names == (name,)
    from_zero = LogisticRegression(max_iter=2000).fit(NUMBERS, np.where(CLASSES == "low", 1, 0))
    assert predictor_of(from_zero, NUMBERS, 1)[0].output_names == ("1",)
    boolean = LogisticRegression(max_iter=2000).fit(NUMBERS, CLASSES == "low")
    assert predictor_of(boolean, NUMBERS, True)[0].output_names == ("True",)


@pytest.mark.parametrize("output", ["medium", 3, -4, 1.0, True])
def test_output_that_does_not_exist_is_refused_with_the_names(output):
    model = RandomForestClassifier(5, random_state=0).fit(NUMBERS, CLASSES)
    with pytest.raises(
        OptionError, match=r"output must be a name among \['high', 'low', 'middle'\] or a position below 3"
    ):
        predictor_of(model, NUMBERS, output)


def test_outputs_without_names_are_numbered():
    assert predictor_of(lambda X: X.to_numpy()[:, :2], NUMBERS)[0].output_names == ("output_0", "output_1")
    assert predictor_of(lambda X: X.to_numpy()[:, :1], NUMBERS)[0].output_names == ("output",)
    assert predictor_of(lambda X: X["a"], NUMBERS)[0].output_names == ("output",)


def test_infinite_value_in_an_output_that_is_not_explained_does_not_matter():
    def f(X):
        return np.column_stack([X["a"], np.full(len(X), -np.inf)])

    predictor, rows = predictor_of(f, NUMBERS, 0)
    np.testing.assert_array_equal(predictor(rows), NUMBERS[["a"]])
    predictor, rows = predictor_of(f, NUMBERS)
    with pytest.raises(ModelError, match="must return finite numbers"):
        predictor(rows)


class TestTorch:
    @staticmethod
    def network(dtype=torch.float64):
        torch.manual_seed(0)
        layers = torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
        return torch.nn.Sequential(*layers).to(dtype)

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_module_is_called_in_its_own_precision_and_evaluation_mode(self, dtype, backend):
        network = self.network(dtype).eval()
        expected = network(torch.tensor(NUMBERS.to_numpy(), dtype=dtype)).detach().double().numpy()
        network.train()
        np.testing.assert_array_equal(predictions_of(network, native(NUMBERS)[backend]), expected)

    def test_modes_of_all_parts_are_put_back(self):
        network = self.network()
        network[2].eval()
        before = [module.training for module in network.modules()]
        predictions_of(network, NUMBERS)
        assert [module.training for module in network.modules()] == before == [True, True, True, False, True]

    def test_modes_are_put_back_when_the_module_fails(self):
        network = torch.nn.Linear(2, 1)
        with pytest.raises(ModelError, match=r"model Linear must accept a ndarray of shape \(2, 3\), but failed with"):
            predictor_of(network, NUMBERS)
        assert network.training

    def test_threads_do_not_disturb_each_others_mode(self):
        network = self.network().train()
        predictor, rows = predictor_of(network, NUMBERS)
        expected = predictor(rows)
        with ThreadPoolExecutor(4) as pool:
            for outputs in pool.map(lambda _: predictor(rows), range(200)):
                np.testing.assert_array_equal(outputs, expected)
        assert network.training

    def test_module_takes_booleans_and_numeric_codes_but_no_text(self):
        frame = MIXED[["x", "n", "flag"]]
        network = self.network().eval()
        expected = network(torch.tensor(frame.astype(float).to_numpy())).detach().numpy()
        np.testing.assert_array_equal(predictions_of(network, frame), expected)
        with pytest.raises(ModelError, match=r"torch module needs numeric columns, got levels in \['colour'\]"):
            predictor_of(network, MIXED)

    def test_module_without_parameters_gets_single_precision(self):
        class Sum(torch.nn.Module):
            def forward(self, x):
                assert x.dtype == torch.float32
                return x.sum(1)

        np.testing.assert_allclose(predictions_of(Sum(), NUMBERS)[:, 0], NUMBERS.sum(axis=1), rtol=1e-4)
