"""Encoded rows -> native tables, column by column.

This is per library, because it happens for every block of sampled rows and must give the model exactly the dtypes and
categories that it was trained with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from condshap.tables.arrow import dictionary_array
from condshap.tables.column_formats import ColumnFormat
from condshap.tables.reading import Levels
from condshap.types import Floats, Indices, Rows


def write_pandas(rows: Rows, columns: tuple[ColumnFormat, ...], header: Any) -> pd.DataFrame:
    """Encoded rows (n, M) -> frame with the column index `header`; a plain float frame shares the memory of `rows`."""
    dtypes = {column.dtype for column in columns}
    dtype = next(iter(dtypes))
    plain = all(column.levels is None for column in columns)
    if len(dtypes) == 1 and plain and isinstance(dtype, np.dtype) and dtype.kind == "f":
        return pd.DataFrame(rows.astype(dtype, copy=False), columns=header, copy=False)
    data = {j: _pandas_column(rows[:, j], column) for j, column in enumerate(columns)}
    frame = pd.DataFrame(data, copy=False)
    frame.columns = header
    return frame


def _pandas_column(values: Floats, column: ColumnFormat) -> Any:
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        written = _numbers_as(values, column) if column.levels is None else _labels_as(values, column)
        return pd.Series(written, dtype=written.dtype, copy=False)  # or pandas would turn objects into text again
    if column.levels is None:
        if dtype.kind not in "iu" or _fits_integers(values, dtype):
            return pd.array(values, dtype=dtype)
        wider: Any = "double[pyarrow]" if isinstance(dtype, pd.ArrowDtype) else "Float64"
        return pd.array(values, dtype=wider)
    codes, _ = _codes(values)
    if isinstance(dtype, pd.CategoricalDtype):
        return _pandas_category(codes, column)
    return pd.array(list(column.levels), dtype=dtype).take(codes, allow_fill=True)


def _pandas_category(codes: Indices, column: ColumnFormat) -> pd.Categorical:
    """Category with all declared levels from codes (n,) of the column's own levels."""
    assert column.levels is not None
    declared = tuple(column.dtype.categories.tolist())
    wanted = _with_levels(declared, column.levels)
    fits = len(wanted) == len(declared)
    dtype = column.dtype if fits else pd.CategoricalDtype(list(wanted), ordered=column.dtype.ordered)
    return pd.Categorical.from_codes(_places(column.levels, wanted)[codes], dtype=dtype)


