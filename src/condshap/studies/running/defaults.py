"""Which default a result was made by: a method's results of older versions of condshap count until its numbers change."""

from __future__ import annotations

import re

import condshap
from condshap.exceptions import OptionError
from condshap.studies.running.methods import find_method
from condshap.studies.running.store import Key, Store

CHANGES = 1
"""How often a default has changed since `condshap.__version__` was given its value: 0 for every new version."""
VERSION = f"{condshap.__version__}+{CHANGES}" if CHANGES else condshap.__version__
"""What stands in the key of a result."""
FIRST = "0.1.0"
CHANGED = {"vaeac": "0.2.0+1"}
"""Version since which an approach's default gives other numbers, by more than rounding; the others count since the first."""


def since(method: str) -> str:
    """Version from which on results of a method are by its present default.

    The paper's settings are no default. Of an approach by its import path nobody knows, so this version alone counts.

    >>> since("vaeac-uniform"), since("vaeac-paper"), since("gaussian:n_samples=16")
    ('0.2.0+1', '0.1.0', '0.1.0')
    """
    if method == "truth":
        return FIRST
    found = find_method(method)
    if "." in found.approach:
        return VERSION
    return FIRST if found.is_paper else CHANGED.get(found.approach, FIRST)


def is_present(key: Key) -> bool:
    """Whether a result is by its method's present default: neither by an older version, nor by one of the future."""
    try:
        start = since(key.method)
    except OptionError:  # a method that is no more
        return False
    return _parts(start) <= _parts(key.version) <= _parts(VERSION)


def outdated(study: str, store: Store) -> list[str]:
    """Versions that wrote results of a study into a store by other than the present defaults, the oldest first."""
    return by_age({key.version for key in store.read() if key.study == study and not is_present(key)})


def by_age(versions: set[str]) -> list[str]:
    """Versions, the oldest first.

    >>> by_age({"0.10.0", "0.2.0+1", "0.2.0"})
    ['0.2.0', '0.2.0+1', '0.10.0']
    """
    return sorted(versions, key=_parts)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
