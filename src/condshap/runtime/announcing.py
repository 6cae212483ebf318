"""Warnings that are said aloud and written down: what is said while rows are explained belongs to the explanation too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from condshap.exceptions import CondShapWarning

_HEARD: ContextVar[list[str] | None] = ContextVar("_HEARD", default=None)


def announce(text: str, *, stacklevel: int) -> None:
    """Warn, and let whoever listens write it down; `stacklevel` counts from the caller, as for `warnings.warn`."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(text)
    warnings.warn(text, CondShapWarning, stacklevel=stacklevel + 1)


@contextmanager
def overheard() -> Iterator[list[str]]:
    """List of what `announce` says in the meantime, in this thread.

    >>> with overheard() as heard, warnings.catch_warnings(action="ignore"):
    ...     announce("look here", stacklevel=1)
    >>> heard
    ['look here']
    """
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)
