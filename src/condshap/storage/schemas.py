"""Feature schema <-> JSON: what a saved network or explainer needs to read tables, and to give them back as they were.

Levels, column labels and dtypes keep their types. What JSON has no word for is an object with one key, the name of
its type.
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
from condshap.schema import Feature, FeatureSchema, Kind
from condshap.tables.formats import ColumnFormat, TableFormat
from condshap.tables.reading import Levels

_MISSING = {"None": None, "nan": np.nan, "<NA>": pd.NA, "NaT": pd.NaT}


def schema_to_json(schema: FeatureSchema) -> dict[str, Any]:
    """Take a schema apart into what `json.dumps` accepts.

    >>> schema = FeatureSchema.learn(pd.DataFrame({"n": [1, 2, 3], "c": ["u", "v", "u"]}))
    >>> schema_from_json(schema_to_json(schema)) == schema
    True
    """
    table = schema.table_format
    return {
        "features": [_feature_to_json(feature) for feature in schema.features],
        "backend": table.backend,
        "columns": [_column_to_json(column, table.backend) for column in table.columns],
        "header": None if table.header is None else header_to_json(table.header),
    }


def schema_from_json(stored: dict[str, Any]) -> FeatureSchema:
    """Put a schema together again from what `schema_to_json` returned."""
    try:
        backend, header = stored["backend"], stored["header"]
        features = tuple(_feature_from_json(feature) for feature in stored["features"])
        columns = tuple(_column_from_json(column, backend) for column in stored["columns"])
        table = TableFormat(backend, columns, None if header is None else header_from_json(header))
    except StorageError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise StorageError(
            f"a stored schema must be complete, but part of it is missing or damaged: {error!r}. Save it again."
        ) from error
    return FeatureSchema(features, table)


def _feature_to_json(feature: Feature) -> dict[str, Any]:
    return {
        "name": feature.name,
        "kind": feature.kind.value,
        "levels": _levels_to_json(feature.levels, feature.name),
        "support": None if feature.support is None else [float(bound) for bound in feature.support],
        "is_integer": feature.is_integer,
    }


def _feature_from_json(stored: dict[str, Any]) -> Feature:
    support = stored["support"]
    return Feature(
        name=stored["name"],
        kind=Kind(stored["kind"]),
        levels=_levels_from_json(stored["levels"]),
        support=None if support is None else (float(support[0]), float(support[1])),
        is_integer=bool(stored["is_integer"]),
    )


def _column_to_json(column: ColumnFormat, backend: str) -> dict[str, Any]:
    return {
        "name": value_to_json(column.name, column.name),
        "levels": _levels_to_json(column.levels, column.name),
        "dtype": dtype_to_json(column.dtype, backend, column.name),
        "missing": str(column.missing),
        "is_integer": column.is_integer,
        "declared": _levels_to_json(column.declared, column.name),
    }


def _column_from_json(stored: dict[str, Any], backend: str) -> ColumnFormat:
    return ColumnFormat(
        name=value_from_json(stored["name"]),
        levels=_levels_from_json(stored["levels"]),
        dtype=dtype_from_json(stored["dtype"], backend),
        missing=_MISSING[stored["missing"]],
        is_integer=bool(stored["is_integer"]),
        declared=_levels_from_json(stored["declared"]),
    )


def header_to_json(header: pd.Index[Any]) -> dict[str, Any]:
    """Labels of columns or rows, with their types and names."""
    if header.nlevels > 1:
        return {"levels": [header_to_json(header.get_level_values(i)) for i in range(header.nlevels)]}
    return {
        "labels": [value_to_json(label, label) for label in header.tolist()],
        "dtype": dtype_to_json(header.dtype, "pandas", "header"),
        "name": value_to_json(header.name, "header"),
        "freq": getattr(header, "freqstr", None),
    }


def header_from_json(stored: dict[str, Any]) -> pd.Index[Any]:
    """Inverse of `header_to_json`."""
    if "levels" in stored:
        return pd.MultiIndex.from_arrays([header_from_json(level) for level in stored["levels"]])
    labels, name = [value_from_json(label) for label in stored["labels"]], value_from_json(stored["name"])
    dtype: Any = dtype_from_json(stored["dtype"], "pandas")
    header: pd.Index[Any] = pd.Index(labels, dtype=dtype, name=name, tupleize_cols=False)
    return with_frequency(header, stored["freq"])


def with_frequency(labels: pd.Index[Any], frequency: str | None) -> pd.Index[Any]:
    """Labels that are evenly spaced times know their frequency again; it is part of the type of periods."""
    kind: Any = type(labels)
    if frequency is None or kind not in {pd.DatetimeIndex, pd.TimedeltaIndex}:
        return labels
    again: pd.Index[Any] = kind(labels, freq=frequency, name=labels.name)
    return again


# --- single values ----------------------------------------------------------------------------------------------------


def _levels_to_json(levels: Levels | None, column: Any) -> list[Any] | None:
    return None if levels is None else [value_to_json(level, column) for level in levels]


def _levels_from_json(stored: list[Any] | None) -> Levels | None:
    return None if stored is None else tuple(value_from_json(level) for level in stored)


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
        return _MISSING[parts]
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
        return _string_dtype(stored["string"], _MISSING[stored["missing"]])
    if "arrow" in stored:
        return pd.ArrowDtype(_arrow_from_json(stored["arrow"]))
    return pd.api.types.pandas_dtype(stored["pandas"])


def _string_dtype(storage: Any, missing: Any) -> Any:
    if missing is pd.NA:
        return pd.StringDtype(storage)
    return pd.StringDtype(storage, na_value=missing)


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

    return base64.b64encode(pa.schema([("x", dtype)]).serialize().to_pybytes()).decode()


def _arrow_from_json(stored: str) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))).field(0).type
