"""Bytes -> file, whole or not at all: the only place that writes what a user keeps.

The bytes go to a file of a name of its own in the same folder, which then takes the place of the old one in one step of the
system. A full disk, a limit, a kill or a second writer leaves either the old file or a new one, never a part of one.
Lines are added to a file in one step as well, and one that was never finished stays a line of its own.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from condshap.exceptions import StorageError


def write_whole(path: str | Path, content: bytes | str, what: str) -> None:
    """Write a file; one that exists is replaced once the new one is complete.

    Parameters
    ----------
    path : links are followed; what is no file, such as a pipe or ``/dev/null``, is written to as it is
    content : text is written as UTF-8, with ``?`` for what UTF-8 has no code for
    what : for messages, such as "an explanation"
    """
    data = content.encode("utf-8", errors="replace") if isinstance(content, str) else content
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError("it is a folder")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise StorageError(
            f"{what} must be saved to a writable path, got '{path}': {_reason(error)}. Choose another path, or make "
            "room there."
        ) from None


def _reason(error: OSError | ValueError) -> str:
    """What went wrong, without the name of the file that was to take the place of the other."""
    return str(getattr(error, "strerror", None) or error)


def _replace(target: Path, data: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError("it is write-protected")
    partial = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # else a crash of the machine could leave the new name without its bytes
        if mode is not None:
            partial.chmod(mode)
        partial.replace(target)
    except BaseException:  # also where somebody presses Ctrl-C
        with suppress(OSError):
            partial.unlink()
        raise


def append_line(path: Path, line: str, what: str) -> None:
    """Add a line to a file, which is made if there is none; several processes may do so, and their lines do not mix.

    `what` the lines are is for messages. After a line that another process could not finish, this one begins anew.
    """
    data = (line + "\n").encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:  # one call of the system
            written = file.write(data if _ends_with_its_line(path) else b"\n" + data)
        if written is None or written < len(data):
            raise OSError(f"only {written} of {len(data)} bytes found room")
    except OSError as error:
        raise StorageError(
            f"{what} must be written to {path}, but that failed: {_reason(error)}. Make room there, or choose another path."
        ) from error


def _ends_with_its_line(path: Path) -> bool:
    """Whether the last line of a file, if there is one, was written to its end."""
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def write_figure(figure: Any, path: str | Path, **options: Any) -> None:
    """Write a matplotlib figure in the format of the path's ending; `options` go to ``savefig``."""
    from io import BytesIO

    picture = BytesIO()
    figure.savefig(picture, format=Path(path).suffix[1:].lower() or "png", **options)
    write_whole(path, picture.getvalue(), "a picture")
