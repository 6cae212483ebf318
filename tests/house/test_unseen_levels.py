"""A level that a column's type declares but no training row has: one rule for all tables and approaches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import condshap as cs
from condshap.exceptions import SchemaError
from condshap.storage.schemas import schema_from_json, schema_to_json

LEVELS = ["C", "A", "B"]
RNG = np.random.default_rng(4)
N = 60
CITY, NUMBER = RNG.choice(["A", "B"], N).tolist(), RNG.normal(size=N)
EFFECT = {"A": 0.0, "B": 1.0, "C": 8.0}


def as_category(city, x):
    return pd.DataFrame({"city": pd.Categorical(city, categories=LEVELS), "x": x})


def as_text(city, x):
    return pd.DataFrame({"city": city, "x": x})


def as_enum(city, x):
    return pl.DataFrame({"city": pl.Series(city, dtype=pl.Enum(LEVELS)), "x": x})


def as_dictionary(city, x):
    codes = pa.array([None if one is None else LEVELS.index(one) for one in city], type=pa.int8())
    return pa.table({"city": pa.DictionaryArray.from_arrays(codes, pa.array(LEVELS)), "x": x})


TABLES = [as_category, as_text, as_enum, as_dictionary]


def effect_of_city(X):
    cities = X["city"].to_pylist() if isinstance(X, pa.Table) else list(X["city"])
    return np.array([EFFECT[city] for city in cities])


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize("approach", ["independence", "ctree", "regression_separate", "regression_surrogate", "vaeac"])
def test_declared_level_that_training_never_showed_is_refused_by_every_approach(make, approach):
    with pytest.raises(
        SchemaError, match=r"'city' must hold the levels \['A', 'B'\], got unseen levels \['C'\] in rows \[1\]"
    ):
        cs.explain(effect_of_city, make(CITY, NUMBER), make(["A", "C"], [0.0, 1.0]), approach=approach)


def test_categorical_refuses_it_too():
    train = pd.DataFrame({"a": pd.Categorical(CITY, categories=LEVELS), "b": CITY[::-1]})
    rows = pd.DataFrame({"a": pd.Categorical(["C"], categories=LEVELS), "b": ["A"]})
    with pytest.raises(SchemaError, match=r"unseen levels \['C'\]"):
        cs.explain(lambda X: np.zeros(len(X)), train, rows, approach="categorical")


def test_boolean_that_training_never_showed_is_refused():
    train = pd.DataFrame({"flag": [True] * N, "x": NUMBER})
    with pytest.warns(cs.exceptions.CondShapWarning, match="'flag' is constant"):
        schema = cs.FeatureSchema.learn(train)
    with pytest.raises(SchemaError, match=r"'flag' must hold the levels \[True\], got unseen levels \[False\]"):
        schema.encode(pd.DataFrame({"flag": [False], "x": [0.0]}))
    pd.testing.assert_frame_equal(schema.decode(schema.encode(train)), train)


@pytest.mark.parametrize("make", TABLES)
def test_model_still_gets_every_declared_level(make):
    train = make(CITY, NUMBER)
    schema = cs.FeatureSchema.learn(train)
    assert schema.features[0].levels == ("A", "B")
    for one in (schema, schema_from_json(schema_to_json(schema))):
        written = one.decode(one.encode(train))
        if make is as_category:
            pd.testing.assert_frame_equal(written, train)
        elif make is as_dictionary:
            assert written.equals(train)
            assert written["city"].combine_chunks().dictionary.to_pylist() == LEVELS
        else:
            assert written.equals(train)


def test_declared_levels_change_no_number():
    rows = ["A", "B"], [0.3, -0.2]
    for approach in ("ctree", "regression_separate", "regression_surrogate"):
        found = [
            cs.explain(effect_of_city, make(CITY, NUMBER), make(*rows), approach=approach).values
            for make in (as_category, as_text)
        ]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("levels", [["B", "A"], ["B"]])
@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_rows_of_another_type_get_their_own_order_of_levels_back(levels, fill):
    schema = cs.FeatureSchema.learn(as_text(CITY, NUMBER).to_numpy(dtype=object))
    rows = pd.DataFrame({"x0": pd.Categorical(["B", None], categories=levels), "x1": [0.5, 0.5]})
    enum = pl.DataFrame({"x0": pl.Series(["B", None], dtype=pl.Enum(levels)), "x1": [0.5, 0.5]})
    for table in (rows, enum):
        encoded = schema.encode(table)
        encoded[1, 0] = fill
        assert list(schema.decode_like(table, encoded)["x0"]) == ["B", "AB"[int(fill)]]
