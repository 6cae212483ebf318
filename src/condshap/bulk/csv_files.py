"""A CSV file -> batches with the types of the training rows: text exactly as written, gaps only where a cell is empty.

The rules are those of the command line for a table in memory: an empty cell is missing, and words such as NA are missing
among numbers but text among text. Columns that are no features are text, as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condshap.bulk.wanted import Wanted, check_exact
from condshap.schema import Feature

if TYPE_CHECKING:
    import pyarrow as pa

_GAPS = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL",
    "NaN", "None", "n/a", "nan", "null",
]  # fmt: skip


def stream_csv(path: Path) -> tuple[Callable[[], list[str]], Callable[[Wanted], Iterator[pa.RecordBatch]]]:
    """Ways to read the names of the columns, and batches of them."""
    import pyarrow as pa
    from pyarrow import csv

    parse = csv.ParseOptions(newlines_in_values=True)

    def names() -> list[str]:
        with pa.input_stream(str(path)) as file, csv.open_csv(file, parse_options=parse) as reader:
            return list(reader.schema.names)

    def stream(wanted: Wanted) -> Iterator[pa.RecordBatch]:
        convert = csv.ConvertOptions(
            column_types=_types(wanted),
            include_columns=list(wanted.names),
            null_values=_GAPS,
            strings_can_be_null=False,
        )
        read = csv.ReadOptions(use_threads=False)
        with pa.input_stream(str(path)) as file:
            for batch in csv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert):
                yield _checked(batch, wanted)

    return names, stream


def _types(wanted: Wanted) -> dict[str, Any]:
    import pyarrow as pa

    known = {name: _type(one) for name, one in zip(wanted.features, wanted.schema.features, strict=True)}
    return {name: known.get(name, pa.string()) for name in wanted.names}


def _type(feature: Feature) -> Any:
    """Type of a feature's cells: of its levels, or numbers."""
    import pyarrow as pa

    kinds = {type(level) for level in feature.levels or (0.0,)}
    return pa.string() if str in kinds else pa.bool_() if kinds == {bool} else pa.float64()


def _checked(batch: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    """The batch with empty text as gaps, and no whole number that a float cannot hold."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = {name for name, one in zip(wanted.features, wanted.schema.features, strict=True) if one.is_integer}
    arrays = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_string(column.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        elif pa.types.is_floating(column.type):
            check_exact(name, column, is_whole=name in whole)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
