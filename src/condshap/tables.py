"""Native tables <-> plain columns: the only file that touches pandas, Polars or PyArrow.

Reading goes through narwhals into pandas once, at the gate. Writing is per back-end, because it happens for every block
of sampled rows and must give the model exactly the dtypes and categories that it was trained with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from condshap.exceptions import SchemaError, listing
from condshap.types import Floats, Indices, Rows, Table

_NUMERIC_OBJECTS = {"integer", "floating", "mixed-integer-float"}
_LABEL_OBJECTS = {"string", "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column as read: either numbers (n,) with NaN for missing, or labels (n,) with None for missing.

    `declared` holds the categories of the dtype, in their order, when the dtype has them.
    """

    name: str
    numbers: Floats | None
    labels: np.ndarray[Any, np.dtype[np.object_]] | None
    declared: tuple[Any, ...] | None


def to_pandas(X: Table) -> pd.DataFrame:
    """Turn any supported table into a pandas frame with string column names."""
    if isinstance(X, np.ndarray):
        return _array_to_pandas(X)
    try:
        frame = nw.from_native(X, eager_only=True, allow_series=False)
    except TypeError as error:
        raise SchemaError(
            f"a table must be a pandas, Polars or PyArrow table or a 2-D NumPy array, got {type(X).__name__}. "
            "Convert it, e.g. with pandas.DataFrame(...)."
        ) from error
    native = frame.to_native()
    table: pd.DataFrame = native if isinstance(native, pd.DataFrame) else frame.to_pandas()
    _check_names([str(name) for name in table.columns])
    return table


def _array_to_pandas(X: np.ndarray[Any, Any]) -> pd.DataFrame:
    if X.ndim != 2:
        raise SchemaError(f"a NumPy table must have 2 dimensions (rows, features), got shape {X.shape}. Reshape it.")
    frame = pd.DataFrame(X, columns=generated_names(X.shape[1]))
    return frame.infer_objects() if X.dtype == object else frame


def generated_names(n: int) -> list[str]:
    """Feature names for arrays, which have none of their own."""
    return [f"x{j}" for j in range(n)]


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    repeated = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if repeated:
        raise SchemaError(f"column names must be unique, got {listing(repeated)} more than once. Rename these columns.")


def read_columns(frame: pd.DataFrame) -> list[Column]:
    """Read every column of a pandas frame as numbers or labels."""
    return [_read_column(str(name), frame.iloc[:, j]) for j, name in enumerate(frame.columns)]


def _read_column(name: str, series: pd.Series[Any]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Column(name, None, _labels(series), tuple(dtype.categories.tolist()))
    if pd.api.types.is_bool_dtype(dtype):
        return Column(name, None, _labels(series), (False, True))
    if pd.api.types.is_complex_dtype(dtype):
        raise SchemaError(f"column '{name}' must hold real numbers or levels, got complex numbers. Split it.")
    if pd.api.types.is_numeric_dtype(dtype):
        return Column(name, series.to_numpy(dtype=np.float64, na_value=np.nan), None, None)
    if dtype.kind == "O" or pd.api.types.is_string_dtype(dtype):
        return _read_objects(name, series)
    raise SchemaError(
        f"column '{name}' must hold numbers or levels, got dtype {dtype}. "
        "Convert it: dates to a number, anything else to 'category'."
    )


def _read_objects(name: str, series: pd.Series[Any]) -> Column:
    found = pd.api.types.infer_dtype(series, skipna=True)
    if found in _NUMERIC_OBJECTS:
        return Column(name, pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan), None, None)
    if found in _LABEL_OBJECTS or found == "empty":
        declared = (False, True) if found == "boolean" else None
        return Column(name, None, _labels(series), declared)
    types = sorted({type(value).__name__ for value in series.dropna()})
    raise SchemaError(
        f"column '{name}' must hold values of one type, got {listing(types)}. "
        "Convert it with astype(str) or to a number."
    )


def _labels(series: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.object_]]:
    labels = series.astype(object).to_numpy(copy=True)
    labels[series.isna().to_numpy()] = None
    return labels


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How one encoded column goes back: its levels (None for numbers) and its native dtype."""

    name: Any
    levels: tuple[Any, ...] | None
    dtype: Any


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How encoded rows become a native table again, of the type that the model was trained with.

    `backend` is "pandas", "polars", "pyarrow" or "numpy"; for NumPy every column has the array's dtype.
    """

    backend: str
    columns: tuple[ColumnFormat, ...]

    @classmethod
    def of(cls, X: Table, levels: list[tuple[Any, ...] | None]) -> TableFormat:
        """Remember type, names and dtypes of `X`; `levels` holds the levels of each column, None for numbers."""
        if isinstance(X, np.ndarray):
            named = [(name, X.dtype) for name in generated_names(X.shape[1])]
            backend = "numpy"
        else:
            backend = str(nw.from_native(X, eager_only=True).implementation)
            named = _native_dtypes(X, backend)
        formats = (ColumnFormat(name, lv, dtype) for (name, dtype), lv in zip(named, levels, strict=True))
        return cls(backend, tuple(formats))

    def reordered(self, names: list[Any]) -> tuple[TableFormat, list[int]]:
        """Same format with columns in the order of `names`, and the positions that this order takes them from."""
        position = {column.name: j for j, column in enumerate(self.columns)}
        order = [position[name] for name in names]
        return TableFormat(self.backend, tuple(self.columns[j] for j in order)), order

    def write(self, rows: Rows) -> Table:
        """Encoded rows (n, M) -> native table with n rows."""
        return _WRITERS[self.backend](rows, self.columns)


