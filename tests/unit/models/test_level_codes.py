"""Boosting with categories: samples are evaluated here, without tables of labels, and no number changes by it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import condshap as cs
from condshap.models.predictor import Predictor
from condshap.models.recognise import traced_columns
from condshap.schema import FeatureSchema

RNG = np.random.default_rng(8)
N = 300
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "colour": pd.Categorical(RNG.choice(["red", "green", "blue"], N), categories=["red", "none", "green", "blue"]),
        "n": RNG.integers(-3, 9, N),
        "kind": pd.Categorical(RNG.choice([7, 3, 5], N)),
    }
)
Y = (X["a"] * (X["colour"] == "green") + X["n"] + 2 * (X["kind"] == 5)).to_numpy()
THREE = np.array(["low", "middle", "high"])[np.digitize(Y, [1, 5])]
HOLES = X.astype({"n": float}).mask(RNG.random(X.shape) < 0.15)
TEXT = X.astype({"colour": object, "kind": str})


def regressor(**options):
    return HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=5, **options)


def by_name():
    return regressor(categorical_features=["colour", "kind"])


def labelled(table):
    return pl.from_pandas(table.assign(kind=table["kind"].astype(str).astype("category")))


CASES = {
    "category": lambda: (regressor().fit(X, Y), X),
    "classes": lambda: (HistGradientBoostingClassifier(max_iter=9).fit(X, THREE), X),
    "gaps": lambda: (regressor().fit(HOLES, Y), HOLES),
    "gaps that training did not have": lambda: (regressor().fit(X, Y), HOLES),
    "text": lambda: (by_name().fit(TEXT, Y), TEXT),
    "polars": lambda: (regressor().fit(labelled(X), Y), labelled(X)),
    "another order": lambda: (regressor().fit(X, Y), X[["kind", "n", "colour", "a"]]),
    "other levels": lambda: (regressor().fit(X[X["colour"] != "blue"], Y[X["colour"] != "blue"]), X),
}
BY_TABLE = {
    "an array of objects": lambda: (regressor(categorical_features=[1, 3]).fit(TEXT.to_numpy(), Y), TEXT.to_numpy()),
    "float32": lambda: (regressor().fit(X.astype({"a": "float32"}), Y), X.astype({"a": "float32"})),
    "numbers as categories": lambda: (regressor(categorical_features=["n"]).fit(X[["a", "n"]], Y), X[["a", "n"]]),
    "another column": lambda: (regressor().fit(X, Y), X.assign(z=X["a"])[["z", *X.columns]]),
    "a pipeline": lambda: (
        make_pipeline(FunctionTransformer(lambda table: table.assign(a=table["a"] + 1)), regressor()).fit(X, Y), X
    ),
}  # fmt: skip


def predictor_of(model, table):
    schema = FeatureSchema.learn(table)
    rows = schema.encode(table)
    return Predictor.of(model, schema, rows, fast_trees=True), rows


@pytest.mark.parametrize("name", [*CASES, *BY_TABLE])
def test_explanations_are_equal_to_the_last_bit(name):
    model, table = (CASES | BY_TABLE)[name]()
    found = []
    for fast in (True, False):
        explainer = cs.Explainer(model, approach="independence", n_samples=24, seed=3, fast_trees=fast).fit(table)
        assert (explainer.predictor_.trees is not None) is fast
        assert (explainer.predictor_.level_codes is not None) is (fast and name in CASES)
        found.append(explainer.explain(table[:4]))
    np.testing.assert_array_equal(found[0].values, found[1].values)
    np.testing.assert_array_equal(found[0].value_table.values, found[1].value_table.values)


@pytest.mark.parametrize("name", CASES)
def test_neither_model_nor_encoder_is_called_for_samples(name, monkeypatch):
    model, table = CASES[name]()
    predictor, rows = predictor_of(model, table)
    expected = predictor(rows.copy())
    monkeypatch.setattr(model._preprocessor, "transform", None)
    np.testing.assert_array_equal(predictor.predict_fast(rows), expected)


def test_rows_do_not_change():
    predictor, rows = predictor_of(*CASES["gaps"]())
    before = rows.copy()
    predictor.predict_fast(rows)
    np.testing.assert_array_equal(rows, before)


def test_columns_are_traced_through_the_encoder():
    predictor, _ = predictor_of(*CASES["another order"]())
    assert traced_columns(predictor, FeatureSchema.learn(X[["kind", "n", "colour", "a"]])) == [-1, -1, 3, 1]


@pytest.mark.parametrize("number", ["a", "n"])
def test_stumps_are_a_sum_of_functions_of_one_column_each(number):
    table = X[["colour", number, "kind"]]
    stumps = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=2).fit(table, Y)
    explainer = cs.Explainer(stumps, approach="independence", n_samples=50).fit(table)
    found = explainer.explain(table[:4])
    np.testing.assert_allclose(found.values, [shares(stumps, table, i) for i in range(4)], rtol=1e-9, atol=1e-12)
    assert (found.std_errors == 0).all()


def shares(model, table, i):
    """Values of a sum of functions, for independent columns: what each column adds beyond its mean."""
    means = []
    for name in table:
        other = table.iloc[[i] * len(table)].reset_index(drop=True)
        other[name] = table[name].to_numpy() if table[name].dtype != "category" else table[name].array
        means.append(model.predict(table.iloc[[i]])[0] - model.predict(other).mean())
    return means


def test_a_category_that_is_never_asked_for_gets_nothing():
    unread = X.assign(kind=pd.Categorical(np.repeat([1, 2], [N - 5, 5])))  # too few for a split
    unread = unread[["a", "kind", "n"]]
    explainer = cs.Explainer(regressor().fit(unread, Y), approach="independence", n_samples=24).fit(unread)
    found = explainer.explain(unread[:4]).values
    assert (found[:, 1] == 0).all()
    assert (found[:, [0, 2]] != 0).all()


def test_a_device_leaves_them_to_the_host():
    pytest.importorskip("torch")
    model, table = CASES["category"]()
    schema = FeatureSchema.learn(table)
    rows = schema.encode(table)
    with pytest.warns(
        cs.exceptions.CondShapWarning, match="evaluated on the CPU: trees on a device must split on numbers"
    ):
        predictor = Predictor.of(model, schema, rows, fast_trees=True, device="cpu")
    assert predictor.device_trees is None
    np.testing.assert_array_equal(predictor.predict_fast(rows), predictor(rows))


def test_columns_beside_those_of_a_pipeline_do_not_shift_them():
    table = X[["a", "n"]].assign(z=RNG.normal(size=N))[["z", "a", "n"]]
    forest = RandomForestRegressor(5, max_depth=3, random_state=0)
    model = make_pipeline(make_column_transformer((StandardScaler(), ["a", "n"])), forest).fit(table[["a", "n"]], Y)
    found = cs.Explainer(model, approach="independence").fit(table).explain(table[:5]).values
    assert (found[:, 1:] != 0).all()
