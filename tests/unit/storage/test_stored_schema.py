"""A schema goes through JSON and comes back the same, whatever the table."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from condshap.exceptions import StorageError
from condshap.schema import FeatureSchema
from condshap.storage.schemas import schema_from_json, schema_to_json

N = 6
PANDAS = pd.DataFrame(
    {
        "float": np.linspace(0, 1, N),
        "float32": np.arange(N, dtype="f4"),
        "int": np.arange(N),
        "code": np.arange(N, dtype="u1"),
        "Int64": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"),
        "str": list("abcabc"),
        "string": pd.array(list("abcabc"), dtype="string"),
        "python string": pd.array(list("abcabc"), dtype=pd.StringDtype("python")),
        "bool": [True, False] * 3,
        "boolean": pd.array([True, None, False] * 2, dtype="boolean"),
        "ordered": pd.Categorical(list("xyzxyz"), ordered=True),
        "numbers": pd.Categorical([3, 1, 2] * 2, categories=[3, 2, 1]),
        "halves": pd.Categorical([0.5, 1.5] * 3),
        "cut": pd.cut(np.arange(N), 3),
        "times": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"] * 2)),
        "object numbers": pd.Series([1, None, 3, 4, 5, 6], dtype=object),
        "object flags": pd.Series([True, np.nan, False] * 2, dtype=object),
        "object text": pd.Series(["a", pd.NA, "b"] * 2, dtype=object),
        "arrow double": pd.array([1.0, None, 3, 4, 5, 6], dtype="double[pyarrow]"),
        "arrow int": pd.array([1, None, 3, 4, 5, 6], dtype="int64[pyarrow]"),
        "arrow text": pd.array(list("abcabc"), dtype=pd.ArrowDtype(pa.string())),
        "sparse": pd.arrays.SparseArray([0.0, 0, 1, 0, 2, 3]),
    }
)
POLARS = pl.DataFrame(
    {
        "float": [1.0, 2, None],
        "nan": [1.0, float("nan"), 2],
        "int": [1, 2, 3],
        "small": pl.Series([1, 2, 3], dtype=pl.UInt8),
        "text": list("abc"),
        "enum": pl.Series(list("aba"), dtype=pl.Enum(["b", "a"])),
        "categorical": pl.Series(list("abc"), dtype=pl.Categorical),
        "flag": [True, None, False],
    }
)
ARROW = pa.table(
    {
        "float": [1.0, 2, None],
        "int": pa.array([1, 2, 3], pa.int16()),
        "text": list("abc"),
        "dictionary": pa.array(list("aba")).dictionary_encode(),
        "flag": [True, None, False],
    }
)
TABLES = {
    "pandas": PANDAS,
    "integer names": PANDAS[["float", "str"]].set_axis([0, 7], axis=1),
    "mixed names": PANDAS[["float", "str"]].set_axis(pd.Index([0.5, "k"], name="of"), axis=1),
    "tuples as names": PANDAS[["float", "str"]].set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", 1)]), axis=1),
    "polars": POLARS,
    "pyarrow": ARROW,
    "floats": np.random.default_rng(0).normal(size=(5, 2)),
    "integers": np.arange(10).reshape(5, 2),
    "objects": np.array([["a", 1.5], ["b", None]] * 3, dtype=object),
    "text": np.array([["a", "b"], ["c", "d"]]),
}


def equal_tables(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and repr(a.tolist()) == repr(b.tolist())
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
        return True
    return a.schema == b.schema and a.equals(b)


@pytest.mark.parametrize("name", TABLES)
def test_schema_comes_back_the_same(name):
    table = TABLES[name]
    schema = FeatureSchema.learn(table, ["code"] if name == "pandas" else [0] if name == "integers" else [])
    again = schema_from_json(json.loads(json.dumps(schema_to_json(schema))))
    assert again == schema
    rows = schema.encode(table)
    np.testing.assert_array_equal(again.encode(table), rows)
    assert equal_tables(schema.decode(rows), again.decode(rows))


@pytest.mark.parametrize("name", TABLES)
def test_types_of_levels_dtypes_and_gaps_come_back(name):
    schema = FeatureSchema.learn(TABLES[name])
    again = schema_from_json(json.loads(json.dumps(schema_to_json(schema))))
    for ours, theirs in zip(schema.table_format.columns, again.table_format.columns, strict=True):
        assert type(ours.dtype) is type(theirs.dtype)
        assert type(ours.missing) is type(theirs.missing)
        assert [type(level) for level in ours.levels or ()] == [type(level) for level in theirs.levels or ()]


def test_levels_that_cannot_be_stored_are_refused_by_column():
    table = pd.DataFrame({"when": pd.Categorical([1j, 2j, 1j])})
    with pytest.raises(StorageError, match=r"column 'when' must be text, numbers, .* of type complex.*Rename them"):
        schema_to_json(FeatureSchema.learn(table))


@pytest.mark.parametrize("key", ["features", "backend", "columns", "header"])
def test_missing_part_is_a_storage_error(key):
    stored = schema_to_json(FeatureSchema.learn(PANDAS))
    del stored[key]
    with pytest.raises(StorageError, match=key):
        schema_from_json(stored)


@pytest.mark.parametrize(
    ("field", "value"), [("levels", [{"unknown": 1}]), ("dtype", "no dtype"), ("missing", "gone"), ("dtype", {})]
)
def test_damaged_column_is_a_storage_error(field, value):
    stored = schema_to_json(FeatureSchema.learn(PANDAS))
    stored["columns"][0][field] = value
    with pytest.raises(StorageError):
        schema_from_json(stored)
