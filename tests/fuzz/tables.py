"""Tables of all dtypes of pandas, Polars, PyArrow and NumPy, rows to explain that may not fit, and a model of any table."""

from __future__ import annotations

import warnings
import zlib
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

SIZES = [40, 60, 40, 20, 40, 7, 3, 2, 1]  # hypothesis likes what comes first

NUMBERS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "whole": lambda rng, n: rng.integers(-3, 4, n),
    "counts": lambda rng, n: rng.poisson(2.0, n),
    "two": lambda rng, n: rng.integers(0, 2, n),
    "skewed": lambda rng, n: np.exp(3 * rng.normal(size=n)),
    "tied": lambda rng, n: np.round(rng.normal(size=n), 1),
    "constant": lambda rng, n: np.full(n, 1.5),
    "nearly constant": lambda rng, n: np.where(np.arange(n) == n - 1, 1 + 1e-15, 1.0),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "tiny": lambda rng, n: rng.integers(0, 9, n) * 5e-324,
    "far": lambda rng, n: 1e9 + rng.normal(size=n),
    "steps": lambda rng, n: np.arange(n, dtype=float),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, 1.0),
    "large": lambda rng, n: 2**53 + rng.integers(0, 9, n),
    "one outlier": lambda rng, n: np.where(np.arange(n) == 0, 1e40, rng.normal(size=n)),
}
LABELS = {
    "words": ["u", "v", "w"],
    "odd words": ["", " ", "ü\u2028", "NA", "nan", "None", "1", "[b]", "\x00"],
    "many words": [f"w{i}" for i in range(40)],
    "halves of pairs": ["u", "\ud800"],
    "truths": [True, False],
    "mixed": [1, "1", 1.0, True],
    "numbers as objects": [1, 2.5, 3],
    "huge": [2**70, 1, -(2**80)],
    "decimals": [Decimal("1.10"), Decimal("-3.25")],
    "moments": [datetime(2020, 1, 1), datetime(1999, 12, 31, 23, 59)],
    "dates": [date(2020, 1, 1), date(2021, 1, 1)],
    "clocks": [time(1, 2, 3), time(0)],
    "lapses": [timedelta(days=1), timedelta(seconds=-3)],
    "bytes": [b"a", b"\xff"],
    "tuples": [(1, "u"), (2, None)],
    "lists": [[1], [2, 3]],
    "complex": [1j, 2 + 1j],
    "nothing": [None],
    "objects": [object()],
}
GAPS = {
    "pandas": [None, float("nan"), pd.NA, pd.NaT],
    "numpy": [None, float("nan")],
    "polars": [None],
    "pyarrow": [None],
}
USUAL = {
    "pandas": ["float64", "int64", "category", "str", "bool", "object"],
    "numpy": ["float64", "int64", "object", "float32"],
    "polars": [pl.Float64, pl.Int64, pl.String, pl.Boolean, pl.Categorical],
    "pyarrow": [pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.dictionary(pa.int8(), pa.string())],
}
ODD = {
    "pandas": ["int8", "uint64", "float16", "float32", "Int8", "UInt64", "Float32", "Float64", "boolean", "string",
               "longdouble", "complex128", "datetime64[ns]", "timedelta64[ms]", "period[D]", "Sparse[float64]",
               "Sparse[int64]", "datetime64[us, Europe/Oslo]",
               *(pd.ArrowDtype(t) for t in (pa.int8(), pa.float16(), pa.float64(), pa.bool_(), pa.string(),
                                            pa.large_string(), pa.decimal128(10, 2), pa.date32(), pa.timestamp("s"),
                                            pa.dictionary(pa.int8(), pa.string()), pa.null(), pa.binary()))],
    "numpy": ["int8", "uint64", "float16", "longdouble", "complex128", "bool", "U3", "S3", "datetime64[D]", "V4"],
    "polars": [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Decimal(10, 2), pl.Enum(["u", "v", "w", "x"]), pl.Date,
               pl.Time, pl.Datetime("ms"), pl.Duration("us"), pl.Binary, pl.Null, pl.List(pl.Int8),
               pl.Struct({"a": pl.Int8}), pl.Object],
    "pyarrow": [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.large_string(), pa.string_view(),
                pa.decimal128(10, 2), pa.date32(), pa.timestamp("ns", "UTC"), pa.duration("ms"), pa.time32("s"),
                pa.binary(), pa.dictionary(pa.uint16(), pa.float32(), ordered=True), pa.null(), pa.list_(pa.int8())],
}  # fmt: skip
NAMES = ["", " ", "0", "a\nb", "output", "base_value", "prediction", "[b]", "x" * 300, "ü", "x1"]
ODD_NAMES = [0, 1, 0.5, None, float("nan"), ("a", 1), date(2020, 1, 1), True, b"b", "\udc00", "a"]


