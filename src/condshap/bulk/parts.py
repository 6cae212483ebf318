"""Pieces -> plan: parts of bounded size, each with the digest of its rows, by which a source is known again.

One pass over the source, which computes nothing, finds out how many rows there are, whether their keys name each of them
once, and what they hold. A piece that cannot be read ends the plan: the parts before it can be explained all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.bulk.source import Piece
from condshap.bulk.wanted import Wanted
from condshap.exceptions import CondShapError, OptionError, SchemaError, StorageError, listing
from condshap.runtime.progress import Line

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a piece.

    Attributes
    ----------
    number : from 0, in the order of the source
    piece : name of the piece
    start, n_rows : which of its rows
    digest : of what the rows hold
    """

    number: int
    piece: str
    start: int
    n_rows: int
    digest: str

    @property
    def text(self) -> str:
        """Name the part in a message."""
        return f"part {self.number} (rows {self.start} to {self.start + self.n_rows - 1} of {self.piece})"


@dataclass(frozen=True, slots=True)
class Plan:
    """All parts of a source, or those before a piece that cannot be read, its name, and what is wrong with it."""

    parts: tuple[Part, ...]
    broken_at: str | None = None
    broken: CondShapError | None = None

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows for part in self.parts)


def make_plan(pieces: Iterable[Piece], wanted: Wanted, rows_per_part: int, line: Line) -> Plan:
    """Go through all rows once, and tell the line how many they are so far."""
    parts: list[Part] = []
    keys = _Keys(wanted.key)
    for piece in pieces:
        try:
            for start, rows in cut(piece, wanted, rows_per_part):
                part = Part(len(parts), piece.name, start, len(rows), _digest(rows))
                keys.add(rows, part)
                parts.append(part)
                line.update(len(rows))
        except (StorageError, SchemaError) as error:
            return Plan(tuple(parts), piece.name, error)
    keys.check(pieces, wanted)
    if not parts:
        raise SchemaError("source must have rows, got none. Check the path, or the filter.")
    return Plan(tuple(parts))


def read_parts(pieces: Iterable[Piece], wanted: Wanted, rows_per_part: int, parts: Iterable[Part]) -> Iterator[Any]:
    """Parts with their rows, in order; `parts` are those that are wanted, of a plan of the same source."""
    by_place = {(part.piece, part.start): part for part in parts}
    waiting = {name for name, _ in by_place}
    for piece in pieces:
        if piece.name not in waiting:
            continue
        for start, rows in cut(piece, wanted, rows_per_part):
            part = by_place.pop((piece.name, start), None)
            if part is None:
                continue
            if _digest(rows) != part.digest:
                raise StorageError(
                    f"{part.text} must hold the same rows every time it is read, but they have changed since the call "
                    "began. Do not change the source during the run; sort a LazyFrame, or write it to Parquet first."
                )
            yield part, rows
            if not any(name == piece.name for name, _ in by_place):
                break


def cut(piece: Piece, wanted: Wanted, rows_per_part: int) -> Iterator[tuple[int, pa.Table]]:
    """Tables of so many rows, the last one of fewer, each with where it starts."""
    start, n_held = 0, 0
    held: list[Any] = []
    for batch in piece.batches(wanted):
        while n_held + len(batch) >= rows_per_part:
            n = rows_per_part - n_held
            yield start, _joined([*held, batch.slice(0, n)])
            start, held, n_held, batch = start + rows_per_part, [], 0, batch.slice(n)
        if len(batch):
            held, n_held = [*held, batch], n_held + len(batch)
    if n_held:
        yield start, _joined(held)


def _joined(batches: list[Any]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def _digest(rows: pa.Table) -> str:
    """Digest of what rows hold, however their batches were cut and their labels coded."""
    found = hashlib.sha256(str([(field.name, _plain_type(field.type)) for field in rows.schema]).encode())
    found.update(_hashes(rows).tobytes())
    return found.hexdigest()[:16]


def _plain_type(dtype: Any) -> str:
    """Type of values, however text is laid out and labels are coded."""
    text = str(dtype.value_type if hasattr(dtype, "value_type") else dtype)
    return "string" if text in {"large_string", "string_view"} else text


def _hashes(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A word (n,) for every row."""
    import pandas as pd
    import pyarrow as pa

    try:
        plain = _with_signed_codes(rows.replace_schema_metadata(None))
        found = pd.util.hash_pandas_object(plain.to_pandas(), index=False)
    except (TypeError, ValueError):
        nested = [field for field in rows.schema if pa.types.is_nested(field.type)]
        kinds = [f"{field.name}: {field.type}" for field in nested or rows.schema]
        raise OptionError(
            f"columns must hold numbers, text, booleans or times, got {listing(kinds)}. Leave out lists and records."
        ) from None
    return np.asarray(found.to_numpy(), dtype=np.uint64)


def _with_signed_codes(rows: pa.Table) -> pa.Table:
    """Rows without levels coded by unsigned integers, as in Polars: older versions of PyArrow hand none to pandas."""
    import pyarrow as pa

    for i, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type) and pa.types.is_unsigned_integer(field.type.index_type):
            rows = rows.set_column(i, field.name, rows.column(i).cast(field.type.value_type))
    return rows


class _Keys:
    """Words of all keys so far: eight bytes a row, whatever the keys are."""

    def __init__(self, key: str | None) -> None:
        self._key = key
        self._words: list[np.ndarray[Any, np.dtype[np.uint64]]] = []

    def add(self, rows: pa.Table, part: Part) -> None:
        """Take up the keys of a part, none of which may be missing."""
        if self._key is None:
            return
        column = rows.column(self._key)
        gaps = np.flatnonzero(column.is_null(nan_is_null=True).to_numpy())
        if len(gaps):
            raise OptionError(
                f"key '{self._key}' must have a value in every row, but is missing in rows "
                f"{listing((gaps + part.start).tolist())} of {part.piece}. Fill the gaps, or leave key out to find rows by "
                "their position."
            )
        self._words.append(_hashes(rows.select([self._key])))

    def check(self, pieces: Iterable[Piece], wanted: Wanted) -> None:
        """Refuse keys that name several rows; words that are equal by chance are told from equal keys by a second look."""
        if self._key is None or not self._words:
            return
        words, counts = np.unique(np.concatenate(self._words), return_counts=True)
        doubtful = words[counts > 1]
        if not len(doubtful):
            return
        seen: dict[Any, str] = {}
        for piece in pieces:
            for start, rows in cut(piece, wanted, 2**14):
                some = rows.select([self._key])
                for i in np.flatnonzero(np.isin(_hashes(some), doubtful)).tolist():
                    value, place = some.column(0)[i].as_py(), f"row {start + i} of {piece.name}"
                    if value in seen:
                        raise OptionError(
                            f"key '{self._key}' must be different in every row, got {value!r} in {seen[value]} and in "
                            f"{place}. Choose another column, or leave key out to find rows by their position."
                        )
                    seen[value] = place
