"""Samples of tree ensembles are evaluated here, and no number changes by it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import condshap as cs
from condshap.exceptions import ModelError
from condshap.models.predictor import Predictor
from condshap.schema import FeatureSchema
from condshap.trees.threads import count_threads

RNG = np.random.default_rng(4)
N = 150
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "n": RNG.integers(-3, 4, N),
        "b": np.exp(RNG.normal(size=N)),
        "d": RNG.normal(size=N),
    }
)
Y = (X["a"] * X["b"] + X["n"] + np.sin(X["d"])).to_numpy()
THREE = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.7, 1.2])]
CODES = np.digitize(Y, [-0.7, 1.2])


def lightgbm(kind, **options):
    return getattr(pytest.importorskip("lightgbm"), kind)(n_estimators=12, verbose=-1, n_jobs=1, **options)


def xgboost(kind, **options):
    return getattr(pytest.importorskip("xgboost"), kind)(n_estimators=12, n_jobs=1, **options)


MODELS = {
    "forest": lambda: RandomForestRegressor(20, random_state=0).fit(X, Y),
    "forest of two jobs": lambda: RandomForestRegressor(20, random_state=0, n_jobs=2).fit(X, Y),
    "forest of three classes": lambda: RandomForestClassifier(20, random_state=0).fit(X, THREE),
    "forest of two responses": lambda: RandomForestRegressor(9, random_state=0).fit(X, np.stack([Y, Y**2], axis=1)),
    "extra trees": lambda: ExtraTreesRegressor(20, random_state=0).fit(X, Y),
    "tree": lambda: DecisionTreeRegressor(random_state=0).fit(X, Y),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=9, random_state=0).fit(X, THREE),
    "histogram boosting": lambda: HistGradientBoostingRegressor(max_iter=12).fit(X, Y),
    "histogram classifier": lambda: HistGradientBoostingClassifier(max_iter=12).fit(X, THREE),
    "lightgbm": lambda: lightgbm("LGBMRegressor").fit(X, Y),
    "lightgbm counts": lambda: lightgbm("LGBMRegressor", objective="poisson").fit(X, np.exp(Y / 4)),
    "lightgbm classifier": lambda: lightgbm("LGBMClassifier").fit(X, CODES),
    "xgboost": lambda: xgboost("XGBRegressor").fit(X, Y),
    "xgboost counts": lambda: xgboost("XGBRegressor", objective="count:poisson").fit(X, np.exp(Y / 4)),
    "xgboost two classes": lambda: xgboost("XGBClassifier").fit(X, CODES > 0),
    "xgboost three classes": lambda: xgboost("XGBClassifier").fit(X, CODES),
}


def predictor_of(model, table=X, *, fast_trees=True, **options):
    schema = FeatureSchema.learn(table)
    return Predictor.of(model, schema, schema.encode(table), fast_trees=fast_trees, **options)


def assert_equal(one, other):
    for name in ("values", "std_errors", "base_values", "predictions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.value_table.values, other.value_table.values)
    np.testing.assert_array_equal(one.value_table.std_errors, other.value_table.std_errors)
    assert one.value_table.n_evaluations == other.value_table.n_evaluations


def assert_no_number_changes(model, train, rows, **options):
    """Explanations with and without fast trees; a forest of several jobs adds its trees in any order, so it gets one."""
    options = {"approach": "gaussian", "n_samples": 24, "seed": 3} | options
    explainer = cs.Explainer(model, **options).fit(train)
    assert explainer.predictor_.trees is not None
    slow = cs.Explainer(model, fast_trees=False, **options).fit(train)
    assert slow.predictor_.trees is None
    assert_equal(explainer.explain(rows), slow.explain(rows))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "forest of two jobs"])
def test_explanations_are_equal_to_the_last_bit(name):
    assert_no_number_changes(MODELS[name](), X, X[:4])


@pytest.mark.parametrize("options", [{"groups": {"g": ["b", "a"], "h": ["n"], "i": ["d"]}}, {"output": "middle"},
                                     {"output": 0}, {"approach": "independence"}, {"approach": "ctree"},
                                     {"n_jobs": 2, "memory_budget": "20KiB"}])  # fmt: skip
def test_options_of_the_explanation_change_nothing_about_that(options):
    assert_no_number_changes(MODELS["forest of three classes"](), X, X[:4], **options)


@pytest.mark.parametrize("name", ["forest", "lightgbm", "xgboost"])
@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
def test_any_table_in_any_column_order_reaches_the_right_features(name, convert):
    order = list("abdn") if convert is not pd.DataFrame.to_numpy else list(X.columns)
    table = convert(X[order])
    assert_no_number_changes(MODELS[name](), table, table[:4])


@pytest.mark.parametrize("name", ["forest", "histogram boosting", "lightgbm", "xgboost"])
def test_missing_values_go_where_the_model_sends_them(name):
    model = MODELS[name]()
    holes = X.astype(float).mask(RNG.random(X.shape) < 0.2)
    model.fit(holes, Y)
    assert_no_number_changes(model, holes, holes[:4], approach="independence")


def test_rows_that_are_explained_together_do_not_matter():
    explainer = cs.Explainer(MODELS["xgboost"](), approach="gaussian", seed=1).fit(X)
    together, alone = explainer.explain(X[:5]).value_table, explainer.explain(X[2:3]).value_table
    np.testing.assert_array_equal(together.values[:, 2:3], alone.values)


def test_forest_of_several_jobs_is_read_although_its_own_sums_are_in_any_order():
    predictor = predictor_of(MODELS["forest of two jobs"]())
    rows = RNG.normal(size=(50, 4))
    np.testing.assert_array_equal(predictor.predict_fast(rows), predictor_of(MODELS["forest"]())(rows))


CATEGORIES = X.assign(n=X["n"].astype(str).astype("category"))
HOLES = X.astype(float).mask(RNG.random(X.shape) < 0.2)


def forest(**options):
    return RandomForestRegressor(15, random_state=0, **options)


def encoder(**options):
    return make_column_transformer((OneHotEncoder(**options), ["n"]), remainder=StandardScaler())


PIPELINES = {
    "levels to codes": lambda: (
        make_pipeline(make_column_transformer((OrdinalEncoder(), ["n"]), remainder="passthrough"), forest()), CATEGORIES, Y
    ),
    "levels to columns": lambda: (make_pipeline(encoder(sparse_output=False), forest()), CATEGORIES, Y),
    "frames between the steps": lambda: (
        make_pipeline(encoder(sparse_output=False), forest()).set_output(transform="pandas"), CATEGORIES, Y
    ),
    "classes": lambda: (make_pipeline(StandardScaler(), RandomForestClassifier(9, random_state=0)), X, THREE),
    "a single step": lambda: (make_pipeline(forest()), X, Y),
    "steps that do nothing": lambda: (Pipeline([("a", "passthrough"), ("b", None), ("c", forest())]), X, Y),
    "a step that does nothing and one that does": lambda: (
        Pipeline([("a", "passthrough"), ("b", StandardScaler()), ("c", forest())]), X, Y
    ),
    "a step that has nothing to learn": lambda: (make_pipeline(StandardScaler(), Unlearned(), forest()), X, Y),
    "a step that changes its input": lambda: (make_pipeline(StandardScaler(copy=False), forest()), X.astype(float), Y),
    "gaps that are filled": lambda: (make_pipeline(SimpleImputer(), forest()), HOLES, Y),
    "lightgbm": lambda: (make_pipeline(StandardScaler(), lightgbm("LGBMClassifier")), X, CODES),
    "xgboost": lambda: (make_pipeline(StandardScaler(), xgboost("XGBRegressor")), X, Y),
}  # fmt: skip


class Unlearned(TransformerMixin, BaseEstimator):
    """A transformer that is never fitted, which scikit-learn minds at the end of a pipeline only."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X * 2.0


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_that_end_in_trees_give_their_own_numbers_to_the_last_bit(name):
    model, table, y = PIPELINES[name]()
    approach = "independence" if table is HOLES else "ctree"
    assert_no_number_changes(model.fit(table, y), table, table[:4], approach=approach, n_samples=None)


