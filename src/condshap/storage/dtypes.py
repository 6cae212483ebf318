"""Dtypes, labels and single values <-> JSON, for schemas and tables alike: they come back with their types.

What JSON has no word for is an object with one key, the name of its type.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import StorageError

MISSING = {"None": None, "nan": np.nan, "<NA>": pd.NA, "NaT": pd.NaT}
"""What may stand for a missing value, by its text."""


# --- dtypes -----------------------------------------------------------------------------------------------------------


def dtype_to_json(dtype: Any, backend: str, column: Any) -> Any:
    """A dtype of a NumPy, pandas, Polars or PyArrow column; a text is a NumPy dtype."""
    if isinstance(dtype, np.dtype):
        return dtype.str
    if backend == "polars":
        return _polars_to_json(dtype)
    if backend == "pyarrow":
        return _arrow_to_json(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        found = dtype.categories
        levels = [value_to_json(level, column) for level in found.tolist()]
        return {"category": levels, "of": dtype_to_json(found.dtype, backend, column), "ordered": bool(dtype.ordered)}
    if isinstance(dtype, pd.StringDtype):
        return {"string": dtype.storage, "missing": str(dtype.na_value)}
    if isinstance(dtype, pd.ArrowDtype):
        return {"arrow": _arrow_to_json(dtype.pyarrow_dtype)}
    return {"pandas": str(dtype)}


def dtype_from_json(stored: Any, backend: str) -> Any:
    """Inverse of `dtype_to_json`."""
    if isinstance(stored, str) and backend != "pyarrow":
        return np.dtype(stored)
    if backend == "polars":
        return _polars_from_json(stored)
    if backend == "pyarrow":
        return _arrow_from_json(stored)
    if "category" in stored:
        levels = [value_from_json(level) for level in stored["category"]]
        categories: Any = pd.Index(levels, dtype=dtype_from_json(stored["of"], backend), tupleize_cols=False)
        return pd.CategoricalDtype(categories, ordered=stored["ordered"])
    if "string" in stored:
        return _string_dtype(stored["string"], MISSING[stored["missing"]])
    if "arrow" in stored:
        return pd.ArrowDtype(_arrow_from_json(stored["arrow"]))
    return pd.api.types.pandas_dtype(stored["pandas"])


def _string_dtype(storage: Any, missing: Any) -> Any:
    if missing is pd.NA:
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=missing)
    except TypeError:  # before pandas 2.3 columns of text are objects
        return np.dtype(object)


def _polars_to_json(dtype: Any) -> dict[str, Any]:
    """Name of a type, the levels of an Enum, and what else belongs to it."""
    import polars as pl

    levels = dtype.categories.to_list() if dtype == pl.Enum else None
    about: dict[str, Any] = {"polars": str(dtype.base_type()), "levels": levels}
    parts = {"Decimal": ("precision", "scale"), "Datetime": ("time_unit", "time_zone"), "Duration": ("time_unit",)}
    if about["polars"] in parts and not isinstance(dtype, type):
        about["parts"] = [getattr(dtype, name) for name in parts[about["polars"]]]
    return about


def _polars_from_json(stored: dict[str, Any]) -> Any:
    import polars as pl

    if stored["levels"] is not None:
        return pl.Enum(stored["levels"])
    return getattr(pl, stored["polars"])(*stored.get("parts", ()))


def _arrow_to_json(dtype: Any) -> str:
    import pyarrow as pa

    return arrow_schema_to_json(pa.schema([("x", dtype)]))


def _arrow_from_json(stored: str) -> Any:
    return arrow_schema_from_json(stored).field(0).type


def arrow_schema_to_json(schema: Any) -> str:
    """Names, types and metadata of a PyArrow table."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def arrow_schema_from_json(stored: str) -> Any:
    """Inverse of `arrow_schema_to_json`."""
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))


# --- labels of columns and rows ---------------------------------------------------------------------------------------


