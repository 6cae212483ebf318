"""Kinds of files that condshap writes: the one place that says what a file holds, in which version, and whether it is whole.

Every file has a header, JSON text among its metadata: its kind, its format version and the version of condshap that wrote
it, beside what that kind needs. Reading goes in this order: the bytes, the container (safetensors, Parquet), the header, the
checksum, and only then what the file holds. The version comes before the checksum, so that a file of a later version is
told from a damaged one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from condshap.exceptions import CondShapError, StorageError
from condshap.storage.sealing import is_sealed

FORMAT_VERSION = 4
"""Of all files alike. Whoever changes what any of them holds raises it."""

HEADER, SEAL = "condshap", "condshap.seal"
"""Keys of the header and of the checksum among a file's metadata."""


def new_header(kind: str, **facts: Any) -> str:
    """JSON text of a header; `facts` that JSON cannot hold are a TypeError or ValueError."""
    about = {"kind": kind, "format_version": FORMAT_VERSION, "written_by": _own_version()}
    return json.dumps({**about, **facts})


def _own_version() -> str:
    try:
        return version("condshap")
    except PackageNotFoundError:  # a source tree that was never installed
        return "of unknown version"


def read_header(text: str | bytes, kind: str, what: str) -> dict[str, Any]:
    """Parse a header and check its version and kind; `what` has it is for messages, such as "'file.parquet'"."""
    try:
        about = json.loads(text)
        found, writer = about["format_version"], about.get("written_by", "of unknown version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(f"{what} must be saved by condshap", error) from None
    check_version(found, FORMAT_VERSION, what, writer)
    if about.get("kind") != kind:
        raise StorageError(f"{what} must be of kind '{kind}', got {about.get('kind')!r}. Check the path.")
    return dict(about)


def has_kind(text: str | bytes | None, kind: str) -> bool:
    """Whether a header says that a file is of a kind; one that cannot be read says nothing."""
    try:
        return text is not None and bool(json.loads(text)["kind"] == kind)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def check_version(found: Any, wanted: int, what: str, writer: Any) -> None:
    """Refuse another format version; `writer` is the version of condshap that wrote it."""
    if found != wanted:
        raise StorageError(
            f"{what} must have format version {wanted}, got {found!r}, written by condshap {writer}. Read it with that "
            "version of condshap, or make it again."
        )


def damaged(must: str, error: Exception, advice: str = "Save it again.") -> StorageError:
    """Error for something stored with a part missing or changed; `must` says what it must be."""
    return StorageError(f"{must}, but part of it is missing or damaged: {error!r}. {advice}")


@contextmanager
def clear_damage(must: str, advice: str = "Save it again.") -> Iterator[None]:
    """Turn whatever goes wrong while something damaged is put together again into a StorageError."""
    try:
        yield
    except (CondShapError, Warning, MemoryError):
        raise
    except Exception as error:  # facts that were changed by hand can fail in any way
        raise damaged(must, error, advice) from error


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file, and the checks on the way from its bytes to what it holds.

    Attributes
    ----------
    name : in the header
    what : for messages, with its article
    container : the format around it, for messages
    advice : what to do about a damaged file
    """

    name: str
    what: str
    container: str
    advice: str = "Save it again."

    def read(self, path: Path) -> bytes:
        """All bytes of a file."""
        try:
            return path.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise StorageError(f"{self.what} must be an existing file, got '{path}'. Check the path.") from None
        except (OSError, ValueError) as error:  # a path with a null character is a ValueError
            raise self._unreadable(path, error) from None

    @contextmanager
    def opening(self, path: Path) -> Iterator[None]:
        """Turn what goes wrong while a container is opened into a StorageError."""
        try:
            yield
        except (CondShapError, Warning):
            raise
        except Exception as error:  # each library has errors of its own; a forged size is a MemoryError
            raise self._unreadable(path, error) from None

    def new_header(self, **facts: Any) -> str:
        """Header of a file of this kind."""
        return new_header(self.name, **facts)

    def read_header(self, path: Path, text: str | bytes | None) -> dict[str, Any]:
        """Parse and check the header of a file; one without a header is not ours."""
        if text is None:
            raise StorageError(f"{self._must(path)}, but is some other {self.container} file. Check the path.")
        return read_header(text, self.name, f"'{path}'")

    def check_seal(self, path: Path, content: bytes) -> None:
        """Refuse a file whose bytes are not those that were written."""
        if not is_sealed(content):
            raise self.damaged(path, ValueError("its checksum does not match its contents"))

    def damaged(self, path: Path, error: Exception) -> StorageError:
        """Error for a file with a part missing or changed."""
        return damaged(self._must(path), error, self.advice)

    @contextmanager
    def clear_damage(self, path: Path) -> Iterator[None]:
        """Turn what goes wrong while a file's content is put together again into a StorageError."""
        with clear_damage(self._must(path), self.advice):
            yield

    def _must(self, path: Path) -> str:
        return f"'{path}' must be {self.what} saved by condshap"

    def _unreadable(self, path: Path, error: Exception) -> StorageError:
        return StorageError(
            f"'{path}' must be a complete {self.container} file, but cannot be read: {str(error) or repr(error)}. "
            f"{self.advice} Or check the path."
        )


EXPLAINER = FileKind("explainer", "an explainer", "safetensors")
EXPLANATION = FileKind("explanation", "an explanation", "Parquet")
LOSS_EXPLANATION = FileKind("loss explanation", "a loss explanation", "Parquet")
NETWORKS = FileKind("networks", "a VAEAC", "safetensors")
