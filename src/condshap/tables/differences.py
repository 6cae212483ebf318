"""Two native tables -> the first place in which they differ: in values, dtypes, missing values or labels.

Saving asks this before it writes: what would come back as something else is refused while the original is still there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from condshap.types import Table


def find_difference(a: Table, b: Table) -> str | None:
    """What is not the same in both tables, in words; None if nothing is.

    >>> find_difference(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1.0, 2.0]}))
    "column 'a' of dtype int64"
    """
    if type(a) is not type(b):
        return f"a {type(a).__name__}"
    if isinstance(a, np.ndarray):
        return None if _same_arrays(a, b) else f"an array of {a.dtype}"
    if isinstance(a, pd.DataFrame):
        return _in_frames(a, b)
    same_schema = (
        a.schema.equals(b.schema, check_metadata=True) if hasattr(a.schema, "equals") else a.schema == b.schema
    )
    if same_schema and len(a) == len(b):
        differing = (f"column {name!r} of dtype {dtype}" for name, dtype in _dtypes(a) if not _same_columns(a, b, name))
        return next(differing, None)
    return f"a table of {', '.join(f'{name}: {dtype}' for name, dtype in _dtypes(a)[:5])}"


def _dtypes(table: Any) -> list[tuple[str, Any]]:
    """Names and dtypes of a Polars or PyArrow table."""
    if hasattr(table, "column_names"):
        return list(zip(table.column_names, table.schema.types, strict=True))
    return list(table.schema.items())


def _same_columns(a: Any, b: Any, name: str) -> bool:
    """Whether a column of two Polars or PyArrow tables has the same values, NaN and missing ones included."""
    one, other = a[name], b[name]
    if not hasattr(a, "column_names"):
        return bool(one.equals(other, check_dtypes=True))  # Polars counts NaN as equal to NaN
    if not str(one.type).startswith(("float", "double", "halffloat")):
        return bool(one.equals(other))
    same_gaps = one.is_null().equals(other.is_null())
    return same_gaps and _same_arrays(one.to_numpy(), other.to_numpy())


def _in_frames(a: pd.DataFrame, b: pd.DataFrame) -> str | None:
    if a.shape != b.shape:
        return f"a table of shape {a.shape}"
    for labels, others, what in ((a.columns, b.columns, "column"), (a.index, b.index, "row")):
        if not _same_labels(labels, others):
            return f"{what} labels of dtype {labels.dtype} and name {labels.names[0]!r}"
    for j, name in enumerate(a.columns):
        if not _same_series(a.iloc[:, j], b.iloc[:, j]):
            return f"column {name!r} of dtype {a.iloc[:, j].dtype}"
    return None


def _same_labels(a: pd.Index[Any], b: pd.Index[Any]) -> bool:
    if a.nlevels != b.nlevels or not _same_objects(list(a.names), list(b.names)):
        return False
    levels = ([labels.get_level_values(i) for i in range(labels.nlevels)] for labels in (a, b))
    return all(
        _same_series(*(pd.Series(level.array, dtype=level.dtype) for level in both))
        for both in zip(*levels, strict=True)
    )


def _same_series(a: pd.Series[Any], b: pd.Series[Any]) -> bool:
    if not _same_dtypes(a.dtype, b.dtype):
        return False
    if a.dtype == object:
        return _same_objects(a.tolist(), b.tolist())
    if isinstance(a.dtype, np.dtype):
        return _same_arrays(a.to_numpy(), b.to_numpy())
    return bool(a.array.equals(b.array))


def _same_dtypes(a: Any, b: Any) -> bool:
    """Whether dtypes are the same; of categories their order and type count too."""
    if isinstance(a, pd.CategoricalDtype) and isinstance(b, pd.CategoricalDtype):
        return a.ordered == b.ordered and _same_labels(a.categories, b.categories)
    return type(a) is type(b) and bool(a == b)


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return _same_objects(a.ravel().tolist(), b.ravel().tolist())
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM"))


def _same_objects(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(map(_same_object, a, b))


def _same_object(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    return bool(a == b) or bool(a != a and b != b)