def labels_to_json(labels: pd.Index[Any]) -> dict[str, Any]:
    """Labels of columns or rows, with their types and names."""
    if labels.nlevels > 1:
        return {"levels": [labels_to_json(labels.get_level_values(i)) for i in range(labels.nlevels)]}
    return {
        "labels": [value_to_json(label, label) for label in labels.tolist()],
        "dtype": dtype_to_json(labels.dtype, "pandas", "header"),
        "name": value_to_json(labels.name, "header"),
        "freq": getattr(labels, "freqstr", None),
    }


def labels_from_json(stored: dict[str, Any]) -> pd.Index[Any]:
    """Inverse of `labels_to_json`."""
    if "levels" in stored:
        return pd.MultiIndex.from_arrays([labels_from_json(level) for level in stored["levels"]])
    values, name = [value_from_json(label) for label in stored["labels"]], value_from_json(stored["name"])
    dtype: Any = dtype_from_json(stored["dtype"], "pandas")
    labels: pd.Index[Any] = pd.Index(values, dtype=dtype, name=name, tupleize_cols=False)
    return with_frequency(labels, stored["freq"])


def with_frequency(labels: pd.Index[Any], frequency: str | None) -> pd.Index[Any]:
    """Labels that are evenly spaced times know their frequency again; it is part of the type of periods."""
    kind: Any = type(labels)
    if frequency is None or kind not in {pd.DatetimeIndex, pd.TimedeltaIndex}:
        return labels
    again: pd.Index[Any] = kind(labels, freq=frequency, name=labels.name)
    return again


# --- single values ----------------------------------------------------------------------------------------------------


def value_to_json(value: Any, column: Any) -> Any:
    """One level or label as JSON can hold it, without losing its type."""
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if isinstance(value, tuple):
        return {"tuple": [value_to_json(part, column) for part in value]}
    if value is pd.NaT or value is pd.NA:
        return {"missing": str(value)}
    if isinstance(value, np.generic) and (
        value.dtype.kind == "U" or (value.dtype.kind in "biuf" and value.itemsize <= 8)
    ):
        return {"numpy": [value.dtype.str, value.item()]}
    if isinstance(value, pd.Interval):
        return {"interval": [value_to_json(end, column) for end in (value.left, value.right)] + [value.closed]}
    for kind, (type_, write, _) in _TYPES.items():
        if type(value) is type_:
            return {kind: write(value)}
    raise StorageError(
        f"names and levels of column {column!r} must be text, numbers, booleans, times or intervals to be saved, got "
        f"{value!r} of type {type(value).__name__}. Rename them, e.g. with .cat.rename_categories(str)."
    )


def value_from_json(stored: Any) -> Any:
    """Inverse of `value_to_json`."""
    if not isinstance(stored, dict):
        return stored
    ((kind, parts),) = stored.items()
    if kind == "tuple":
        return tuple(value_from_json(part) for part in parts)
    if kind == "missing":
        return MISSING[parts]
    if kind == "numpy":
        return np.dtype(parts[0]).type(parts[1])
    if kind == "interval":
        return pd.Interval(value_from_json(parts[0]), value_from_json(parts[1]), closed=parts[2])
    if kind in _TYPES:
        return _TYPES[kind][2](parts)
    raise StorageError(f"a stored value must be text, a number or of a known type, got {kind!r}. Save it again.")


_TYPES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "timestamp": (pd.Timestamp, lambda t: [t.isoformat(), t.unit], lambda t: pd.Timestamp(t[0]).as_unit(t[1])),
    "timedelta": (pd.Timedelta, lambda t: [int(t.asm8.view("i8")), t.unit], lambda t: pd.Timedelta(np.timedelta64(*t))),
    "period": (pd.Period, lambda t: [str(t), t.freqstr], lambda t: pd.Period(t[0], freq=t[1])),
    "date": (date, date.isoformat, date.fromisoformat),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "decimal": (Decimal, str, Decimal),
}
"""Name in JSON -> type, how it is written and how it is read."""
