"""Saving gives back what it took, or refuses: tables of all dtypes and labels that pandas, Polars and PyArrow know."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import condshap as cs
from condshap.exceptions import StorageError

N = 3
BASE = cs.explain(lambda A: A.sum(axis=1), np.eye(60, 2), np.eye(N, 2), approach="independence", n_samples=2)

MOMENTS = [datetime(2020, 1, 1), datetime(1999, 12, 31, 23, 59, 59, 123456), datetime(2030, 6, 5)]
VALUES = {
    "int": [1, 0, -5],
    "small": [1, 0, 7],
    "float": [0.5, float("nan"), float("-inf")],
    "bool": [True, False, True],
    "text": ["u", "", "ü\x00\u2028"],
    "decimal": [Decimal("1.10"), Decimal("-3.25"), Decimal("0.00")],
    "time": MOMENTS,
    "date": [moment.date() for moment in MOMENTS],
    "clock": [time(1, 2, 3), time(0), time(23, 59, 59)],
    "lapse": [timedelta(days=1), timedelta(seconds=-3), timedelta(microseconds=7)],
    "bytes": [b"a", b"", b"\xff"],
    "mixed": [1, "u", 2.5],
    "numpy": [np.float32(0.5), np.int8(3), np.str_("u")],
    "tuple": [(1, "u"), (2, None), (0.5, date(2020, 1, 1))],
    "large": [2**62, -(2**62), 2**53 + 1],
    "huge": [2**70, 1, -(2**80)],
}
GAPS = [None, float("nan"), pd.NA, pd.NaT]

NUMPY = ["int8", "uint64", "float16", "float32", "float64", "bool", "longdouble", "complex128", "datetime64[s]",
         "datetime64[ns]", "timedelta64[ms]", "object"]  # fmt: skip
PANDAS = ["Int8", "UInt64", "Float32", "Float64", "boolean", "string", "str", "category", "period[D]", "interval[int64]",
          "Sparse[float64]", "Sparse[int64]", "datetime64[us, Europe/Oslo]"]  # fmt: skip
ARROW = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
         pa.string_view(), pa.decimal128(10, 2), pa.decimal256(50, 2), pa.date32(), pa.date64(),
         pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.duration("ms"), pa.time32("s"), pa.time64("us"), pa.binary(),
         pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint16(), pa.float32(), ordered=True),
         pa.dictionary(pa.int32(), pa.decimal128(10, 2)), pa.null(), pa.list_(pa.int8())]  # fmt: skip
ARROW += [pa.decimal32(5, 2)] if hasattr(pa, "decimal32") else []  # from PyArrow 19 on
POLARS = [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Decimal(10, 2), pl.Categorical,
          pl.Enum(["", "u", "ü\x00\u2028"]), pl.Date, pl.Time, pl.Datetime("ms"), pl.Datetime("ns", "UTC"),
          pl.Duration("us"), pl.Binary, pl.Null, pl.List(pl.Int8), pl.Struct({"a": pl.Int8})]  # fmt: skip


@st.composite
def plain_values(draw, gaps):
    """N values of one kind, some of them perhaps replaced by something missing."""
    values = list(draw(st.permutations(VALUES[draw(st.sampled_from(sorted(VALUES)))])))
    for i in draw(st.sets(st.integers(0, N - 1))):
        values[i] = draw(st.sampled_from(gaps))
    return values


def made(make):
    """What a library makes of values; None where it refuses them itself, which is not our business."""
    try:
        return make()
    except Exception:
        return None


def pandas_dtypes():
    known = (dtype for dtype in ARROW if dtype != pa.string_view())  # which pandas itself cannot even print
    return st.sampled_from([*NUMPY, *PANDAS, *(pd.ArrowDtype(dtype) for dtype in known)])


@st.composite
def labels(draw):
    """Labels of N rows or columns, of one or two levels, with a name of any kind."""
    levels = [
        made(lambda v=draw(plain_values(GAPS)), d=draw(pandas_dtypes()): pd.Index(v, dtype=d, tupleize_cols=False))
        for _ in range(draw(st.integers(1, 2)))
    ]
    levels = [pd.Index([3, 1, 2]) if level is None else level for level in levels]
    names = draw(st.lists(st.sampled_from([None, "who", 3, 0.5, ("a", 1), date(2020, 1, 1)]), min_size=2, max_size=2))
    both = made(lambda: pd.MultiIndex.from_arrays(levels, names=names)) if len(levels) == 2 else None
    return levels[0].rename(names[0]) if both is None else both


@st.composite
def pandas_tables(draw):
    columns = {}
    for j in range(N):
        values, dtype = draw(plain_values(GAPS)), draw(pandas_dtypes())
        series = made(lambda values=values, dtype=dtype: pd.Series(values, dtype=dtype))
        columns[j] = pd.Series([0.5, 1.5, 2.5]) if series is None else series
    frame = pd.DataFrame(columns)
    header, index = draw(labels()), draw(labels())
    if len({str(label) for label in header}) == N:  # names that read the same are refused long before
        frame.columns = header
    frame.index = index
    return frame


@st.composite
def polars_tables(draw):
    columns = {}
    for j in range(N):
        values, dtype = draw(plain_values([None])), draw(st.sampled_from(POLARS))
        series = made(lambda values=values, dtype=dtype: pl.Series(values, dtype=dtype))
        columns[f"c{j}"] = pl.Series([0.5, None, float("nan")]) if series is None else series
    return pl.DataFrame(columns)


@st.composite
def arrow_tables(draw):
    columns = {}
    for j in range(N):
        values, dtype = draw(plain_values([None])), draw(st.sampled_from(ARROW))
        array = made(lambda values=values, dtype=dtype: pa.array(values, dtype))
        columns[f"c{j}"] = pa.array([0.5, None, float("nan")]) if array is None else array
    return pa.table(columns)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_exact=True, check_freq=True)
        assert [repr(v) for v in a.index.tolist()] == [repr(v) for v in b.index.tolist()]
        assert [repr(v) for v in a.columns.tolist()] == [repr(v) for v in b.columns.tolist()]
    elif isinstance(a, pl.DataFrame):
        assert a.schema == b.schema
        assert a.equals(b)
    else:
        assert a.schema.equals(b.schema, check_metadata=True)
        assert repr(a.to_pylist()) == repr(b.to_pylist())


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(table=st.one_of(pandas_tables(), polars_tables(), arrow_tables()))
def test_saved_rows_come_back_as_they_are_or_are_refused(tmp_path_factory, table):
    path = tmp_path_factory.getbasetemp() / "rows.parquet"
    path.unlink(missing_ok=True)
    try:
        replace(BASE, data=table).save(path)
    except StorageError:
        assert not path.exists()
        return
    assert_same(cs.load_explanation(path).data, table)


FRAME = pd.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], columns=["a", "b"])
MONEY = pd.ArrowDtype(pa.decimal128(10, 2))
COME_BACK = {
    "NaT in the index": FRAME.set_axis(pd.DatetimeIndex(["2020-01-01", pd.NaT, "2020-01-03"])),
    "NaT among objects": FRAME.set_axis(pd.Index([pd.NaT, "u", None], dtype=object)),
    "mixed index": FRAME.set_axis(pd.Index(["u", 1, 2.5], dtype=object)),
    "dates of a frequency": FRAME.set_axis(pd.date_range("2020", periods=3, freq="2D")),
    "Arrow decimals": pd.DataFrame({"a": pd.array(VALUES["decimal"], dtype=MONEY)}),
    "Arrow decimals as index": FRAME.set_axis(pd.Index(VALUES["decimal"], dtype=MONEY)),
    "Polars decimals": pl.DataFrame({"a": pl.Series(VALUES["decimal"], dtype=pl.Decimal(12, 2))}),
    "floats as names": FRAME.set_axis([0.5, 1.5], axis=1),
    "dates as names": FRAME.set_axis([date(2020, 1, 1), date(2020, 1, 2)], axis=1),
    "times as names": FRAME.set_axis(pd.date_range("2020", periods=2, tz="Europe/Oslo"), axis=1),
    "tuples as names": FRAME.set_axis(pd.Index([("a", 1), ("a", 2)], tupleize_cols=False), axis=1),
    "categories as names": FRAME.set_axis(pd.CategoricalIndex(["a", "b"], ["b", "a", "c"], ordered=True), axis=1),
    "objects under labels": pd.DataFrame({"a": pd.Series(["u", None, "v"], dtype=object)}).set_axis(["r", "s", "t"]),
    "typed levels of names": FRAME.set_axis(
        pd.MultiIndex.from_arrays([pd.Index([1, 2], dtype="int8"), [0.5, None]]), axis=1
    ),
    "names of axes": FRAME.rename_axis(index=[("a", 1)], columns=pd.Timestamp("2020")),
    "text with gaps of two kinds": pd.DataFrame({"a": pd.Series(["u", None, float("nan")], dtype=object)}),
    "Arrow text": pd.DataFrame({"a": pd.array(["u", None, "v"], dtype=pd.ArrowDtype(pa.string()))}),
}


@pytest.mark.parametrize("name", COME_BACK)
def test_such_rows_come_back(tmp_path, name):
    replace(BASE, data=COME_BACK[name]).save(tmp_path / "e.parquet")
    assert_same(cs.load_explanation(tmp_path / "e.parquet").data, COME_BACK[name])


@pytest.mark.parametrize(
    "index",
    [pd.Index([1j, 2j, 3j]), pd.Index([b"u", b"v", b"w"], dtype=object), pd.Index([[1], [2], [3]], dtype=object)],
)
def test_what_cannot_come_back_is_refused_and_nothing_is_written(tmp_path, index):
    with pytest.raises(StorageError, match=r"must come back from a file|must be text, numbers"):
        replace(BASE, data=FRAME.set_axis(index)).save(tmp_path / "e.parquet")
    assert list(tmp_path.iterdir()) == []


def test_explained_rows_with_such_labels_come_back(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=pd.Index([0.5, 1.5], name="cut"))
    rows.index = pd.DatetimeIndex([pd.NaT, *pd.date_range("2020", periods=59)])
    explanation = cs.explain(lambda X: X[0.5].to_numpy(), rows, rows[:4], approach="gaussian")
    explanation.save(tmp_path / "e.parquet")
    assert_same(cs.load_explanation(tmp_path / "e.parquet").data, rows[:4])
