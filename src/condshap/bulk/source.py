"""Files, folder, glob, pyarrow Dataset or Polars LazyFrame -> pieces, each of which streams batches of rows in order.

A piece is one file, or all rows of what is no file. Only the columns that are wanted are read. A piece that lacks one of
them, or cannot be read, is an error that names it.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condshap.bulk.csv_files import stream_csv
from condshap.bulk.wanted import Wanted
from condshap.exceptions import CondShapError, OptionError, SchemaError, StorageError, listing

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
}  # fmt: skip
_BATCH = 2**14  # rows that are decoded at once
_KINDS = "a Parquet, CSV or Arrow file, a folder or glob of these, a pyarrow Dataset or a Polars LazyFrame"

Stream = Callable[[Wanted], "Iterator[pa.RecordBatch]"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows in an order that does not change.

    Attributes
    ----------
    name : of the file, or what else the rows are; for messages and the manifest
    names : of the columns, when it is asked
    stream : gives batches with the columns that are wanted
    constants : columns that the path of a file states, such as ``month=2024-05``
    """

    name: str
    names: Callable[[], list[str]]
    stream: Stream
    constants: dict[str, str] = field(default_factory=dict)

    def batches(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Batches with exactly the columns that are wanted."""
        with self.reading():
            has = self.names()
            missing = [name for name in wanted.names if name not in has and name not in self.constants]
            if missing:
                raise SchemaError(f"rows must have the columns {listing(wanted.names)}, but lack {listing(missing)}.")
            here = wanted.among(has)
            for batch in self.stream(here):
                yield self._completed(batch, wanted)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the piece in whatever goes wrong while it is read."""
        try:
            yield
        except CondShapError as error:
            raise type(error)(f"{self.name}: {error}") from error
        except Exception as error:  # Arrow, Polars and the system fail in many ways
            raise StorageError(
                f"{self.name} must be readable, but {type(error).__name__}: {' '.join(str(error).split())}. Repair it and "
                "make the same call again; finished parts are kept."
            ) from error

    def _completed(self, batch: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
        """The batch with its columns in the wanted order, and those that the path states."""
        import pyarrow as pa

        def column(name: str) -> Any:
            return batch.column(name) if name in batch.schema.names else pa.repeat(self.constants[name], len(batch))

        return pa.RecordBatch.from_arrays([column(name) for name in wanted.names], names=list(wanted.names))


def find_pieces(source: Any, out: Path) -> list[Piece]:
    """Pieces of a source, in order; `out` must not be among its files."""
    if isinstance(source, (str, Path)):
        return _files(Path(source), out)
    if hasattr(source, "get_fragments") and hasattr(source, "schema"):
        return _fragments(source)
    if hasattr(source, "collect_schema") and hasattr(source, "collect_batches"):
        return [Piece("the Polars LazyFrame", lambda: source.collect_schema().names(), _stream_lazy(source))]
    if hasattr(source, "collect_schema") and hasattr(source, "sink_parquet"):
        raise OptionError(
            "a LazyFrame is read in batches by LazyFrame.collect_batches, which this Polars lacks. Update Polars, or write "
            "it to Parquet first: source.sink_parquet(path)."
        )
    raise OptionError(
        f"source must be {_KINDS}, got {type(source).__name__}. Write a table in memory to Parquet, or pass it to explain."
    )


def _files(path: Path, out: Path) -> list[Piece]:
    if path.is_dir():
        if out.resolve().is_relative_to(path.resolve()):
            raise OptionError(f"out must not be inside the source, got '{out}' in '{path}'. Choose another folder.")
        found = [one for one in sorted(path.rglob("*")) if _format(one) and not _is_hidden(one.relative_to(path))]
        root = path
    else:
        found = [path] if path.exists() else sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - of any root
        found, root = [one for one in found if one.is_file()], path.parent
    kinds = {_format(one) for one in found}
    if len(kinds) != 1 or None in kinds:
        what = f"files of formats {sorted(map(str, kinds))}" if found else "no file"
        raise OptionError(
            f"source must be {_KINDS}, all of one format, got {what} at '{path}'. Formats are known by their endings: "
            f"{listing(_SUFFIXES)}."
        )
    return [_file(one, one.relative_to(root) if one.is_relative_to(root) else one) for one in found]


def _format(path: Path) -> str | None:
    return next((kind for suffix, kind in _SUFFIXES.items() if path.name.lower().endswith(suffix)), None)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _file(path: Path, shown: Path) -> Piece:
    stated = dict(part.split("=", 1) for part in shown.parts[:-1] if "=" in part)
    names, stream = {"parquet": _parquet, "csv": stream_csv, "arrow": _arrow}[str(_format(path))](path)
    return Piece(f"'{shown.as_posix()}'", names, stream, stated)


def _parquet(path: Path) -> tuple[Callable[[], list[str]], Stream]:
    import pyarrow.parquet as pq

    def stream(wanted: Wanted) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield from file.iter_batches(_BATCH, columns=list(wanted.names), use_threads=False)

    return lambda: list(pq.read_schema(path).names), stream


def _arrow(path: Path) -> tuple[Callable[[], list[str]], Stream]:
    import pyarrow as pa

    @contextmanager
    def opened() -> Iterator[Any]:
        with pa.memory_map(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            yield pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)

    def names() -> list[str]:
        with opened() as reader:
            return list(reader.schema.names)

    def stream(wanted: Wanted) -> Iterator[pa.RecordBatch]:
        with opened() as reader:
            is_file = hasattr(reader, "num_record_batches")
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in batches:
                for start in range(0, len(batch), _BATCH):
                    yield batch.select(list(wanted.names)).slice(start, _BATCH)

    return names, stream


def _fragments(dataset: Any) -> list[Piece]:
    """Files of a pyarrow Dataset; one that is filtered, or in memory, is a single piece."""
    try:
        fragments = [one for one in dataset.get_fragments() if hasattr(one, "path")]
    except ValueError:  # a filter is of rows, and belongs to no file
        fragments = []
    if not fragments:
        return [Piece("the pyarrow Dataset", lambda: list(dataset.schema.names), _scan(dataset))]
    return [Piece(f"'{one.path}'", _names_of(one), _scan(one, schema=dataset.schema)) for one in fragments]


def _names_of(fragment: Any) -> Callable[[], list[str]]:
    """Columns that a file has, or that its path states."""
    import pyarrow.dataset as ds

    return lambda: [*fragment.physical_schema.names, *ds.get_partition_keys(fragment.partition_expression)]


def _scan(scanned: Any, **options: Any) -> Stream:
    def stream(wanted: Wanted) -> Iterator[pa.RecordBatch]:
        ahead = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        yield from scanned.to_batches(columns=list(wanted.names), batch_size=_BATCH, **ahead, **options)

    return stream


def _stream_lazy(frame: Any) -> Stream:
    def stream(wanted: Wanted) -> Iterator[pa.RecordBatch]:
        for some in frame.select(list(wanted.names)).collect_batches(chunk_size=_BATCH, maintain_order=True):
            yield from some.to_arrow().to_batches()

    return stream