def write_polars(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
    """Encoded rows (n, M) -> Polars frame."""
    import polars as pl

    def one(values: Floats, column: ColumnFormat) -> pl.Series:
        if column.levels is None:
            keep = column.dtype.is_float() or _fits_integers(values, column.dtype)
            series = pl.Series(column.name, values, nan_to_null=column.missing is None)
            return series.cast(column.dtype) if keep else series
        codes, missing = _codes(values)
        index = pl.Series(np.where(missing, 0, codes), dtype=pl.UInt32).set(pl.Series(missing), None)
        wanted = _with_levels(column.declared, column.levels)
        dtype = pl.Enum(list(wanted)) if column.declared and wanted != column.declared else column.dtype
        return pl.Series(column.name, list(column.levels), dtype=dtype).gather(index)

    written = (one(np.ascontiguousarray(rows[:, j]), column) for j, column in enumerate(columns))
    return pl.DataFrame({series.name: series for series in written})  # a list would give a column named "" another name


def write_pyarrow(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
    """Encoded rows (n, M) -> PyArrow table."""
    import pyarrow as pa

    def one(values: Floats, column: ColumnFormat) -> pa.Array:
        if column.levels is None:
            keep = pa.types.is_floating(column.dtype) or _fits_integers(values, column.dtype)
            array = pa.array(values, type=pa.float64(), from_pandas=column.missing is None)
            return array.cast(column.dtype) if keep else array
        codes, missing = _codes(values)
        if pa.types.is_dictionary(column.dtype):
            wanted = _with_levels(column.declared, column.levels)
            return dictionary_array(_places(column.levels, wanted)[codes], wanted, column.dtype)
        plain = pa.string() if pa.types.is_string_view(column.dtype) else column.dtype  # views cannot be taken from
        return pa.array(column.levels, type=plain).take(pa.array(codes, mask=missing)).cast(column.dtype)

    arrays = [one(np.ascontiguousarray(rows[:, j]), column) for j, column in enumerate(columns)]
    return pa.table(arrays, names=[column.name for column in columns])


def write_numpy(rows: Rows, columns: tuple[ColumnFormat, ...]) -> np.ndarray[Any, Any]:
    """Encoded rows (n, M) -> array; one of plain floats shares the memory of `rows`."""
    dtype = columns[0].dtype
    if dtype.kind in "fiu" and all(column.levels is None for column in columns):
        return _numbers_as(rows, columns[0])
    written = [
        _numbers_as(rows[:, j], column) if column.levels is None else _labels_as(rows[:, j], column)
        for j, column in enumerate(columns)
    ]
    return np.column_stack(written) if dtype.kind != "O" else _stack_objects(written)


def _stack_objects(columns: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    out = np.empty((len(columns[0]), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _numbers_as(values: Floats, column: ColumnFormat) -> np.ndarray[Any, Any]:
    """Cast to a NumPy dtype, except what an integer column cannot hold (fractions, gaps): that stays float."""
    dtype = column.dtype
    if dtype.kind == "O":
        whole = column.is_integer and _fits_integers(values, np.int64)
        missing = np.isnan(values)
        objects = (np.where(missing, 0.0, values).astype(np.int64) if whole else values).astype(object)
        objects[missing] = column.missing
        return objects
    if dtype.kind in "iu" and (bool(np.isnan(values).any()) or not _fits_integers(values, dtype)):
        return values
    return values.astype(dtype, copy=False)


def _labels_as(values: Floats, column: ColumnFormat) -> np.ndarray[Any, Any]:
    """Labels in a NumPy dtype; with gaps, integers become float, booleans and fixed-width text objects."""
    assert column.levels is not None
    codes, missing = _codes(values)
    dtype = column.dtype
    if missing.any() and dtype.kind != "f":
        dtype = np.dtype(np.float64 if dtype.kind in "iu" else object)
    lookup = np.empty(len(column.levels) + 1, dtype=dtype)  # code -1 is the last one: missing
    for i, level in enumerate(column.levels):
        lookup[i] = level
    if dtype.kind in "fO":
        lookup[-1] = np.nan if dtype.kind == "f" else column.missing
    return lookup[codes]


def _codes(values: Floats) -> tuple[Indices, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Codes as integers, -1 for missing ones, and where they are missing."""
    missing = np.isnan(values)
    return np.where(missing, -1.0, values).astype(np.intp), missing


def _places(levels: Levels, declared: Levels) -> Indices:
    """Position of every level among the declared ones; one more at the end, -1, for the code -1 of missing values."""
    position = {level: i for i, level in enumerate(declared)}
    return np.array([*(position[level] for level in levels), -1], dtype=np.intp)


def _with_levels(declared: Levels | None, levels: Levels) -> Levels:
    """Declared levels, and behind them those that are not among them: a table of another type may declare others."""
    return tuple(dict.fromkeys([*(declared or ()), *levels]))


def _fits_integers(values: Floats, dtype: Any) -> bool:
    """Tell whether all values, missing ones aside, are whole numbers within the range of an integer dtype."""
    try:
        limits = np.iinfo(np.dtype(str(getattr(dtype, "numpy_dtype", dtype)).lower()))
    except (TypeError, ValueError):  # wider than NumPy's: any number will do
        limits = np.iinfo(np.int64)
    whole = np.array_equal(values, np.rint(values), equal_nan=True)
    with np.errstate(invalid="ignore"):
        return whole and not bool(((values < limits.min) | (values > limits.max)).any())
