"""Encoded rows -> native tables, of the type that the model was trained with.

Writing is per back-end, because it happens for every block of sampled rows and must give the model exactly the dtypes and
categories that it was trained with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import SchemaError
from condshap.tables.reading import Levels, generated_names, plain_array
from condshap.types import Floats, Indices, Rows, Table


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How one encoded column goes back.

    Attributes
    ----------
    name : as the table spells it
    levels : None for numbers
    dtype : of the native table
    missing : what stood for a missing value, where the dtype leaves a choice (objects, floats of Polars and PyArrow)
    is_integer : Python objects were integers
    declared : levels of a category, whether rows have them or not, None for other columns; a model may know them all
    """

    name: Any
    levels: Levels | None
    dtype: Any
    missing: Any = field(default=None, compare=False)
    is_integer: bool = False
    declared: Levels | None = None


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How encoded rows become a native table again, of the type that the model was trained with.

    `backend` is "pandas", "polars", "pyarrow" or "numpy"; for NumPy every column has the array's dtype. `header` is the
    column index of a pandas frame.
    """

    backend: str
    columns: tuple[ColumnFormat, ...]
    header: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, X: Table, levels: Sequence[Levels | None]) -> TableFormat:
        """Remember type, names and dtypes of `X`; `levels` holds the levels of each column, None for numbers."""
        if isinstance(X, np.ndarray):
            return cls("numpy", _array_formats(plain_array(X), levels))
        if isinstance(X, pd.DataFrame):
            columns = (_pandas_format(X.iloc[:, j], name, levels[j]) for j, name in enumerate(X.columns))
            return cls("pandas", tuple(columns), X.columns)
        import narwhals as nw

        backend = str(nw.from_native(X, eager_only=True).implementation)
        if backend not in {"polars", "pyarrow"}:
            raise SchemaError(
                f"a table must be pandas, Polars, PyArrow or NumPy, got {backend}. Convert it to one of these."
            )
        names = list(X.column_names if backend == "pyarrow" else X.columns)
        return cls(backend, tuple(_arrow_like_format(X[name], name, levels[j]) for j, name in enumerate(names)))

    @property
    def names(self) -> list[Any]:
        """Column names as the table spells them."""
        return [column.name for column in self.columns]

    def reordered(self, order: Sequence[int]) -> TableFormat:
        """Same format with columns taken from the given positions."""
        header = None if self.header is None else self.header.take(list(order))
        return replace(self, columns=tuple(self.columns[j] for j in order), header=header)

    def with_dtypes_of(self, other: TableFormat) -> TableFormat:
        """Same table with the dtypes of another one of the same type, except for floating-point numbers."""
        if self.backend != other.backend:
            return self
        pairs = zip(self.columns, other.columns, strict=True)
        return replace(self, columns=tuple(a if _is_float(b) else replace(b, name=a.name) for a, b in pairs))

    def as_array(self) -> TableFormat | None:
        """The same columns as one float array; None if some labels are not numbers."""
        if not all(column.levels is None or _are_numbers(column.levels) for column in self.columns):
            return None
        columns = (ColumnFormat(column.name, column.levels, np.dtype(np.float64)) for column in self.columns)
        return TableFormat("numpy", tuple(columns))

    def as_pandas(self, names: Sequence[Any]) -> TableFormat:
        """The same columns as a pandas frame with other names; text becomes 'category', which every model reads."""
        columns = (replace(_for_pandas(column), name=name) for column, name in zip(self.columns, names, strict=True))
        return TableFormat("pandas", tuple(columns), pd.Index(list(names)))

    def write(self, rows: Rows) -> Table:
        """Encoded rows (n, M) -> native table with n rows. Plain float tables share the memory of `rows`."""
        if self.backend == "pandas":
            return _write_pandas(rows, self)
        if self.backend == "polars":
            return _write_polars(rows, self.columns)
        return _write_pyarrow(rows, self.columns) if self.backend == "pyarrow" else _write_numpy(rows, self.columns)

    def describe(self, row: Floats) -> str:
        """One encoded row (M,) in words, at most five features, missing ones first."""
        shown = sorted(range(len(row)), key=lambda j: not np.isnan(row[j]))[:5]
        cells = (f"{self.columns[j].name}={_cell(row[j], self.columns[j].levels)}" for j in shown)
        rest = f", ... {len(row) - 5} more" if len(row) > 5 else ""
        return "{" + ", ".join(cells) + rest + "}"


def _cell(value: float, levels: Levels | None) -> str:
    if np.isnan(value):
        return "missing"
    return f"{value:.6g}" if levels is None else repr(levels[int(value)])


def _is_float(column: ColumnFormat) -> bool:
    return column.levels is None and any(word in str(column.dtype).lower() for word in ("float", "double"))


def _are_numbers(levels: Levels) -> bool:
    return all(isinstance(level, (bool, int, float, np.number, np.bool_)) for level in levels)


def _array_formats(X: np.ndarray[Any, Any], levels: Sequence[Levels | None]) -> tuple[ColumnFormat, ...]:
    names = generated_names(X.shape[1])
    if X.dtype != object:
        return tuple(ColumnFormat(name, lv, X.dtype) for name, lv in zip(names, levels, strict=True))
    objects = pd.DataFrame(X, dtype=object)
    return tuple(_pandas_format(objects.iloc[:, j], name, levels[j]) for j, name in enumerate(names))


def _pandas_format(series: pd.Series[Any], name: Any, levels: Levels | None) -> ColumnFormat:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return ColumnFormat(name, levels, series.dtype, declared=tuple(series.dtype.categories.tolist()))
    if series.dtype != object:
        return ColumnFormat(name, levels, series.dtype)
    gaps = series[series.isna()]
    missing = gaps.iloc[0] if len(gaps) else None
    is_integer = pd.api.types.infer_dtype(series.dropna(), skipna=True) == "integer"
    return ColumnFormat(name, levels, series.dtype, missing, is_integer)


def _arrow_like_format(values: Any, name: str, levels: Levels | None) -> ColumnFormat:
    """Format of a Polars or PyArrow column; both have null and NaN, and we give back what we saw."""
    dtype = getattr(values, "dtype", None) or values.type
    n_null = values.null_count() if callable(values.null_count) else values.null_count
    uses_nan = levels is None and n_null == 0 and bool(np.isnan(np.asarray(values, dtype=np.float64)).any())
    return ColumnFormat(name, levels, dtype, np.nan if uses_nan else None, declared=_declared_levels(values, dtype))


def _declared_levels(values: Any, dtype: Any) -> Levels | None:
    """Levels of a Polars Enum or a PyArrow dictionary, None for other columns."""
    if hasattr(dtype, "index_type"):
        levels = (level for chunk in values.chunks for level in chunk.dictionary.to_pylist())
        return tuple(level for level in dict.fromkeys(levels) if level is not None)
    is_enum = str(dtype).startswith("Enum")  # Polars' Categorical belongs to the process, not to the column
    return tuple(dtype.categories.to_list()) if is_enum else None


def _for_pandas(column: ColumnFormat) -> ColumnFormat:
    if column.levels is None:
        own = isinstance(column.dtype, np.dtype) and column.dtype != object
        return replace(column, dtype=column.dtype if own else np.dtype(np.float64))
    if not _are_numbers(column.levels):
        return replace(column, dtype=pd.CategoricalDtype(list(column.declared or column.levels)))
    return replace(column, dtype=np.array(column.levels).dtype)


def _places(levels: Levels, declared: Levels) -> Indices:
    """Position of every level among the declared ones; one more at the end, -1, for the code -1 of missing values."""
    position = {level: i for i, level in enumerate(declared)}
    return np.array([*(position[level] for level in levels), -1], dtype=np.intp)


def _with_levels(declared: Levels | None, levels: Levels) -> Levels:
    """Declared levels, and behind them those that are not among them: a table of another type may declare others."""
    return tuple(dict.fromkeys([*(declared or ()), *levels]))


def _codes(values: Floats) -> tuple[Indices, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Codes as integers, -1 for missing ones, and where they are missing."""
    missing = np.isnan(values)
    return np.where(missing, -1.0, values).astype(np.intp), missing