def made(make: Any) -> Any:
    """What a library makes of values; None where it refuses them itself, which is not our business."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return make()
        except Exception:
            return None


@st.composite
def values(draw, library: str, n: int, *, odd: bool) -> list[Any]:
    """A column of n values as Python has them, with some gaps perhaps."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    if draw(st.integers(0, 3)):
        usual = ["normal", "whole", "tied", "skewed"]
        numbers = NUMBERS[draw(st.sampled_from(sorted(NUMBERS) if odd else usual))](rng, n)
        with np.errstate(over="ignore"):
            found = (numbers * 10.0 ** draw(st.sampled_from([-300, -30, 12, 60, 69, 90]))).tolist() if odd and not draw(
                st.integers(0, 5)
            ) else numbers.tolist()  # fmt: skip
    else:
        levels = LABELS[draw(st.sampled_from(sorted(LABELS) if odd else ["words", "truths"]))]
        found = [levels[i] for i in rng.integers(0, len(levels), n)]
    if draw(st.integers(0, 6)) == 6:
        gap, share = draw(st.sampled_from(GAPS[library])), draw(st.sampled_from([0.05, 0.5, 1.0]))
        found = [gap if rng.random() < share else value for value in found]
    return found


@st.composite
def tables(draw, libraries=("pandas", "polars", "pyarrow", "numpy")) -> Any:
    """A table of one to five columns."""
    library, n = draw(st.sampled_from(libraries)), draw(st.sampled_from(SIZES))
    oddities = [draw(st.integers(0, 6)) == 6 for _ in range(draw(st.integers(1, 5)))]
    columns = [draw(values(library, n, odd=odd)) for odd in oddities]
    if len(columns) > 1 and not draw(st.integers(0, 5)):
        columns[1] = columns[0]  # one column twice
    dtypes = [draw(st.sampled_from([None, *USUAL[library], *(ODD[library] if odd else ())])) for odd in oddities]
    names: list[Any] = list("abcde")[: len(columns)]
    if oddities[0] and not draw(st.integers(0, 2)):
        names[0] = draw(st.sampled_from(NAMES + ODD_NAMES if library == "pandas" else NAMES))
    return BUILD[library](columns, dtypes, names, draw)


def _pandas(columns, dtypes, names, draw):
    made_of = [_series(column, dtype) for column, dtype in zip(columns, dtypes, strict=True)]
    frame = pd.concat(made_of, axis=1)
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    if not draw(st.integers(0, 3)):
        frame.index = draw(st.sampled_from([pd.Index([7] * len(frame)), pd.date_range("2020", periods=len(frame))]))
    return frame


def _series(column, dtype):
    found = made(lambda: pd.Series(column, dtype=dtype))
    found = made(lambda: pd.Series(column)) if found is None else found
    return pd.Series(column, dtype=object) if found is None else found


def _polars(columns, dtypes, names, draw):
    def series(column, dtype):
        found = made(lambda: pl.Series(column, dtype=dtype))
        found = made(lambda: pl.Series(column)) if found is None else found
        return pl.Series(column, dtype=pl.Object) if found is None else found

    found = pl.DataFrame({f"c{i}": series(*pair) for i, pair in enumerate(zip(columns, dtypes, strict=True))})
    return found.rename({f"c{i}": name for i, name in enumerate(names)})