def test_last_step_of_a_pipeline_is_not_called_for_samples():
    model, table, y = PIPELINES["levels to codes"]()
    predictor = predictor_of(model.fit(table, y), table)
    rows = FeatureSchema.learn(table).encode(table)
    expected = predictor(rows)
    model.steps[-1] = ("deaf", RandomForestRegressor())
    np.testing.assert_array_equal(predictor.predict_fast(rows), expected)


def test_pipeline_with_a_forest_of_several_jobs_is_read():
    several, single = (make_pipeline(StandardScaler(), forest(n_jobs=n)).fit(X, Y) for n in (2, 1))
    rows = X.to_numpy(dtype=float)
    np.testing.assert_array_equal(predictor_of(several).predict_fast(rows), predictor_of(single)(rows))
    assert several[-1].n_jobs == 2


def test_numbers_that_a_pipeline_refuses_are_refused_in_its_own_words():
    predictor = predictor_of(make_pipeline(StandardScaler(), forest()).fit(X, Y))
    for value, words in ((np.inf, "Pipeline must accept a DataFrame"), (1e300, "Pipeline must accept a ndarray")):
        rows = X.to_numpy(dtype=float)
        rows[7, 2] = value
        with pytest.raises(ModelError, match=words), np.errstate(over="ignore"):
            predictor.predict_fast(rows)


