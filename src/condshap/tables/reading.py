"""Native tables -> plain columns: through narwhals into pandas once, at the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from condshap.exceptions import SchemaError, listing
from condshap.tables.arrow import is_usual_type, tame_table
from condshap.types import Floats, Indices, Table

Levels: TypeAlias = tuple[Any, ...]

_NUMERIC_OBJECTS = {"integer", "floating", "mixed-integer-float"}
EXACT_INTEGERS = 2.0**53  # beyond this float64 cannot tell neighbouring integers apart


@dataclass(frozen=True, slots=True)
class Column:
    """One column as read.

    Attributes
    ----------
    numbers : (n,) with NaN for missing, None for a column of labels
    codes : (n,) positions in `levels`, -1 for missing, None for a column of numbers
    levels : different labels, in the order of the dtype where it has one, sorted otherwise

    A column without a single value has both, because it fits any kind.
    """

    name: str
    numbers: Floats | None
    codes: Indices | None = None
    levels: Levels = ()
    is_declared: bool = False


def to_pandas(X: Table) -> pd.DataFrame:
    """Turn any supported table into a pandas frame with unique column names."""
    if isinstance(X, np.ndarray):
        return _array_to_pandas(X)
    if isinstance(X, pd.DataFrame):
        _check_names([str(name) for name in X.columns])
        return X
    if isinstance(X, pd.Series):
        raise SchemaError(
            f"a table must have rows and columns, got a pandas Series with {len(X)} entries. Keep a single row a table with "
            "X.iloc[[i]], and a single column one with X[[name]]."
        )
    import narwhals as nw  # not needed for pandas and NumPy

    _check_names([str(name) for name in getattr(X, "column_names", [])])  # of PyArrow, which allows duplicates
    X = tame_table(X) if hasattr(X, "column_names") and hasattr(X, "combine_chunks") else X
    try:
        frame = nw.from_native(X, eager_only=True, allow_series=False)
    except TypeError as error:
        raise SchemaError(
            f"a table must be a pandas, Polars or PyArrow table or a 2-D NumPy array, got {type(X).__name__}. "
            "Convert it, e.g. with pandas.DataFrame(...); collect a lazy frame first."
        ) from error
    # the order of Polars' Categorical is alphabetical and its categories belong to the process, not to the column
    free = [
        name for name, dtype in frame.schema.items() if dtype == nw.Categorical and frame.implementation.is_polars()
    ]
    return _convert(frame.with_columns(nw.col(*free).cast(nw.String)) if free else frame)


def _convert(frame: Any) -> pd.DataFrame:
    """A narwhals frame as a pandas frame; a column that pandas has no type for is named."""
    import pyarrow as pa

    try:
        converted: pd.DataFrame = frame.to_pandas()
        return converted
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        for name in frame.columns if len(frame.columns) > 1 else ():
            _convert(frame.select(name))
        raise SchemaError(
            f"column {listing(frame.columns)} must have a type that pandas can read, got "
            f"{listing(map(str, frame.schema.values()))}: {error}. Cast it to numbers, text or a dictionary."
        ) from None


def plain_array(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of NumPy's own class: masked entries are missing, and a matrix has no rules of its own any more.

    >>> plain_array(np.ma.array([[1, 2]], mask=[[False, True]]))
    array([[ 1., nan]])
    """
    if not isinstance(X, np.ma.MaskedArray):
        return np.asarray(X)
    masked = np.ma.getmaskarray(X)
    if not masked.any():
        return np.asarray(X.data)
    out = X.data.astype(X.dtype if X.dtype.kind == "f" else np.float64 if X.dtype.kind in "iu" else object)
    out[masked] = None if out.dtype == object else np.nan
    return out


def _array_to_pandas(X: np.ndarray[Any, Any]) -> pd.DataFrame:
    X = plain_array(X)
    if X.dtype.names is not None:
        raise SchemaError(
            f"a NumPy table must hold plain numbers or labels, got records with fields {listing(X.dtype.names)}. Make a "
            "table of it, e.g. with pandas.DataFrame(array)."
        )
    if X.ndim != 2:
        raise SchemaError(f"a NumPy table must have 2 dimensions (rows, features), got shape {X.shape}. Reshape it.")
    check_unicode(X.ravel() if X.dtype.kind in "OU" else (), "levels of an array")  # which pandas would fail at
    frame = pd.DataFrame(X, columns=generated_names(X.shape[1]))
    return frame.infer_objects() if X.dtype == object else frame


def generated_names(n: int) -> list[str]:
    """Feature names for arrays, which have none of their own."""
    return [f"x{j}" for j in range(n)]


def _check_names(names: Sequence[str]) -> None:
    check_unicode(names, "column names")
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(set(names)) < len(names) else []
    if repeated:
        raise SchemaError(f"column names must be unique, got {listing(repeated)} more than once. Rename these columns.")


def check_unicode(texts: Iterable[Any], what: str) -> None:
    """Refuse text with half of a surrogate pair, which no file can hold."""
    broken = [text for text in texts if isinstance(text, str) and not _is_unicode(text)]
    if broken:
        raise SchemaError(
            f"{what} must be Unicode that can be written, got {listing(broken)} with lone surrogates. Decode the text "
            "again, e.g. with errors='replace'."
        )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_columns(frame: pd.DataFrame) -> list[Column]:
    """Read every column of a pandas frame as numbers or labels."""
    return [_read_column(str(name), frame.iloc[:, j]) for j, name in enumerate(frame.columns)]


