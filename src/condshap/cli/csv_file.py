"""A CSV file -> a table: text exactly as written, and missing values only where the cell cannot mean anything else."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condshap.cli.screen import say
from condshap.exceptions import SchemaError, listing

if TYPE_CHECKING:
    import pandas as pd

    from condshap.schema import FeatureSchema

_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


def read_csv(path: Path, is_text: Mapping[str, bool], used: Collection[str] | None) -> pd.DataFrame:
    """Read a CSV file; columns of text become categories.

    An empty cell is missing. Words such as NA, NaN, null and None are missing in columns of numbers and booleans; in a
    column of text they are text.

    Parameters
    ----------
    is_text : column name -> whether the column holds text, where other rows tell
    used : names of the columns that matter, None for all
    """
    frame = _parse(path)
    names = [str(name) for name in frame.columns]
    known = {name: is_text.get(name, _holds_text(frame[name])) for name in names}
    unclear = [name for name in names if name not in is_text and frame[name].isna().all()]
    again = [j for j, name in enumerate(names) if known[name] or name in unclear]
    cells = _read_cells(path, again)
    for j in again:
        name = names[j]
        if known[name]:
            _announce_words(path, name, frame[name], cells[j])
            frame = frame.assign(**{name: cells[j].astype("category")})
        elif cells[j].notna().any() and (used is None or name in used):
            raise _unclear(path, name, cells[j])
    labels = [name for name in names if frame[name].dtype == object and _is_boolean(frame[name])]  # with gaps
    return frame.astype(dict.fromkeys(labels, "category"))


def _parse(path: Path) -> pd.DataFrame:
    """Columns as pandas reads them; rows with more cells than names are refused, because pandas would guess an index."""
    import pandas as pd

    exact: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}  # later the only way
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame: pd.DataFrame = pd.read_csv(path, low_memory=False, index_col=False, **exact)
        except pd.errors.ParserWarning:
            raise SchemaError(
                f"'{path}' must have a name for every column, got rows with more cells than names. Write a complete header."
            ) from None
    large = {
        str(name): frame[name].map(int, na_action="ignore").astype(object) for name in frame if _is_large(frame[name])
    }
    return frame.assign(**large)


def _is_large(column: Any) -> bool:
    """Whether integers, one of them beyond 64 bits, were left as text, as by pandas before version 3."""
    return column.dtype == object and column.notna().any() and all(map(_INTEGER.fullmatch, map(str, column.dropna())))


def text_columns(known: pd.DataFrame | FeatureSchema) -> dict[str, bool]:
    """Map the column names of a table or a schema to whether the column holds text."""
    import pandas as pd

    if isinstance(known, pd.DataFrame):
        return {str(name): _holds_text(known[name]) for name in known.columns}
    return {one.name: any(isinstance(level, str) for level in one.levels or ()) for one in known.features}


def _holds_text(column: Any) -> bool:
    values = column.cat.categories if column.dtype == "category" else column
    if values.dtype == object:
        return any(isinstance(value, str) for value in values)
    return str(values.dtype).startswith("str")


def _is_boolean(column: Any) -> bool:
    """Whether an object column holds booleans; other object columns without text hold integers beyond 64 bits."""
    return all(isinstance(value, bool) for value in column.dropna())


def _read_cells(path: Path, positions: list[int]) -> dict[int, pd.Series[str]]:
    """Columns at these positions, exactly as written; empty cells are missing."""
    import pandas as pd

    if not positions:
        return {}
    frame = pd.read_csv(path, index_col=False, usecols=positions, dtype=str, keep_default_na=False, na_values=[""])
    return {j: frame.iloc[:, i] for i, j in enumerate(positions)}


def _announce_words(path: Path, name: str, column: Any, cells: pd.Series[str]) -> None:
    words = sorted(set(cells[column.isna() & cells.notna()]))
    if words:
        say(
            f"Note: column '{name}' of '{path}' holds text, so {listing(words)} are levels like any other. Leave a cell "
            "empty if its value is missing."
        )


def _unclear(path: Path, name: str, cells: pd.Series[str]) -> SchemaError:
    words = listing(sorted(set(cells.dropna())))
    return SchemaError(
        f"column '{name}' of '{path}' must have a cell that shows whether it holds numbers or text, got only {words}. "
        "Leave a cell empty if its value is missing, or save the table as Parquet, which stores types."
    )