def test_rows_that_the_trees_do_not_take_meet_the_earlier_steps_once():
    model = make_pipeline(StandardScaler(copy=False), forest()).fit(X.astype(float), Y)
    predictor = predictor_of(model, X.astype(float))
    expected = predictor(X.to_numpy(dtype=float))
    fussy = replace(predictor, trees=replace(predictor.trees, n_features=5))
    np.testing.assert_array_equal(fussy.predict_fast(X.to_numpy(dtype=float)), expected)


def test_columns_that_change_their_names_from_block_to_block_are_left_to_the_library():
    def rename(table):
        return table.set_axis([f"{name}{len(table) == 3}" for name in table.columns], axis=1)

    predictor = predictor_of(make_pipeline(FunctionTransformer(rename), forest()).fit(X, Y))
    assert predictor.trees is not None
    with pytest.raises(ModelError, match="feature names"):
        predictor.predict_fast(X.to_numpy(dtype=float)[:3])


def test_columns_of_another_type_reach_the_trees_as_they_reach_the_model():
    for table in (X.assign(n=X["n"] > 0), X.astype(np.float32)):
        assert_no_number_changes(forest().fit(table, Y), table, table[:4], approach="independence")


def test_numbers_declared_as_levels_reach_the_trees_as_numbers():
    schema = FeatureSchema.learn(X, ["n"])
    rows = schema.encode(X)
    predictor = Predictor.of(forest().fit(X, Y), schema, rows, fast_trees=True)
    assert predictor.trees is not None
    np.testing.assert_array_equal(predictor.predict_fast(rows), predictor(rows))


class Shifted(Pipeline):
    def predict(self, X):
        return super().predict(X) + 1.0


def patched_pipeline():
    model = make_pipeline(StandardScaler(), forest()).fit(X, Y)
    model.predict = lambda X: np.zeros(len(X))
    return model


def noisy(table):
    return table + np.random.default_rng().normal(size=table.shape)


LIBRARY = {
    "a calibrated model": lambda: (CalibratedClassifierCV(RandomForestClassifier(3), cv=2).fit(X, THREE), X),
    "a function": lambda: (lambda table: table["a"].to_numpy(), X),
    "objects": lambda: (RandomForestRegressor(3).fit(X.astype(object), Y), X.astype(object)),
    "a pipeline of another class": lambda: (Shifted([("a", StandardScaler()), ("b", forest())]).fit(X, Y), X),
    "a pipeline with another method": lambda: (patched_pipeline(), X),
    "a pipeline without trees": lambda: (make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y), X),
    "a sparse table before the last step": lambda: (
        make_pipeline(make_column_transformer((OneHotEncoder(), ["a", "n"])), forest()).fit(X, Y), X
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIBRARY)
def test_what_is_not_certain_is_left_to_the_library(name):
    model, table = LIBRARY[name]()
    predictor = predictor_of(model, table)
    assert predictor.trees is None
    rows = FeatureSchema.learn(table).encode(table)
    np.testing.assert_array_equal(predictor.predict_fast(rows), predictor(rows))