def _read_column(name: str, series: pd.Series[Any]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = series.cat.codes.to_numpy().astype(np.intp)
        check_unicode(dtype.categories, f"levels of column '{name}'")
        return Column(name, None, codes, tuple(dtype.categories.tolist()), is_declared=True)
    if isinstance(dtype, pd.ArrowDtype) and not is_usual_type(dtype.pyarrow_dtype):
        raise _unfit_dtype(name, dtype)
    if pd.api.types.is_bool_dtype(dtype):
        return _read_booleans(name, series)
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return Column(name, _read_numbers(name, series))
    if isinstance(dtype, pd.StringDtype):
        return _read_text(name, series)
    if dtype.kind == "O" or pd.api.types.is_string_dtype(dtype):
        return _read_objects(name, series)
    raise _unfit_dtype(name, dtype)


def _unfit_dtype(name: str, dtype: Any) -> SchemaError:
    return SchemaError(
        f"column '{name}' must hold numbers or levels, got dtype {dtype}. "
        "Convert it: dates to a number such as days since a date, anything else to 'category'."
    )


def _read_numbers(name: str, series: pd.Series[Any]) -> Floats:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "f" and series.dtype.itemsize > 8:
        raise SchemaError(
            f"column '{name}' must hold numbers of at most 64 bits, got dtype {series.dtype}, whose last digits would be "
            "lost. Convert it with astype(float)."
        )
    numbers: Floats = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if series.dtype.kind in "iu":
        _check_exact(name, numbers)
    return numbers


def _check_exact(name: str, numbers: Floats) -> None:
    """Refuse integers that float64 cannot tell from their neighbours."""
    large = np.flatnonzero(np.abs(numbers) >= EXACT_INTEGERS)
    if large.size:
        raise SchemaError(
            f"column '{name}' must hold integers below 2**53, which float64 keeps exactly, got larger ones in rows "
            f"{listing(large.tolist())}. Convert it with astype(float), or drop it if it is an identifier.",
            rows=large.tolist(),
        )


def _read_booleans(name: str, series: pd.Series[Any]) -> Column:
    numbers = series.where(series.notna(), None).astype("boolean").to_numpy(dtype=np.float64, na_value=-1.0)
    codes = numbers.astype(np.intp)
    return Column(name, None, codes, (False, True), is_declared=True)


def _read_text(name: str, series: pd.Series[Any]) -> Column:
    codes, levels = pd.factorize(series, sort=True)
    check_unicode(levels, f"levels of column '{name}'")
    numbers = np.full(len(series), np.nan) if len(levels) == 0 else None
    return Column(name, numbers, codes.astype(np.intp), tuple(str(level) for level in levels))


def _read_objects(name: str, series: pd.Series[Any]) -> Column:
    found = pd.api.types.infer_dtype(series.dropna(), skipna=True)  # NaT is a gap like others, which infer_dtype denies
    if found in _NUMERIC_OBJECTS:
        return Column(name, _read_numeric_objects(name, series))
    if found == "boolean":
        return _read_booleans(name, series)
    if found in {"string", "empty"}:
        return _read_text(name, series)
    if isinstance(series.dtype, pd.SparseDtype):
        raise _unfit_dtype(name, series.dtype)
    first = _first_of_each_type(series)
    what = "values of one type" if len(first) > 1 else "numbers, text or booleans"
    raise SchemaError(
        f"column '{name}' must hold {what}, got {', '.join(first[:5])}. "
        "Convert it with astype(str) to use it as levels, or to a number."
    )


def _read_numeric_objects(name: str, series: pd.Series[Any]) -> Floats:
    try:
        numbers = np.asarray(series.where(series.notna(), np.nan).astype(np.float64), dtype=np.float64)
    except OverflowError:  # an integer of Python's beyond all floats
        numbers = np.array(
            [float("inf") if isinstance(one, int) and abs(one) > EXACT_INTEGERS else 0.0 for one in series]
        )
    is_whole = np.array([isinstance(one, (int, np.integer)) for one in series])
    _check_exact(name, np.where(is_whole, numbers, 0.0))
    return numbers


def _first_of_each_type(series: pd.Series[Any]) -> list[str]:
    first: dict[str, int] = {}
    for row, value in enumerate(series):
        if not pd.api.types.is_scalar(value) or not pd.isna(value):
            first.setdefault(type(value).__name__, row)
    return [f"{name} (row {row})" for name, row in first.items()]


def take_rows(X: Table, rows: Indices) -> Table:
    """Rows of a native table at the given positions."""
    if isinstance(X, np.ndarray):
        return plain_array(X)[rows]
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()


def snapshot(X: Table) -> Table:
    """A native table that later changes of the original do not reach; Polars and PyArrow tables never change."""
    if isinstance(X, np.ndarray):
        return plain_array(X).copy()
    return X.copy() if isinstance(X, pd.DataFrame) else X