def _arrow(columns, dtypes, names, draw):
    def array(column, dtype):
        found = made(lambda: pa.array(column, dtype))
        found = made(lambda: pa.array(column)) if found is None else found
        return pa.nulls(len(column)) if found is None else found

    arrays = [array(*pair) for pair in zip(columns, dtypes, strict=True)]
    table = pa.table(arrays, names=names)
    is_cut = not draw(st.integers(0, 3))
    return pa.concat_tables([table.slice(0, 1), table.slice(1)]) if is_cut else table


def _numpy(columns, dtypes, names, draw):
    def stacked(dtype):
        out = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            for i, value in enumerate(column):
                out[i, j] = value
        return out.astype(dtype)

    with np.errstate(all="ignore"):
        found = made(lambda: stacked(dtypes[0] or "float64"))
    found = stacked(object) if found is None else found
    way = 9 - draw(st.integers(0, 9))
    if way == 0:
        return np.ma.array(found, mask=np.arange(found.size).reshape(found.shape) % 7 == 0)
    return np.asfortranarray(found) if way == 1 else found[:, :, None] if way == 2 else found


BUILD = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow, "numpy": _numpy}


@st.composite
def rows_of(draw, table: Any) -> Any:
    """Rows to explain: some of the training rows, perhaps in another order, type or size, or with columns missing."""
    some = head(table, draw(st.sampled_from([1, 2, 4, 4, 4])))
    way = 15 - draw(st.integers(0, 15))
    if way == 0:
        return head(table, 0)
    if way == 1:
        return made(lambda: _as_pandas(some)) if not isinstance(some, np.ndarray) else some
    if way == 2:
        return made(lambda: pl.from_pandas(_as_pandas(some)))
    if way == 3 and not isinstance(some, np.ndarray):
        return made(lambda: _as_pandas(some).iloc[:, ::-1])
    if way == 4:
        return made(lambda: _as_pandas(some).iloc[:, 1:])
    if way == 5:
        return made(lambda: _as_pandas(some).assign(further=1.0))
    if way == 6:
        return made(lambda: _as_pandas(some).map(_far))
    if way == 7:
        return draw(tables())
    return draw(st.sampled_from([None, 3, "abc", [[1.0]], {"a": [1]}, object()])) if way == 8 else some


def _far(value: Any) -> Any:
    return value * 1e8 if isinstance(value, float) else value


def head(table: Any, n: int) -> Any:
    return table.slice(0, n) if isinstance(table, pa.Table) else table[:n]


def _as_pandas(table: Any) -> pd.DataFrame:
    if isinstance(table, np.ndarray):
        return pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])
    return table.copy() if isinstance(table, pd.DataFrame) else table.to_pandas()


def any_model(table: Any) -> np.ndarray:
    """A model that reads every table by the names of its columns, gaps and text included, and gives bounded numbers (n,)."""
    columns = _columns(table)
    x = np.column_stack([[_number(cell) for cell in columns[name]] for name in sorted(columns)])
    x = np.tanh(x)
    return x[:, 0] + 0.5 * x[:, 0] * x[:, -1] + 0.1 * x.sum(axis=1)


def _columns(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, np.ndarray):
        return {f"x{j}": column for j, column in enumerate(table.T.tolist())}  # None where a mask hides
    if isinstance(table, pd.DataFrame):
        return {str(name): table.iloc[:, j].tolist() for j, name in enumerate(table.columns)}
    if isinstance(table, pl.DataFrame):
        return {column.name: column.to_list() for column in table}
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _number(cell: Any) -> float:
    if cell is None or cell is pd.NA or cell is pd.NaT or cell != cell:
        return 0.25
    if isinstance(cell, (bool, int, float, np.number, Decimal)):
        return float(cell)
    return zlib.crc32(str(cell).encode()) % 1000 / 1000
