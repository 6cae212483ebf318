"""Part and its rows -> a Parquet file in the folder, and back: an explanation with further columns, which says what it is.

A file has the first digits of its checksum in its name. So two workers that write the same part, because one of them was
taken for dead, do not write the same file, and the manifest says which one counts.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from condshap.bulk.manifest import PREFIX, Done
from condshap.bulk.parts import Part
from condshap.bulk.wanted import Wanted
from condshap.exceptions import CondShapError, ModelError, StorageError
from condshap.explanation import Explanation
from condshap.storage.explanations import explanation_bytes, explanation_from_bytes, numbers_of, read_about
from condshap.storage.file_kinds import EXPLANATION
from condshap.storage.writing import write_whole
from condshap.types import Floats, Table

if TYPE_CHECKING:
    import pyarrow as pa

CARRIED = "carried/"
"""Begins the names of columns that were carried along, the key among them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is done to every part: the same for all of them.

    Attributes
    ----------
    explain : table (R, M) -> explanation
    wanted : columns
    is_compact : whether v(S) and the rows are left out
    """

    explain: Callable[[Table], Explanation]
    wanted: Wanted
    is_compact: bool

    def __call__(self, part: Part, rows: pa.Table) -> tuple[Done, bytes]:
        """Explain the rows of a part; what was done, but for the file, and the content of that."""
        start = time.perf_counter()
        with naming(part):
            X = self.wanted.features_of(rows)
            try:
                explanation = self.explain(X)
            except (CondShapError, Warning):
                raise
            except Exception as error:  # a model of the user's can fail in any way
                raise ModelError(f"{type(error).__name__}: {error}") from error
            content = self._content(explanation, rows)
        digest, warnings = hashlib.sha256(content).hexdigest(), explanation.provenance.warnings
        seconds = time.perf_counter() - start
        return Done(part, _name(part, digest), digest, round(seconds, 3), self._key_range(rows), warnings), content

    def _content(self, explanation: Explanation, rows: pa.Table) -> bytes:
        carried = self.wanted.carried_of(rows)
        if self.is_compact:
            explanation = explanation.without_table(_frame_of(carried, len(rows)))
        more = {f"{CARRIED}{name}": _plain(carried.column(name)) for name in carried.column_names}
        return explanation_bytes(explanation, more=more)

    def _key_range(self, rows: pa.Table) -> tuple[Any, Any] | None:
        """Smallest and largest key, where there are such and JSON can hold them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.wanted.key is None:
            return None
        try:
            found = pc.min_max(_plain(rows.column(self.wanted.key)).combine_chunks()).as_py()
        except pa.ArrowNotImplementedError:  # Arrow does not order durations; lookups then read this part, too
            return None
        low, high = found["min"], found["max"]
        return (low, high) if isinstance(low, (int, float, str)) else None


@contextmanager
def naming(part: Part) -> Iterator[None]:
    """Name the part in whatever goes wrong with it; positions of rows in messages count from the first of its rows."""
    try:
        yield
    except CondShapError as error:
        counted = f", where positions count from row {part.start}" if part.start else ""
        raise type(error)(f"{part.text}{counted}: {error}") from error


def _frame_of(carried: pa.Table, n_rows: int) -> Any:
    """Frame (R, k) of what is carried along, which may be nothing."""
    import pandas as pd

    return carried.to_pandas() if carried.num_columns else pd.DataFrame(index=pd.RangeIndex(n_rows))


def _plain(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _name(part: Part, digest: str) -> str:
    return f"{PREFIX}{part.number:06d}-{digest[:8]}.parquet"


def write_part(folder: Path, done: Done, content: bytes) -> None:
    """Write a part under its name in one step."""
    with naming(done.part):
        write_whole(folder / done.file, content, "an explained part")


def read_part(folder: Path, done: Done) -> Explanation:
    """Explanation of a part, which must be the one of the manifest."""
    path = folder / done.file
    content = EXPLANATION.read(path)
    if hashlib.sha256(content).hexdigest() != done.checksum:
        raise StorageError(
            f"'{path}' must be as it was written, but its contents have changed. Delete it, and make the call to "
            "explain_dataset again: it explains these rows anew."
        )
    with EXPLANATION.opening(path):
        return explanation_from_bytes(content, path)


def read_columns(folder: Path, done: Done, names: list[str]) -> pa.Table:
    """Some columns of a part's file, without the rest of it."""
    import pyarrow.parquet as pq

    path = folder / done.file
    with EXPLANATION.opening(path):
        return pq.ParquetFile(path, pre_buffer=False).read(columns=names, use_threads=False)


def read_numbers(folder: Path, done: Done) -> tuple[tuple[list[str], list[str]], Floats, Floats]:
    """Names of players and outputs, Shapley values (R, P, O) and all errors together, without v(S) and the rows."""
    about = read_about(folder / done.file)
    names = about["names"]["players"], about["names"]["outputs"]
    kinds = ("shapley", "std_error", "model_error")
    wanted = [f"{kind}/{i}" for kind in kinds for i in range(len(names[0]))]
    read = read_columns(folder, done, wanted)
    values, std_errors, model_errors = (
        np.stack([numbers_of(read, f"{kind}/{i}") for i in range(len(names[0]))], axis=1) for kind in kinds
    )
    return names, values, np.hypot(std_errors, model_errors)


Rows: TypeAlias = Iterable[tuple[Part, Any]]
Runner: TypeAlias = Callable[[Work, Rows, Path], Iterator[Done]]
"""Explains parts with their rows, writes them to a folder, and tells of each when it is finished."""
