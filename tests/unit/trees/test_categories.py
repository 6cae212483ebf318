"""Boosting with categories is evaluated here as scikit-learn does it, gaps and unknown categories included."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from condshap.exceptions import ModelError
from condshap.trees import FastTrees, read_trees, sklearn_models
from condshap.trees.cpu import predict_cpu
from condshap.trees.flat import N_CODES, TreeNodes, join_trees, predict_plainly
from condshap.trees.packed import PackedTrees

RNG = np.random.default_rng(5)
N = 500
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "colour": RNG.choice(["red", "green", "blue", "grey"], N),
        "b": RNG.normal(size=N),
        "n": RNG.integers(-3, 40, N),
        "flag": RNG.random(N) < 0.5,
    }
)
Y = (X["a"] * (X["colour"] == "green") + X["n"] % 7 + X["flag"]).to_numpy()
HOLES = X.astype({"n": float, "flag": object}).mask(RNG.random(X.shape) < 0.1)
CATEGORIES = ["colour", "n", "flag"]
TARGETS = {"regression": Y, "binary": Y > 3, "three classes": np.array(["x", "y", "z"])[np.digitize(Y, [2, 4])]}


def as_category(table):
    return table.astype(dict.fromkeys(CATEGORIES, "category"))


def as_polars(table):
    return pl.from_pandas(table.assign(flag=table["flag"].astype(float)).astype({"colour": "category"}))


TABLES = {
    "category dtype": (as_category, {"categorical_features": "from_dtype"}),
    "the default": (as_category, {}),
    "names": (lambda table: table, {"categorical_features": CATEGORIES}),
    "positions": (lambda table: table, {"categorical_features": [4, 1, 3]}),
    "mask": (lambda table: table, {"categorical_features": [False, True, False, True, True]}),
    "array of objects": (lambda table: table.to_numpy(dtype=object), {"categorical_features": [1, 3, 4]}),
    "array of numbers": (lambda table: table[["a", "n"]].to_numpy(dtype=float), {"categorical_features": [1]}),
    "nothing else": (lambda table: as_category(table)[CATEGORIES], {}),
    "polars": (as_polars, {}),
    "constraints": (
        as_category, {"monotonic_cst": {"b": 1, "a": -1}, "interaction_cst": [{0, 1}, {2, 3, 4}], "max_depth": 3}
    ),
}  # fmt: skip
REFUSED = [("constraints", "three classes")]  # by scikit-learn


def fitted(table, target="regression", **options):
    kind = HistGradientBoostingRegressor if target == "regression" else HistGradientBoostingClassifier
    return kind(max_iter=9, random_state=0, **options).fit(table, TARGETS[target])


def with_strangers(table):
    """Rows with categories that no training row has, and with numbers of any size."""
    strange = table.copy()
    strange.loc[:40, "colour"] = "mauve"
    strange.loc[20:60, "n"] = RNG.choice([-4.0, 0.5, 41.0, 255.0, 256.0, 1e300], 41)
    strange.loc[50:90, "a"] = RNG.choice([np.inf, -np.inf, 0.0], 41)
    return strange


def outputs_of(model, table):
    raw = model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)
    return np.asarray(raw).reshape(len(table), -1)


@pytest.mark.parametrize("train", [X, HOLES], ids=["complete", "gaps"])
@pytest.mark.parametrize(("name", "target"), [case for case in product(TABLES, TARGETS) if case not in REFUSED])
def test_it_predicts_what_the_model_predicts(name, target, train):
    convert, options = TABLES[name]
    model = fitted(convert(train), target, **options)
    assert model.is_categorical_ is not None
    assert read_trees(model, exact=True) is not None
    fast = FastTrees(model)
    for table in map(convert, (train, HOLES, with_strangers(HOLES.astype({"n": float})))):
        np.testing.assert_array_equal(outputs_of(fast, table), outputs_of(model, table))
        assert (fast.predict(table) == model.predict(table)).all()


def test_as_many_categories_as_there_can_be():
    codes = np.arange(20 * 255)[:, None] % 255
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0]).fit(codes, np.sin(codes[:, 0]))
    rows = np.append(codes, [[-1.0], [255], [256], [1e9], [np.nan]], axis=0)
    np.testing.assert_array_equal(FastTrees(model).predict(rows), model.predict(rows))
    assert read_trees(model, exact=True).left_codes[:, 254].any()


@pytest.mark.parametrize("code", [0, 3, -1], ids=["the first category", "the last one", "a gap"])
def test_a_category_on_the_other_side_is_noticed(code, monkeypatch):
    model = HistGradientBoostingRegressor(max_iter=5).fit(as_category(X)[["colour", "a"]], Y)
    read = sklearn_models._hist_nodes

    def wrong(*given):
        nodes = read(*given)
        nodes.left_codes[:, code] ^= True
        return nodes

    assert read_trees(model) is not None
    monkeypatch.setattr(sklearn_models, "_hist_nodes", wrong)
    assert read_trees(model) is None


def tree_of_codes():
    """One tree: codes 0 and 254 go left, everything that is no code goes right."""
    left_codes = np.zeros((1, N_CODES), dtype=bool)
    left_codes[0, [0, 254]] = True
    both = [np.array(x) for x in ([0, 0, 0], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [True, True, True])]
    return TreeNodes(*both, np.array([[0.0], [1], [2]]), by_code=np.array([True, False, False]), left_codes=left_codes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_no_codes_read_nothing_beyond_the_set(dtype):
    trees = join_trees([tree_of_codes()] * 2, dtype=dtype, base=[0.0], n_features=1, accepts="anything")
    rows = np.array(
        [[0.0], [254], [1], [253], [255], [256], [1e30], [-1], [-1e-30], [-1e30], [np.inf], [-np.inf], [np.nan]]
    )
    expected = np.array([2.0, 2] + [4] * 11)[:, None]
    np.testing.assert_array_equal(predict_plainly(trees, rows), expected)
    np.testing.assert_array_equal(predict_cpu(PackedTrees.of(trees), rows), expected)


def test_a_set_that_does_not_exist_is_not_read():
    model = HistGradientBoostingRegressor(max_iter=2).fit(as_category(X), Y)
    for stage in model._predictors:
        stage[0].nodes["bitset_idx"] = 4000
    assert read_trees(model) is None


def test_a_device_refuses_them():
    pytest.importorskip("torch")
    model = HistGradientBoostingRegressor(max_iter=2).fit(as_category(X), Y)
    with pytest.raises(ModelError, match="must split on numbers"):
        FastTrees(model, "cpu:0")


def test_rows_of_another_width_are_refused():
    fast = FastTrees(
        HistGradientBoostingRegressor(max_iter=2, categorical_features=[0]).fit(X[["n", "a"]].to_numpy(), Y)
    )
    with pytest.raises(ModelError, match="2 features"):
        fast.predict(np.zeros((3, 3)))


def test_without_a_split_on_categories_trees_have_no_sets():
    trees = read_trees(HistGradientBoostingRegressor(max_iter=2).fit(X[["a", "b"]], Y))
    assert trees.left_codes.shape == (0, N_CODES)
    assert (trees.code_sets == -1).all()