def _fits_integers(values: Floats, dtype: Any) -> bool:
    """Tell whether all values, missing ones aside, are whole numbers within the range of an integer dtype."""
    try:
        limits = np.iinfo(np.dtype(str(getattr(dtype, "numpy_dtype", dtype)).lower()))
    except (TypeError, ValueError):  # wider than NumPy's: any number will do
        limits = np.iinfo(np.int64)
    whole = np.array_equal(values, np.rint(values), equal_nan=True)
    with np.errstate(invalid="ignore"):
        return whole and not bool(((values < limits.min) | (values > limits.max)).any())


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


def _write_pandas(rows: Rows, table: TableFormat) -> pd.DataFrame:
    dtypes = {column.dtype for column in table.columns}
    dtype = next(iter(dtypes))
    plain = all(column.levels is None for column in table.columns)
    if len(dtypes) == 1 and plain and isinstance(dtype, np.dtype) and dtype.kind == "f":
        return pd.DataFrame(rows.astype(dtype, copy=False), columns=table.header, copy=False)
    data = {j: _pandas_column(rows[:, j], column) for j, column in enumerate(table.columns)}
    frame = pd.DataFrame(data, copy=False)
    frame.columns = table.header
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


def _write_polars(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
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


def _write_pyarrow(rows: Rows, columns: tuple[ColumnFormat, ...]) -> Any:
    import pyarrow as pa

    def one(values: Floats, column: ColumnFormat) -> pa.Array:
        if column.levels is None:
            keep = pa.types.is_floating(column.dtype) or _fits_integers(values, column.dtype)
            array = pa.array(values, type=pa.float64(), from_pandas=column.missing is None)
            return array.cast(column.dtype) if keep else array
        codes, missing = _codes(values)
        if pa.types.is_dictionary(column.dtype):
            wanted = _with_levels(column.declared, column.levels)
            levels = pa.array(wanted, type=column.dtype.value_type)
            index = pa.array(_places(column.levels, wanted)[codes], mask=missing).cast(column.dtype.index_type)
            return pa.DictionaryArray.from_arrays(index, levels, ordered=column.dtype.ordered)
        plain = pa.string() if pa.types.is_string_view(column.dtype) else column.dtype  # views cannot be taken from
        return pa.array(column.levels, type=plain).take(pa.array(codes, mask=missing)).cast(column.dtype)

    arrays = [one(np.ascontiguousarray(rows[:, j]), column) for j, column in enumerate(columns)]
    return pa.table(arrays, names=[column.name for column in columns])


def _write_numpy(rows: Rows, columns: tuple[ColumnFormat, ...]) -> np.ndarray[Any, Any]:
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
