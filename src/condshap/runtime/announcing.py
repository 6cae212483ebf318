"""Warnings that are said aloud and written down: what is said while rows are explained belongs to the explanation too."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from condshap.exceptions import CondShapWarning

_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_HEARD: ContextVar[list[str] | None] = ContextVar("_HEARD", default=None)


def announce(text: str) -> None:
    """Warn, and let whoever listens write it down."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(text)
    warnings.warn(text, CondShapWarning, stacklevel=level_of_user())


def level_of_user() -> int:
    """The `stacklevel` with which the caller's warnings name the line that called condshap: the user's, not one of ours."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def overheard() -> Iterator[list[str]]:
    """List of what `announce` says in the meantime, in this thread.

    >>> with overheard() as heard, warnings.catch_warnings(action="ignore"):
    ...     announce("look here")
    >>> heard
    ['look here']
    """
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)
