"""Feature schema <-> JSON: what a saved network or explainer needs to read tables, and to give them back as they were.

Levels, column labels and dtypes keep their types. What JSON has no word for is an object with one key, the name of
its type.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import StorageError
from condshap.schema import Feature, FeatureSchema, Kind
from condshap.table_formats import ColumnFormat, TableFormat
from condshap.tables import Levels

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
        "header": None if table.header is None else _header_to_json(table.header),
    }


def schema_from_json(stored: dict[str, Any]) -> FeatureSchema:
    """Put a schema together again from what `schema_to_json` returned."""
    try:
        backend, header = stored["backend"], stored["header"]
        features = tuple(_feature_from_json(feature) for feature in stored["features"])
        columns = tuple(_column_from_json(column, backend) for column in stored["columns"])
        table = TableFormat(backend, columns, None if header is None else _header_from_json(header))
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
        "name": _to_plain(column.name, column.name),
        "levels": _levels_to_json(column.levels, column.name),
        "dtype": _dtype_to_json(column.dtype, backend, column.name),
        "missing": str(column.missing),
        "is_integer": column.is_integer,
        "declared": _levels_to_json(column.declared, column.name),
    }


def _column_from_json(stored: dict[str, Any], backend: str) -> ColumnFormat:
    return ColumnFormat(
        name=_from_plain(stored["name"]),
        levels=_levels_from_json(stored["levels"]),
        dtype=_dtype_from_json(stored["dtype"], backend),
        missing=_MISSING[stored["missing"]],
        is_integer=bool(stored["is_integer"]),
        declared=_levels_from_json(stored["declared"]),
    )


def _header_to_json(header: pd.Index[Any]) -> dict[str, Any]:
    return {
        "labels": [_to_plain(label, label) for label in header.tolist()],
        "dtype": str(header.dtype),
        "names": [_to_plain(name, "header") for name in header.names],
    }


def _header_from_json(stored: dict[str, Any]) -> pd.Index[Any]:
    labels = [_from_plain(label) for label in stored["labels"]]
    names = [_from_plain(name) for name in stored["names"]]
    if len(names) > 1:
        return pd.MultiIndex.from_tuples(labels, names=names)
    dtype: Any = stored["dtype"]
    header: pd.Index[Any] = pd.Index(labels, dtype=dtype, name=names[0], tupleize_cols=False)
    return header


# --- single values ----------------------------------------------------------------------------------------------------


def _levels_to_json(levels: Levels | None, column: Any) -> list[Any] | None:
    return None if levels is None else [_to_plain(level, column) for level in levels]


def _levels_from_json(stored: list[Any] | None) -> Levels | None:
    return None if stored is None else tuple(_from_plain(level) for level in stored)


def _to_plain(value: Any, column: Any) -> Any:
    """One level or label as JSON can hold it, without losing its type."""
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)):
        return value
    if isinstance(value, tuple):
        return {"tuple": [_to_plain(part, column) for part in value]}
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return {"numpy": [value.dtype.str, value.item()]}
    if isinstance(value, pd.Timestamp):
        return {"timestamp": [value.isoformat(), value.unit]}
    if isinstance(value, pd.Interval):
        return {"interval": [_to_plain(value.left, column), _to_plain(value.right, column), value.closed]}
    raise StorageError(
        f"names and levels of column {column!r} must be text, numbers, booleans, times or intervals to be saved, got "
        f"{value!r} of type {type(value).__name__}. Rename them, e.g. with .cat.rename_categories(str)."
    )


def _from_plain(stored: Any) -> Any:
    if not isinstance(stored, dict):
        return stored
    ((kind, parts),) = stored.items()
    if kind == "tuple":
        return tuple(_from_plain(part) for part in parts)
    if kind == "numpy":
        return np.dtype(parts[0]).type(parts[1])
    if kind == "timestamp":
        return pd.Timestamp(parts[0]).as_unit(parts[1])
    if kind == "interval":
        return pd.Interval(_from_plain(parts[0]), _from_plain(parts[1]), closed=parts[2])
    raise StorageError(f"a stored value must be text, a number or of a known type, got {kind!r}. Save it again.")


# --- dtypes -----------------------------------------------------------------------------------------------------------


def _dtype_to_json(dtype: Any, backend: str, column: Any) -> Any:
    """A dtype of a NumPy, pandas, Polars or PyArrow column; a text is a NumPy dtype."""
    if isinstance(dtype, np.dtype):
        return dtype.str
    if backend == "polars":
        return _polars_to_json(dtype)
    if backend == "pyarrow":
        return _arrow_to_json(dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        found = dtype.categories
        levels = [_to_plain(level, column) for level in found.tolist()]
        return {"category": levels, "of": _dtype_to_json(found.dtype, backend, column), "ordered": bool(dtype.ordered)}
    if isinstance(dtype, pd.StringDtype):
        return {"string": dtype.storage, "missing": str(dtype.na_value)}
    if isinstance(dtype, pd.ArrowDtype):
        return {"arrow": _arrow_to_json(dtype.pyarrow_dtype)}
    return {"pandas": str(dtype)}


def _dtype_from_json(stored: Any, backend: str) -> Any:
    if isinstance(stored, str) and backend != "pyarrow":
        return np.dtype(stored)
    if backend == "polars":
        return _polars_from_json(stored)
    if backend == "pyarrow":
        return _arrow_from_json(stored)
    if "category" in stored:
        levels = [_from_plain(level) for level in stored["category"]]
        categories: Any = pd.Index(levels, dtype=_dtype_from_json(stored["of"], backend), tupleize_cols=False)
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
    import polars as pl

    levels = dtype.categories.to_list() if dtype == pl.Enum else None
    return {"polars": str(dtype.base_type()), "levels": levels}


def _polars_from_json(stored: dict[str, Any]) -> Any:
    import polars as pl

    return getattr(pl, stored["polars"])() if stored["levels"] is None else pl.Enum(stored["levels"])


def _arrow_to_json(dtype: Any) -> str:
    import pyarrow as pa

    return base64.b64encode(pa.schema([("x", dtype)]).serialize().to_pybytes()).decode()


def _arrow_from_json(stored: str) -> Any:
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored))).field(0).type
