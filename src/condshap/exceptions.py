"""What can go wrong, as one small tree.

::

    CondShapError
    ├── SchemaError (ValueError)      a table that does not fit: columns, kinds, levels, missing values
    ├── CoalitionError (ValueError)   coalitions or groups that do not make sense
    ├── ApproachError (ValueError)    an unknown approach, or one that breaks the protocol
    ├── ModelError (ValueError)       a model that cannot be called, or does not return numbers
    ├── OptionError (ValueError)      an option outside its range
    ├── StorageError (ValueError)     a saved file that cannot be read
    ├── ClusterError (RuntimeError)   a cluster that cannot be reached, is gone, or whose workers die
    ├── MissingPackageError (ImportError)   a package of an optional extra
    └── NotFittedError (ValueError, AttributeError)
    CondShapWarning (UserWarning)     the result is right, but something deserves a look

Every message says what was expected, what was received (at most five items), where, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable


class CondShapError(Exception):
    """Base class of all errors raised on purpose by condshap."""


class SchemaError(CondShapError, ValueError):
    """A table that does not fit the schema or the approach; `rows` are the positions of rows that the message names."""

    def __init__(self, message: str = "", rows: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.rows = list(rows)


class CoalitionError(CondShapError, ValueError):
    """Coalitions, weights or groups that cannot be used."""


class ApproachError(CondShapError, ValueError):
    """An unknown approach, or an object that does not obey the protocol."""


class ModelError(CondShapError, ValueError):
    """A model that cannot be called or does not return finite numbers."""


class OptionError(CondShapError, ValueError):
    """An option outside its range."""


class StorageError(CondShapError, ValueError):
    """A saved file that is damaged, foreign or of another format version."""


class ClusterError(CondShapError, RuntimeError):
    """A cluster that cannot be reached, has gone away, or whose workers die."""


class MissingPackageError(CondShapError, ImportError):
    """A package of an optional extra is not installed."""


class NotFittedError(CondShapError, ValueError, AttributeError):
    """`explain` was called before `fit`."""


class CondShapWarning(UserWarning):
    """The numbers are right, but the user should know something about them."""


def listing(items: Iterable[object], limit: int = 5) -> str:
    """Write at most `limit` items as a list and say how many were left out.

    >>> listing(["a", "b"])
    "['a', 'b']"
    >>> listing(range(7))
    '[0, 1, 2, 3, 4, ... 2 more]'
    """
    shown = [repr(item) for item in items]
    if len(shown) > limit:
        shown = [*shown[:limit], f"... {len(shown) - limit} more"]
    return "[" + ", ".join(shown) + "]"
