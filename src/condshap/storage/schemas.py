"""Feature schema <-> JSON: what a saved network or explainer needs to read tables, and to give them back as they were.

Levels, column labels and dtypes keep their types, see `condshap.storage.dtypes`.
"""

from __future__ import annotations

from typing import Any

from condshap.schema import Feature, FeatureSchema, Kind
from condshap.storage.dtypes import (
    MISSING,
    dtype_from_json,
    dtype_to_json,
    labels_from_json,
    labels_to_json,
    value_from_json,
    value_to_json,
)
from condshap.storage.file_kinds import clear_damage
from condshap.tables.column_formats import ColumnFormat
from condshap.tables.formats import TableFormat
from condshap.tables.reading import Levels


def schema_to_json(schema: FeatureSchema) -> dict[str, Any]:
    """Take a schema apart into what `json.dumps` accepts.

    >>> import pandas as pd
    >>> schema = FeatureSchema.learn(pd.DataFrame({"n": [1, 2, 3], "c": ["u", "v", "u"]}))
    >>> schema_from_json(schema_to_json(schema)) == schema
    True
    """
    table = schema.table_format
    return {
        "features": [_feature_to_json(feature) for feature in schema.features],
        "backend": table.backend,
        "columns": [_column_to_json(column, table.backend) for column in table.columns],
        "header": None if table.header is None else labels_to_json(table.header),
    }


def schema_from_json(stored: dict[str, Any]) -> FeatureSchema:
    """Put a schema together again from what `schema_to_json` returned."""
    with clear_damage("a stored schema must be complete"):
        backend, header = stored["backend"], stored["header"]
        features = tuple(_feature_from_json(feature) for feature in stored["features"])
        columns = tuple(_column_from_json(column, backend) for column in stored["columns"])
        table = TableFormat(backend, columns, None if header is None else labels_from_json(header))
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
        missing=MISSING[stored["missing"]],
        is_integer=bool(stored["is_integer"]),
        declared=_levels_from_json(stored["declared"]),
    )


def _levels_to_json(levels: Levels | None, column: Any) -> list[Any] | None:
    return None if levels is None else [value_to_json(level, column) for level in levels]


def _levels_from_json(stored: list[Any] | None) -> Levels | None:
    return None if stored is None else tuple(value_from_json(level) for level in stored)