def _native_dtypes(X: Table, backend: str) -> list[tuple[Any, Any]]:
    if backend == "pandas":
        return list(zip(X.columns, X.dtypes, strict=True))
    if backend == "polars":
        return list(X.schema.items())
    if backend == "pyarrow":
        return [(field.name, field.type) for field in X.schema]
    raise SchemaError(f"a table must be pandas, Polars, PyArrow or NumPy, got {backend}. Convert it to one of these.")


def _codes(values: Floats) -> tuple[Indices, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Codes as integers, with 0 in place of missing ones, and where they are missing."""
    missing = np.isnan(values)
    return np.where(missing, 0, values).astype(np.intp), missing


def _as_numpy_numbers(values: Floats, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Cast to the trained dtype, except fractions drawn for an integer column: these stay fractions."""
    if dtype.kind in "iu" and not np.array_equal(values, np.rint(values)):
        return values
    return values.astype(dtype, copy=False)


def _write_pandas(rows: Rows, columns: tuple[ColumnFormat, ...]) -> pd.DataFrame:
    names = pd.Index([column.name for column in columns])
    if all(column.dtype == np.float64 and column.levels is None for column in columns):
        return pd.DataFrame(rows, columns=names, copy=False)
    data = {j: _pandas_column(rows[:, j], column) for j, column in enumerate(columns)}
    frame = pd.DataFrame(data, copy=False)
    frame.columns = names
    return frame


def _pandas_column(values: Floats, column: ColumnFormat) -> Any:
    if column.levels is None:
        if isinstance(column.dtype, np.dtype):
            return values if column.dtype == object else _as_numpy_numbers(values, column.dtype)
        whole = np.array_equal(values, np.rint(values), equal_nan=True)
        return pd.array(values, dtype=column.dtype if whole or column.dtype.kind == "f" else "Float64")
    codes, missing = _codes(values)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(np.where(missing, -1, codes), dtype=column.dtype)
    labels = pd.array(np.array(column.levels, dtype=object), dtype=column.dtype).take(codes)
    if missing.any():
        labels = pd.array(labels, dtype=object) if column.dtype == np.bool_ else labels
        labels[missing] = None
    return labels


def _write_polars(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
    import polars as pl

    def one(values: Floats, column: ColumnFormat) -> pl.Series:
        if column.levels is None:
            series = pl.Series(column.name, values, nan_to_null=True)
            whole = np.array_equal(values, np.rint(values), equal_nan=True)
            return series.cast(column.dtype) if whole or column.dtype.is_float() else series
        codes, missing = _codes(values)
        index = pl.Series(codes, dtype=pl.UInt32).set(pl.Series(missing), None)
        return pl.Series(column.name, list(column.levels), dtype=column.dtype).gather(index)

    return pl.DataFrame([one(rows[:, j], column) for j, column in enumerate(columns)])


def _write_pyarrow(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
    import pyarrow as pa

    def one(values: Floats, column: ColumnFormat) -> pa.Array:
        if column.levels is None:
            whole = np.array_equal(values, np.rint(values), equal_nan=True)
            keep = whole or pa.types.is_floating(column.dtype)
            return pa.array(values, type=pa.float64(), from_pandas=True).cast(column.dtype if keep else pa.float64())
        codes, missing = _codes(values)
        if pa.types.is_dictionary(column.dtype):
            levels = pa.array(column.levels, type=column.dtype.value_type)
            index = pa.array(codes, mask=missing).cast(column.dtype.index_type)
            return pa.DictionaryArray.from_arrays(index, levels, ordered=column.dtype.ordered)
        return pa.array(column.levels, type=column.dtype).take(pa.array(codes, mask=missing))

    arrays = [one(rows[:, j], column) for j, column in enumerate(columns)]
    return pa.table(arrays, names=[column.name for column in columns])


def _write_numpy(rows: Rows, columns: tuple[ColumnFormat, ...]) -> np.ndarray[Any, Any]:
    if all(column.levels is None for column in columns):
        dtype = columns[0].dtype
        return rows if dtype.kind == "O" else _as_numpy_numbers(rows, dtype)
    out = np.empty(rows.shape, dtype=object)
    for j, column in enumerate(columns):
        if column.levels is None:
            out[:, j] = rows[:, j]
            continue
        codes, missing = _codes(rows[:, j])
        out[:, j] = np.array(column.levels, dtype=object)[codes]
        out[missing, j] = None
    dtype = columns[0].dtype
    return out if dtype.kind == "O" else out.astype(dtype)


_WRITERS = {"pandas": _write_pandas, "polars": _write_polars, "pyarrow": _write_pyarrow, "numpy": _write_numpy}


def take_rows(X: Table, rows: Indices) -> Table:
    """Rows of a native table at the given positions."""
    if isinstance(X, np.ndarray):
        return X[rows]
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()
