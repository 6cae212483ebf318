"""Native table <-> plain Arrow columns and JSON: what Parquet alone would lose of a table's dtypes.

Labels are stored as plain values, so that anything can read them; levels and dtypes are JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from condshap.exceptions import CondShapError, StorageError
from condshap.storage.dtypes import (
    arrow_schema_from_json,
    arrow_schema_to_json,
    dtype_from_json,
    dtype_to_json,
    labels_from_json,
    labels_to_json,
    value_from_json,
    value_to_json,
    with_frequency,
)
from condshap.tables.arrow import dictionary_array
from condshap.tables.backends import backend_of
from condshap.tables.differences import find_difference
from condshap.tables.reading import generated_names
from condshap.types import Table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Plain Arrow columns by name, and what is needed to make the native table of them again, fit for JSON."""

    columns: dict[str, Any]
    about: dict[str, Any]


def store_table(X: Table) -> StoredTable:
    """Take a native table apart."""
    store: dict[str, Callable[[Any], StoredTable]] = {
        "numpy": _store_numpy,
        "pandas": _store_pandas,
        "polars": _store_polars,
        "pyarrow": _store_pyarrow,
    }
    return store[backend_of(X)](X)


def restore_table(stored: StoredTable) -> Table:
    """Put a native table together again."""
    restore: dict[str, Callable[[StoredTable], Table]] = {
        "numpy": _restore_numpy,
        "pandas": _restore_pandas,
        "polars": _restore_polars,
        "pyarrow": _restore_pyarrow,
    }
    return restore[stored.about["backend"]](stored)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what goes wrong with rows that a file cannot hold into a StorageError; `what` they are is for messages."""
    try:
        yield
    except CondShapError:
        raise
    except Exception as error:  # Arrow and Polars fail in many ways
        raise _refusal(what, f"that failed with {type(error).__name__}: {error}") from error


def check_same(X: Table, again: Table, what: str) -> None:
    """Refuse to save a table that would come back as another one."""
    changed = find_difference(X, again)
    if changed is not None:
        raise _refusal(what, f"{changed} would not")


def _refusal(what: str, why: str) -> StorageError:
    return StorageError(
        f"{what} must come back from a file unchanged, but {why}. Convert the table, e.g. with astype, reset_index or "
        "rename, and start again from there."
    )


def pack_table(X: Table, what: str) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    """Native table -> bytes of an Arrow stream, shape (n,), and what JSON must hold; `what` it is is for messages."""
    with refusing(what):
        packed, about = _pack(X)
        check_same(X, unpack_table(packed, about), what)
    return packed, about


def _pack(X: Table) -> tuple[npt.NDArray[np.uint8], dict[str, Any]]:
    import pyarrow as pa

    stored = store_table(X)
    arrow, sink = pa.table(stored.columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8), stored.about


def unpack_table(packed: npt.NDArray[np.uint8], about: dict[str, Any]) -> Table:
    """Inverse of `pack_table`."""
    import pyarrow as pa

    arrow = pa.ipc.open_stream(packed.tobytes()).read_all()
    return restore_table(StoredTable({name: arrow.column(name) for name in arrow.column_names}, about))


def _store_numpy(X: np.ndarray[Any, Any]) -> StoredTable:
    import pyarrow as pa

    names, about = generated_names(X.shape[1]), {"backend": "numpy", "dtype": dtype_to_json(X.dtype, "numpy", "array")}
    if X.dtype == object:
        frame = _store_pandas(pd.DataFrame(X, columns=names, dtype=object))
        return StoredTable(frame.columns, {**frame.about, **about})
    plain = X.astype(np.float64) if X.dtype.kind == "f" else X
    return StoredTable({name: pa.array(plain[:, j].tolist()) for j, name in enumerate(names)}, about)


def _restore_numpy(stored: StoredTable) -> np.ndarray[Any, Any]:
    dtype = dtype_from_json(stored.about["dtype"], "numpy")
    if dtype.kind == "O":
        return _restore_pandas(stored).to_numpy(dtype=object)
    lists = [column.to_pylist() for column in stored.columns.values()]
    return np.ascontiguousarray(np.array(lists, dtype=dtype).T)


def _store_pandas(X: pd.DataFrame) -> StoredTable:
    names = [str(name) for name in X.columns]
    columns, abouts = {}, []
    for j, name in enumerate(names):
        columns[name], about = _store_series(X.iloc[:, j], name)
        abouts.append({"name": name, **about})
    index, index_about = _store_index(X.index)
    rest = len(max(names, key=len, default=""))
    labels = {f"index/{i}".ljust(rest + 1, "_"): column for i, column in enumerate(index)}  # longer than any name
    about = {"backend": "pandas", "columns": abouts, "header": labels_to_json(X.columns), "index": index_about}
    return StoredTable({**columns, **labels}, about)


def _restore_pandas(stored: StoredTable) -> pd.DataFrame:
    about = stored.about
    data = {j: _restore_series(stored.columns[one["name"]], one) for j, one in enumerate(about["columns"])}
    names = {one["name"] for one in about["columns"]}
    index = _restore_index([column for name, column in stored.columns.items() if name not in names], about["index"])
    frame = pd.DataFrame(data, index=pd.RangeIndex(len(index)))
    frame.index = index  # afterwards: columns that are series would be looked up by the labels
    frame.columns = labels_from_json(about["header"])
    return frame


def _store_series(series: pd.Series[Any], name: str) -> tuple[pa.Array, dict[str, Any]]:
    import pyarrow as pa

    about = {"dtype": dtype_to_json(series.dtype, "pandas", name)}
    if isinstance(series.dtype, pd.CategoricalDtype):
        levels = _plain_levels(series.dtype.categories.tolist(), name)
        codes = series.cat.codes.to_numpy()
        return pa.array(levels).take(pa.array(codes, mask=codes < 0)), about
    if series.dtype == object:
        return _store_objects(series, name, about)
    if isinstance(series.dtype, pd.SparseDtype):
        series = pd.Series(series.to_numpy())
    if hasattr(series.array, "__arrow_array__"):
        return pa.array(series.array), about  # which tells NaN from a missing value
    return pa.array(series, from_pandas=True), about


def _store_objects(series: pd.Series[Any], name: str, about: dict[str, Any]) -> tuple[pa.Array, dict[str, Any]]:
    """Python objects of one type as they are; any others as text for readers, and with their types as JSON."""
    import pyarrow as pa

    values = series.tolist()
    kinds = {type(value) for value in values}
    is_plain = kinds == {int} and all(abs(value) < 2**63 for value in values)
    if is_plain or kinds in ({str}, {float}, {bool}, set()):
        return pa.array(values), about
    texts = [None if _is_missing(value) else str(value) for value in values]
    return pa.array(texts, pa.string()), {**about, "values": [value_to_json(value, name) for value in values]}


def _is_missing(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _restore_series(column: Any, about: dict[str, Any]) -> Any:
    dtype = dtype_from_json(about["dtype"], "pandas")
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(_positions(column, dtype.categories.tolist()), dtype=dtype)
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        values = np.empty(len(column), dtype=object)
        values[:] = [value_from_json(one) for one in about["values"]] if "values" in about else column.to_pylist()
        return pd.Series(values, dtype=object)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(column.cast(dtype.pyarrow_dtype))
    if hasattr(dtype, "__from_arrow__"):
        return dtype.__from_arrow__(column)
    return pd.array(column.to_pandas().array, dtype=dtype)


def _store_index(index: pd.Index[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Row labels as columns, none for a plain range."""
    names = [value_to_json(name, "index") for name in index.names]
    if isinstance(index, pd.RangeIndex):
        return [], {"names": names, "range": [index.start, index.stop, index.step]}
    levels = [index.get_level_values(i) for i in range(index.nlevels)]
    stored = [_store_series(pd.Series(level.array, dtype=level.dtype), "index") for level in levels]
    about = {"names": names, "levels": [about for _, about in stored], "freq": getattr(index, "freqstr", None)}
    return [column for column, _ in stored], about