def test_pipeline_that_gives_other_numbers_at_every_call_is_left_to_the_library():
    model = make_pipeline(FunctionTransformer(noisy), RandomForestRegressor(30, random_state=0)).fit(X, Y)
    assert predictor_of(model).trees is None


def test_trees_are_not_read_unless_asked_for():
    assert predictor_of(MODELS["forest"](), fast_trees=False).trees is None


def test_model_is_not_called_for_samples():
    predictor = predictor_of(MODELS["forest"]())
    expected = predictor(X.to_numpy())
    deaf = replace(predictor, model=RandomForestRegressor())
    np.testing.assert_array_equal(deaf.predict_fast(X.to_numpy()), expected)
    with pytest.raises(ModelError, match="must accept"):
        deaf(X.to_numpy())


def test_numbers_that_the_model_refuses_are_refused_in_its_own_words():
    predictor = predictor_of(MODELS["forest"]())
    for value in (np.inf, 1e300):
        rows = X.to_numpy(dtype=float)
        rows[7, 2] = value
        with pytest.raises(ModelError, match="RandomForestRegressor must accept"), np.errstate(over="ignore"):
            predictor.predict_fast(rows)


def test_predictor_pickles_with_its_trees_and_compares_without():
    model = MODELS["forest"]()
    predictor = predictor_of(model)
    again = pickle.loads(pickle.dumps(predictor))
    np.testing.assert_array_equal(again.predict_fast(X.to_numpy()), predictor.predict_fast(X.to_numpy()))
    assert predictor == replace(predictor, trees=None)
    assert "trees" not in repr(predictor)
    assert len(pickle.dumps(predictor)) < 1.5 * len(pickle.dumps(model))


def test_processes_give_the_same_numbers():
    explainer = cs.Explainer(MODELS["lightgbm"](), approach="gaussian", n_samples=16, memory_budget="20KiB").fit(X)
    expected = explainer.explain(X[:3])
    with parallel_config(backend="loky"):
        assert_equal(explainer.set_params(n_jobs=2).explain(X[:3]), expected)


def test_saved_explainers_keep_the_choice(tmp_path):
    model = MODELS["forest"]()
    for fast in (True, False):
        cs.Explainer(model, approach="gaussian", fast_trees=fast).fit(X).save(tmp_path / "file")
        loaded = cs.load_explainer(tmp_path / "file", model)
        assert loaded.fast_trees is fast
        assert (loaded.predictor_.trees is not None) is fast


def test_numba_is_loaded_for_tree_ensembles_only():
    program = (
        "import sys, numpy as np, condshap as cs; from sklearn.linear_model import LinearRegression as L;"
        "X = np.random.default_rng(0).normal(size=(50, 3)); m = L().fit(X, X[:, 0]);"
        "cs.explain(m, X, X[:1], approach='gaussian', n_samples=4); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_as_many_threads_are_used_as_the_model_would_use():
    assert count_threads(RandomForestRegressor()) == 1
    assert count_threads(RandomForestRegressor(n_jobs=3)) == 3
    assert count_threads(GradientBoostingClassifier()) == 1
    assert count_threads(lightgbm("LGBMRegressor").set_params(n_jobs=5)) == 5
    everyone = count_threads(HistGradientBoostingRegressor())
    assert everyone >= 1
    assert count_threads(xgboost("XGBRegressor").set_params(n_jobs=None)) == everyone
    assert count_threads(lightgbm("LGBMRegressor").set_params(n_jobs=-1)) == everyone


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_the_option_is_true_or_false(value):
    with pytest.raises(cs.exceptions.OptionError, match="fast_trees must be one of"):
        cs.Explainer(MODELS["tree"](), approach="gaussian", fast_trees=value).fit(X)


def test_forests_are_explained_where_no_cache_can_be_written():
    program = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = [];"
        "[setattr(c, '_locator_classes', []) for c in caching.CacheImpl.__subclasses__()];"
        "import numpy as np, condshap as cs; from sklearn.tree import DecisionTreeRegressor as D;"
        "X = np.random.default_rng(0).normal(size=(50, 3)); m = D().fit(X, X[:, 0]);"
        "cs.explain(m, X, X[:1], approach='gaussian', n_samples=4);"
        "from condshap.trees.cpu import add_trees; assert 'Null' in type(add_trees._cache).__name__"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
