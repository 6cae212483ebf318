"""Row that is named by its position, or by its label in the index of a pandas table -> its position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, SchemaError, listing
from condshap.options import check_integer
from condshap.types import Indices, Table

_LABEL = "label:"
_LABELS = (str, tuple, date, np.datetime64)  # what can only be labels where several rows may be named


def labels_of(table: Table, n_rows: int) -> pd.Index[Any]:
    """Labels of the rows of a table: the index in pandas, else their positions."""
    return table.index if isinstance(table, pd.DataFrame) else pd.RangeIndex(n_rows)


def in_index(table: Table, rows: Sequence[int]) -> str:
    """Say what rows at positions are called in the index of a pandas table, after a message that names the positions.

    >>> in_index(pd.DataFrame({"x": [1, 2]}, index=["A17", "A18"]), [1])
    " In the index, these rows are ['A18']."
    """
    if len(rows) == 0 or not isinstance(table, pd.DataFrame) or not _are_own(table.index):
        return ""
    return f" In the index, these rows are {listing(table.index.take(rows).tolist())}."


@contextmanager
def with_labels(table: Table) -> Iterator[None]:
    """Let an error that names rows of a table by their positions name them by their labels as well."""
    try:
        yield
    except SchemaError as error:
        error.args = (f"{error}{in_index(table, error.rows)}",)
        raise


def with_draws(table: Table, labels: pd.Index[Any], n_draws: int) -> Table:
    """A pandas table of draws, n for each row, indexed by row and draw; other tables as they are."""
    if not isinstance(table, pd.DataFrame):
        return table
    names = ["row", "draw"] if labels.nlevels == 1 and labels.name is None else [*labels.names, "draw"]
    rows = labels.repeat(n_draws)
    levels = [rows.get_level_values(i) for i in range(rows.nlevels)]
    draws = np.tile(np.arange(n_draws), len(labels))
    return table.set_index(pd.MultiIndex.from_arrays([*levels, draws], names=names))


def find_row(labels: pd.Index[Any], row: Any) -> int:
    """Position of a row; negative positions count from the end.

    Integers are positions, whatever the index holds, because the order of rows is what users of arrays mean. Anything else
    is a label; text also finds labels that print like it, such as dates, and "label:7" the label 7.

    >>> find_row(pd.Index(["a", "b", "c"]), "b"), find_row(pd.Index([7, 8, 9]), "label:8"), find_row(pd.Index([7, 8]), -1)
    (1, 1, 1)
    """
    if hasattr(row, "__index__") and not isinstance(row, bool):
        return _by_position(labels, row)
    found = np.flatnonzero(_is_label(labels, row))
    if len(found) == 1:
        return int(found[0])
    if len(found):
        raise OptionError(
            f"row must be the label of one row, but rows {listing(found.tolist())} all have {row!r}. Pass a position."
        )
    raise OptionError(
        f"row must be a position below {len(labels)} or the label of a row, such as {labels[0]!r}, got {row!r}."
        if len(labels) and _are_own(labels)
        else f"row must be a position below {len(labels)}, because these rows have no labels of their own, got {row!r}."
    )


def row_positions(labels: pd.Index[Any], rows: Any) -> Indices:
    """Positions of rows that are given by a position, a label, a slice, a list of positions or labels, or a mask.

    A position out of range is an IndexError, by which loops over rows end.
    """
    if isinstance(rows, _LABELS):
        return np.array([find_row(labels, rows)])
    if isinstance(rows, (list, pd.Index, pd.Series, np.ndarray)) and any(isinstance(row, _LABELS) for row in rows):
        return np.array([find_row(labels, row) for row in rows])
    n_rows = len(labels)
    try:
        return np.atleast_1d(np.arange(n_rows)[rows])
    except (IndexError, TypeError, ValueError):
        if isinstance(rows, (int, np.integer)):
            raise IndexError(f"row must be a position below {n_rows}, the number of rows, got {rows!r}.") from None
        raise OptionError(
            f"rows must be positions below {n_rows}, labels, a slice of positions or a mask of {n_rows} entries, got "
            f"{listing(rows) if isinstance(rows, list) else repr(rows)}. Write e.g. [0, 1] or 0:2."
        ) from None


def _are_own(labels: pd.Index[Any]) -> bool:
    """Whether labels say more than positions do."""
    return not (isinstance(labels, pd.RangeIndex) and labels.start == 0 and labels.step == 1)


def _by_position(labels: pd.Index[Any], row: Any) -> int:
    n_rows, is_label = len(labels), _are_own(labels) and row in labels
    hint = f" For the row with the label {row}, write '{_LABEL}{row}'." if is_label else ""
    try:
        whole = check_integer("row", row, least=-n_rows)
    except OptionError as error:
        raise OptionError(f"{error}{hint}") from None
    if whole >= n_rows:
        raise OptionError(f"row must be a position below {n_rows}, the number of explained rows, got {row!r}.{hint}")
    return whole % n_rows


def _is_label(labels: pd.Index[Any], row: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row (R,) has the label that is given, or a label that prints like it."""
    same = np.array([_equal(label, row) for label in labels], dtype=bool)
    if same.any() or not isinstance(row, str):
        return same
    text = row.removeprefix(_LABEL)
    days = (
        labels.astype(str) if isinstance(labels, pd.DatetimeIndex) else labels.map(str)
    )  # "2024-01-31" for a midnight
    return np.asarray(labels.map(str) == text) | np.asarray(days == text)


def _equal(label: Any, row: Any) -> bool:
    try:
        return bool(label == row)
    except (TypeError, ValueError):  # labels of any type, compared with anything
        return False