def _restore_index(columns: list[Any], about: dict[str, Any]) -> pd.Index[Any]:
    names = [value_from_json(name) for name in about["names"]]
    if "range" in about:
        start, stop, step = about["range"]
        return pd.RangeIndex(start, stop, step, name=names[0])
    levels = []
    for column, one in zip(columns, about["levels"], strict=True):
        restored = _restore_series(column, one)
        levels.append(pd.Index(restored, dtype=restored.dtype, tupleize_cols=False))
    if len(levels) > 1:
        return pd.MultiIndex.from_arrays(levels, names=names)
    return with_frequency(levels[0].rename(names[0]), about["freq"])


def _store_polars(X: Any) -> StoredTable:
    import polars as pl

    about = [{"name": name, "dtype": dtype_to_json(dtype, "polars", name)} for name, dtype in X.schema.items()]
    text = [name for name, dtype in X.schema.items() if dtype in (pl.Enum, pl.Categorical)]
    plain = X.with_columns(pl.col(text).cast(pl.String)).to_arrow()
    return StoredTable(
        {name: plain.column(name) for name in plain.column_names}, {"backend": "polars", "columns": about}
    )


def _restore_polars(stored: StoredTable) -> Any:
    import polars as pl
    import pyarrow as pa

    schema: Any = {about["name"]: dtype_from_json(about["dtype"], "polars") for about in stored.about["columns"]}
    return pl.DataFrame(pa.table(stored.columns)).cast(schema)


def _store_pyarrow(X: Any) -> StoredTable:
    import pyarrow as pa

    columns, levels = {}, []
    for name in X.column_names:
        column = X.column(name).unify_dictionaries().combine_chunks()
        is_labels = pa.types.is_dictionary(column.type)
        columns[name] = column.dictionary_decode() if is_labels else column
        levels.append(_plain_levels(column.dictionary.to_pylist(), name) if is_labels else None)
    about = {"backend": "pyarrow", "schema": arrow_schema_to_json(X.schema), "levels": levels}
    return StoredTable(columns, about)


def _restore_pyarrow(stored: StoredTable) -> Any:
    import pyarrow as pa

    schema = arrow_schema_from_json(stored.about["schema"])
    arrays = []
    for column, kind, levels in zip(stored.columns.values(), schema.types, stored.about["levels"], strict=True):
        if levels is None:
            arrays.append(column.cast(kind))
        else:
            arrays.append(dictionary_array(_positions(column, levels), levels, kind))
    return pa.table(arrays, schema=schema)


def _positions(column: Any, levels: list[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Position of every value among `levels`, -1 for missing ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(column, value_set=pa.array(levels, type=column.type)).fill_null(-1)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _plain_levels(levels: list[Any], name: str) -> list[Any]:
    kinds = {type(level) for level in levels}
    if not kinds <= {str} and not kinds <= {int, float} and not kinds <= {bool}:
        raise StorageError(
            f"levels of column '{name}' must be text, numbers or booleans to be saved, got "
            f"{sorted(kind.__name__ for kind in kinds)}. Rename them, e.g. with .cat.rename_categories(str)."
        )
    return levels
