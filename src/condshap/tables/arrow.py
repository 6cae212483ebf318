"""PyArrow columns: which kinds are read, how odd ones become usual ones, and dictionaries from codes and levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import SchemaError, listing


def is_usual_type(dtype: Any) -> bool:
    """Whether pandas can work with columns of an Arrow type: neither with views nor with dictionaries."""
    from pyarrow import types

    is_number = types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)
    return bool(is_number or types.is_boolean(dtype) or types.is_string(dtype) or types.is_large_string(dtype))


def tame_table(X: Any) -> Any:
    """PyArrow table whose text and dictionaries are of the usual kinds: no views, no repeated or missing values in these."""
    import pyarrow as pa

    encoded = [field.name for field in X.schema if pa.types.is_run_end_encoded(field.type)]
    if encoded:
        raise SchemaError(
            f"columns must not be run-end encoded, got {listing(encoded)}. Decode them with pyarrow.compute.run_end_decode."
        )
    columns = list(X.columns)
    tamed = [_tame_column(column) for column in columns]
    if all(new is old for new, old in zip(tamed, columns, strict=True)):
        return X
    return pa.table(tamed, names=X.column_names).replace_schema_metadata(X.schema.metadata)


def _tame_column(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        return column
    dictionaries = [chunk.dictionary.to_pylist() for chunk in column.chunks]
    is_usual = all(None not in values and len(set(values)) == len(values) for values in dictionaries)
    if is_usual and not pa.types.is_string_view(column.type.value_type):
        return column
    levels = dictionary_levels(column)
    position = {level: i for i, level in enumerate(levels)}
    codes = np.array([-1 if value is None else position[value] for value in column.to_pylist()], dtype=np.int64)
    dtype = pa.dictionary(pa.int32(), pa.array(levels).type, ordered=column.type.ordered)
    return pa.chunked_array([dictionary_array(codes, levels, dtype)])


def dictionary_levels(column: Any) -> list[Any]:
    """Levels of a dictionary column, of all its chunks, each once and without missing ones."""
    values = (level for chunk in column.chunks for level in chunk.dictionary.to_pylist())
    return [level for level in dict.fromkeys(values) if level is not None]


def dictionary_array(codes: npt.NDArray[np.integer[Any]], levels: Sequence[Any], dtype: Any) -> Any:
    """Dictionary column of a type from positions (n,) in `levels`, -1 for missing."""
    import pyarrow as pa

    index = pa.array(codes, mask=codes < 0).cast(dtype.index_type)
    return pa.DictionaryArray.from_arrays(index, pa.array(levels, type=dtype.value_type), ordered=dtype.ordered)


def arrow_to_native(table: Any, backend: str, *, labels: Any = None, is_object: bool = False) -> Any:
    """PyArrow table as one of another library, values and dtypes as they are.

    Parameters
    ----------
    backend : "numpy", "pandas", "polars" or "pyarrow"
    labels : column that names the rows of a pandas frame
    is_object : whether an array holds objects, as it must where some columns are labels, or floats
    """
    if backend == "pyarrow":
        return table
    if backend == "polars":
        import polars as pl

        return pl.from_arrow(table)
    frame = table.to_pandas()
    if backend == "numpy":
        return frame.to_numpy(dtype=object) if is_object else frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if labels is not None:
        frame.index = labels.to_pandas()
    return frame
