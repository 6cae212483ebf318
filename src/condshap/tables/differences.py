"""Two native tables -> the first place in which they differ: in values, dtypes, missing values or labels.

Saving asks this before it writes: what would come back as something else is refused while the original is still there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from condshap.tables.backends import backend_of
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
    return _in_pyarrow(a, b) if backend_of(a) == "pyarrow" else _in_polars(a, b)


def _in_polars(a: Any, b: Any) -> str | None:
    if a.schema != b.schema or len(a) != len(b):
        return _table_of(a.schema.items())
    # Polars counts NaN as equal to NaN
    differing = (name for name in a.columns if not a[name].equals(b[name], check_dtypes=True))
    return next((f"column {name!r} of dtype {a.schema[name]}" for name in differing), None)


def _in_pyarrow(a: Any, b: Any) -> str | None:
    dtypes = dict(zip(a.column_names, a.schema.types, strict=True))
    if not a.schema.equals(b.schema, check_metadata=True) or len(a) != len(b):
        return _table_of(dtypes.items())
    differing = (name for name in dtypes if not _same_arrow(a[name], b[name]))
    return next((f"column {name!r} of dtype {dtypes[name]}" for name in differing), None)


def _table_of(dtypes: Iterable[tuple[str, Any]]) -> str:
    return f"a table of {', '.join(f'{name}: {dtype}' for name, dtype in list(dtypes)[:5])}"


def _same_arrow(a: Any, b: Any) -> bool:
    """Whether two PyArrow columns have the same values, NaN and missing ones included."""
    if not str(a.type).startswith(("float", "double", "halffloat")):
        return bool(a.equals(b))
    return a.is_null().equals(b.is_null()) and _same_arrays(a.to_numpy(), b.to_numpy())


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
