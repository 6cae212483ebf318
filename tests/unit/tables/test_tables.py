"""Native tables come back as they were: type, order, dtypes, categories, missing values."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from condshap.exceptions import SchemaError
from condshap.schema import FeatureSchema
from condshap.tables.reading import generated_names, read_columns, take_rows, to_pandas

NUMBERS = [3, 1, 2, 2]
TEXT = ["b", "a", "b", "c"]


def round_trip(X, **options):
    schema = FeatureSchema.learn(X, **options)
    return schema.decode(schema.encode(X))


PANDAS = {
    **{f"{dtype}": pd.Series(NUMBERS, dtype=dtype) for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint64")},
    **{f"{dtype}": pd.Series([0.5, 1.25, -2.0, 0.1], dtype=dtype) for dtype in ("float16", "float32", "float64")},
    "float64 with gaps": pd.Series([0.5, np.nan, 1.0, 2.0]),
    "float32 with gaps": pd.Series([0.5, np.nan, 1.0, 2.0], dtype="float32"),
    "bool": pd.Series([True, False, True, True]),
    "category of text": pd.Series(pd.Categorical(TEXT, categories=["c", "a", "b"])),
    "category of text with gaps": pd.Series(pd.Categorical(["b", None, "a", "c"], categories=["c", "a", "b"])),
    "category of integers": pd.Series(pd.Categorical(NUMBERS, categories=[3, 1, 2])),
    "category of integers with gaps": pd.Series(pd.Categorical([3, None, 1, 1], categories=[3, 1, 2])),
    "category of booleans": pd.Series(pd.Categorical([True, False, True, True], categories=[True, False])),
    "category of intervals": pd.Series(pd.cut([0.5, 1.5, 1.6, 2.5], [0, 1, 2, 3])),
    "ordered category": pd.Series(pd.Categorical(TEXT, categories=["c", "b", "a"], ordered=True)),
    "category with unused levels": pd.Series(pd.Categorical(TEXT, categories=["z", "c", "a", "y", "b"])),
    "str": pd.Series(TEXT, dtype="str"),
    "str with gaps": pd.Series(["b", None, "a", "c"], dtype="str"),
    "string": pd.Series(TEXT, dtype="string"),
    "string with gaps": pd.Series(["b", None, "a", "c"], dtype="string"),
    "string of arrow": pd.Series(["b", None, "a", "c"], dtype="string[pyarrow]"),
    "object text": pd.Series(TEXT, dtype=object),
    "object text with None": pd.Series(["b", None, "a", "c"], dtype=object),
    "object text with NaN": pd.Series(["b", np.nan, "a", "c"], dtype=object),
    "object booleans": pd.Series([True, False, None, True], dtype=object),
    "object integers": pd.Series(NUMBERS, dtype=object),
    "object integers with gaps": pd.Series([3, None, 1, 2], dtype=object),
    "object fractions": pd.Series([0.5, np.nan, 1.0, 2.5], dtype=object),
    **{
        f"{d}": pd.Series(NUMBERS, dtype=d) for d in ("Int8", "Int64", "UInt16", "Float32", "Float64", "int64[pyarrow]")
    },
    "Int64 with gaps": pd.Series([3, None, 1, 2], dtype="Int64"),
    "Float64 with gaps": pd.Series([0.5, None, 1, 2], dtype="Float64"),
    "int64[pyarrow] with gaps": pd.Series([3, None, 1, 2], dtype="int64[pyarrow]"),
    "double[pyarrow] with gaps": pd.Series([0.5, None, 1, 2], dtype="double[pyarrow]"),
    "bool[pyarrow] with gaps": pd.Series([True, None, False, True], dtype="bool[pyarrow]"),
    "boolean": pd.Series([True, False, True, True], dtype="boolean"),
    "boolean with gaps": pd.Series([True, None, False, True], dtype="boolean"),
    "sparse": pd.Series([0.0, 0.0, 1.5, 0.0], dtype=pd.SparseDtype(float)),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_column_comes_back_exactly(name):
    frame = pd.DataFrame({"before": [1.5, 2.5, 3.5, 4.5], "it": PANDAS[name], "after": ["u", "v", "u", "v"]})
    pd.testing.assert_frame_equal(round_trip(frame), frame)


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_frame_of_one_dtype_comes_back_exactly(name):
    frame = pd.DataFrame({"a": PANDAS[name], "b": PANDAS[name].iloc[::-1].reset_index(drop=True)})
    pd.testing.assert_frame_equal(round_trip(frame), frame)


@pytest.mark.parametrize(
    "header",
    [
        pd.Index([10, 20]),
        pd.RangeIndex(2),
        pd.Index(["a", "b"], dtype=object),
        pd.Index(["a", "b"], name="features"),
        pd.Index([1, "b"], dtype=object),
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")], names=["outer", "inner"]),
    ],
    ids=["integers", "range", "object", "named", "mixed", "two levels"],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_pandas_column_index_comes_back_exactly(header, mixed):
    frame = pd.DataFrame({"p": [1.0, 2.0, 3.0], "q": ["u", "v", "u"] if mixed else [4.0, 5.0, 6.0]})
    frame.columns = header
    back = round_trip(frame)
    pd.testing.assert_index_equal(back.columns, header)
    pd.testing.assert_frame_equal(back, frame)


POLARS = {
    "Float64": pl.Series([0.5, 1.25, None, 2.0]),
    "Float64 with NaN": pl.Series([0.5, 1.25, np.nan, 2.0]),
    "Float32": pl.Series([0.5, 1.25, -2.0, 2.0], dtype=pl.Float32),
    **{
        f"{dtype}": pl.Series([3, 1, 2, 2], dtype=dtype) for dtype in (pl.Int8, pl.Int32, pl.Int64, pl.UInt8, pl.UInt64)
    },
    "Int64 with gaps": pl.Series([3, None, 2, 2]),
    "Enum": pl.Series(TEXT, dtype=pl.Enum(["z", "c", "a", "b"])),
    "Enum with gaps": pl.Series(["b", None, "a", "c"], dtype=pl.Enum(["c", "a", "b"])),
    "Categorical": pl.Series(TEXT, dtype=pl.Categorical),
    "Categorical with gaps": pl.Series(["b", None, "a", "c"], dtype=pl.Categorical),
    "String": pl.Series(TEXT),
    "String with gaps": pl.Series(["b", None, "a", "c"]),
    "Boolean": pl.Series([True, False, True, True]),
    "Boolean with gaps": pl.Series([True, False, None, True]),
}


@pytest.mark.parametrize("name", POLARS)
def test_polars_column_comes_back_exactly(name):
    frame = pl.DataFrame({"before": [1.5, 2.5, 3.5, 4.5], "it": POLARS[name], "after": ["u", "v", "u", "v"]})
    back = round_trip(frame)
    assert back.schema == frame.schema
    assert back.equals(frame, null_equal=True)


ARROW = {
    "double": pa.array([0.5, 1.25, None, 2.0]),
    "double with NaN": pa.array([0.5, 1.25, np.nan, 2.0]),
    "float": pa.array([0.5, 1.25, -2.0, None], type=pa.float32()),
    **{f"{t}": pa.array([3, 1, 2, 2], type=t) for t in (pa.int8(), pa.int32(), pa.int64(), pa.uint8())},
    "int64 with gaps": pa.array([3, None, 2, 2]),
    "string": pa.array(TEXT),
    "large_string with gaps": pa.array(["b", None, "a", "c"], type=pa.large_string()),
    "bool": pa.array([True, False, True, True]),
    "bool with gaps": pa.array([True, False, None, True]),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([2, 1, 2, 0], pa.int8()), ["c", "a", "b", "unused"]),
    "ordered dictionary with gaps": pa.DictionaryArray.from_arrays(pa.array([1, None, 1, 0]), ["c", "a"], ordered=True),
    "dictionary of integers": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 0]), [30, 10]),
}


@pytest.mark.parametrize("name", ARROW)
def test_pyarrow_column_comes_back_exactly(name):
    table = pa.table({"before": [1.5, 2.5, 3.5, 4.5], "it": ARROW[name], "after": ["u", "v", "u", "v"]})
    back = round_trip(table)
    assert back.schema.equals(table.schema)
    # Arrow holds NaN to differ from itself
    assert str(back.to_pylist()) == str(table.to_pylist())
    assert name == "double with NaN" or back.equals(table)


def test_pyarrow_dictionary_in_chunks_comes_back_with_the_same_values():
    chunks = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()])
    table = pa.table({"it": chunks})
    assert round_trip(table).to_pylist() == table.to_pylist()


NUMPY = {
    **{dtype: np.array([[1, 2], [3, 4], [5, 7]], dtype=dtype) for dtype in ("f8", "f4", "i8", "i2", "u1")},
    "float with gaps": np.array([[1.5, np.nan], [3.0, 4.0], [np.nan, 7.0]]),
    "bool": np.array([[True, False], [False, False], [False, True]]),
    "fixed-width text": np.array([["a", "bb"], ["ccc", "d"], ["a", "d"]]),
    "objects": np.array([["a", 1, 0.5, True], [None, 2, 1.5, False], ["b", 3, 2.0, True]], dtype=object),
    "objects with NaN": np.array([["a", 1.5], [np.nan, 2.5], ["b", np.nan]], dtype=object),
    "object numbers": np.array([[1, 2.5], [2, 3.5]], dtype=object),
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_array_comes_back_exactly(name):
    array = NUMPY[name]
    back = round_trip(array)
    assert isinstance(back, np.ndarray)
    assert back.dtype == array.dtype
    assert repr(back.tolist()) == repr(array.tolist())


def test_declared_categorical_integers_come_back_as_integers():
    frame = pd.DataFrame({"code": [7, 3, 7], "x": [0.5, 1.5, 2.5]})
    pd.testing.assert_frame_equal(round_trip(frame, categorical=["code"]), frame)
    polars = pl.DataFrame({"code": [7, 3, 7], "x": [0.5, 1.5, 2.5]})
    assert round_trip(polars, categorical=["code"]).equals(polars)
    array = np.array([[7.0, 0.5], [3.0, 1.5]])
    np.testing.assert_array_equal(round_trip(array, categorical=[0]), array)


INTEGER_TABLES = {
    "pandas": (pd.DataFrame({"n": [1, 2, 3]}, dtype="int8"), lambda t: str(t["n"].dtype), "int8", "float64"),
    "nullable": (pd.DataFrame({"n": pd.array([1, 2, 3], "Int8")}), lambda t: str(t["n"].dtype), "Int8", "Float64"),
    "polars": (pl.DataFrame({"n": [1, 2, 3]}, schema={"n": pl.Int8}), lambda t: str(t["n"].dtype), "Int8", "Float64"),
    "pyarrow": (pa.table({"n": pa.array([1, 2, 3], pa.int8())}), lambda t: str(t["n"].type), "int8", "double"),
    "numpy": (np.array([[1], [2], [3]], dtype="int8"), lambda t: str(t.dtype), "int8", "float64"),
}


@pytest.mark.parametrize("name", INTEGER_TABLES)
def test_integers_stay_integers_until_something_is_drawn_that_they_cannot_hold(name):
    table, dtype_of, integer, wider = INTEGER_TABLES[name]
    schema = FeatureSchema.learn(table)
    whole, fraction, large = (schema.decode(np.array([[1.0], [x]])) for x in (3.0, 2.5, 300.0))
    assert dtype_of(whole) == integer
    assert dtype_of(fraction) == wider
    assert dtype_of(large) == wider  # 300 is no int8: it must not wrap around to 44
    np.testing.assert_array_equal(to_pandas(fraction).to_numpy(dtype=float).ravel(), [1.0, 2.5])
    np.testing.assert_array_equal(to_pandas(large).to_numpy(dtype=float).ravel(), [1.0, 300.0])


def test_gap_in_a_column_that_had_none_is_missing_and_not_a_level():
    frame = pd.DataFrame({"b": [True, False], "i": [1, 2], "s": ["u", "v"], "c": [5, 6]})
    schema = FeatureSchema.learn(frame, categorical=["c"])
    back = schema.decode(np.array([[np.nan] * 4, [1.0, 2.0, 1.0, 1.0]]))
    assert back.isna().sum(axis=1).tolist() == [4, 0]
    assert back.iloc[1].tolist() == [True, 2, "v", 6]
    for array, last in ((np.array([[True], [False]]), True), (np.array([["abc"], ["d"]]), "d")):
        written = FeatureSchema.learn(array).decode(np.array([[np.nan], [1.0]]))
        assert written[0, 0] is None  # neither False nor 'Non'
        assert written[1, 0] == last


def test_float_frame_is_written_without_a_copy():
    rows = np.random.default_rng(0).normal(size=(1_000_000, 10))
    schema = FeatureSchema.learn(pd.DataFrame(rows[:50], columns=list("abcdefghij")))
    start = time.process_time()
    frame = schema.decode(rows)
    assert time.process_time() - start < 0.05
    assert np.shares_memory(frame.to_numpy(), rows)


def test_mixed_frame_is_encoded_and_written_column_by_column():
    rng = np.random.default_rng(0)
    n = 200_000
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "n": rng.integers(0, 9, n),
            "c": pd.Categorical.from_codes(rng.integers(0, 3, n), ["u", "v", "w"]),
            "s": rng.choice(["p", "q"], n),
            "b": rng.random(n) < 0.5,
        }
    )
    schema = FeatureSchema.learn(frame)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        back = schema.decode(schema.encode(frame))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.08, f"{min(seconds):.2f} s for {n} rows: is there a loop over rows?"  # 0.02 s without
    pd.testing.assert_frame_equal(back, frame)


def test_categories_of_other_polars_columns_do_not_leak_into_the_levels():
    pl.Series(["from", "elsewhere"], dtype=pl.Categorical)
    frame = pl.DataFrame({"c": ["b", "a"]}, schema={"c": pl.Categorical})
    assert FeatureSchema.learn(frame).features[0].levels == ("a", "b")


def test_formats_pickle_and_still_write_the_same_table():
    frame = pd.DataFrame({1: [1.5, None], "c": pd.Categorical(["u", "v"])})
    schema = FeatureSchema.learn(frame)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    pd.testing.assert_frame_equal(again.decode(schema.encode(frame)), frame)


@pytest.mark.parametrize("table", [pl.LazyFrame({"a": [1]}), pl.Series([1.0]), [[1.0]], {"a": [1]}, None, "text"])
def test_what_is_no_table_is_refused_by_its_type(table):
    with pytest.raises(SchemaError, match=f"2-D NumPy array, got {type(table).__name__}. Convert it"):
        to_pandas(table)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2, 2)), np.array(1.0)])
def test_array_of_another_dimension_is_refused_by_its_shape(array):
    with pytest.raises(SchemaError, match=r"2 dimensions \(rows, features\), got shape"):
        to_pandas(array)


def test_duplicate_names_are_refused_in_every_kind_of_table():
    for table in (
        pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "a"]),
        pa.table([[1], [2], [3]], names=["a", "b", "a"]),
        pd.DataFrame(np.zeros((2, 2)), columns=[1, "1"]),
    ):
        with pytest.raises(SchemaError, match=r"column names must be unique, got \['[a1]'\] more than once"):
            to_pandas(table)


def test_generated_names_and_columns_of_arrays():
    assert generated_names(2) == ["x0", "x1"]
    columns = read_columns(to_pandas(np.array([["u", 1], ["v", 2]], dtype=object)))
    assert [column.name for column in columns] == ["x0", "x1"]
    assert columns[0].levels == ("u", "v")
    assert columns[1].numbers is not None


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: np.column_stack(list(d.values()))])
def test_rows_are_taken_by_position(make):
    table = make({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    taken = take_rows(table, np.array([2, 0]))
    assert type(taken) is type(table)
    np.testing.assert_array_equal(to_pandas(taken).to_numpy(), [[3.0, 6.0], [1.0, 4.0]])
    assert len(take_rows(table, np.array([], dtype=np.intp))) == 0


def test_bytes_and_complex_numbers_are_refused_with_advice():
    with pytest.raises(SchemaError, match=r"column 'x0' must hold numbers, text or booleans, got bytes \(row 0\)"):
        FeatureSchema.learn(np.array([[b"a"], [b"b"]]))
    with pytest.raises(SchemaError, match="column 'x0' must hold numbers or levels, got dtype complex128"):
        FeatureSchema.learn(np.array([[1 + 1j], [2.0]]))


def test_object_column_of_another_type_is_refused_by_that_type():
    from decimal import Decimal

    frame = pd.DataFrame({"d": pd.Series([Decimal(1), Decimal(2)], dtype=object)})
    with pytest.raises(SchemaError, match=r"column 'd' must hold numbers, text or booleans, got Decimal \(row 0\)"):
        FeatureSchema.learn(frame)
    with pytest.raises(SchemaError, match=r"column 'l' must hold .* list \(row 0\)"):
        FeatureSchema.learn(pd.DataFrame({"l": [[1], [2]]}))
