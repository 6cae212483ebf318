"""Find approaches by folder: the file name is the approach's name, imported on demand."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from condshap.exceptions import ApproachError
from condshap.options import did_you_mean

_NOT_APPROACHES = {"base"}


def available_approaches() -> tuple[str, ...]:
    """Names of all approaches, sorted.

    >>> "gaussian" in available_approaches()
    True
    """
    return tuple(sorted(m.name for m in iter_modules(__path__) if m.name not in _NOT_APPROACHES and m.name[0] != "_"))


def find_approach(name: str) -> Any:
    """Class of the approach called `name`."""
    if name not in available_approaches():
        names = list(available_approaches())
        raise ApproachError(
            f"approach must be a known name, got '{name}'. {did_you_mean(name, names)}Choose one of {names}."
        )
    return import_module(f"{__name__}.{name}").APPROACH


def __getattr__(attribute: str) -> Any:
    """Classes by their own names, e.g. ``condshap.approaches.Gaussian``, imported on demand."""
    for name in available_approaches():
        if name.replace("_", "") == attribute.lower():
            return find_approach(name)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
