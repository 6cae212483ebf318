"""Native table -> its format: all that makes encoded rows a table of the type that the model was trained with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from condshap.tables.backends import backend_of, column_names
from condshap.tables.column_formats import ColumnFormat, array_formats, arrow_like_format, pandas_format
from condshap.tables.decoding import write_numpy, write_pandas, write_polars, write_pyarrow
from condshap.tables.reading import Levels, plain_array
from condshap.types import Floats, Rows, Table


@dataclass(frozen=True, slots=True)
class TableFormat:
    """How encoded rows become a native table again, of the type that the model was trained with.

    `backend` is "pandas", "polars", "pyarrow" or "numpy"; for NumPy every column has the array's dtype. `header` is the
    column index of a pandas frame.
    """

    backend: str
    columns: tuple[ColumnFormat, ...]
    header: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, X: Table, levels: Sequence[Levels | None]) -> TableFormat:
        """Remember type, names and dtypes of `X`; `levels` holds the levels of each column, None for numbers."""
        backend = backend_of(X)
        if backend == "numpy":
            return cls("numpy", array_formats(plain_array(X), levels))
        if backend == "pandas":
            columns = (pandas_format(X.iloc[:, j], name, levels[j]) for j, name in enumerate(X.columns))
            return cls("pandas", tuple(columns), X.columns)
        names = column_names(X)
        return cls(backend, tuple(arrow_like_format(X[name], name, levels[j]) for j, name in enumerate(names)))

    @property
    def names(self) -> list[Any]:
        """Column names as the table spells them."""
        return [column.name for column in self.columns]

    def reordered(self, order: Sequence[int]) -> TableFormat:
        """Same format with columns taken from the given positions."""
        header = None if self.header is None else self.header.take(list(order))
        return replace(self, columns=tuple(self.columns[j] for j in order), header=header)

    def with_dtypes_of(self, other: TableFormat) -> TableFormat:
        """Same table with the dtypes of another one of the same type, except for floating-point numbers."""
        if self.backend != other.backend:
            return self
        pairs = zip(self.columns, other.columns, strict=True)
        return replace(self, columns=tuple(a if b.is_float else replace(b, name=a.name) for a, b in pairs))

    def as_array(self) -> TableFormat | None:
        """The same columns as one float array; None if some labels are not numbers."""
        if any(column.has_text for column in self.columns):
            return None
        columns = (ColumnFormat(column.name, column.levels, np.dtype(np.float64)) for column in self.columns)
        return TableFormat("numpy", tuple(columns))

    def as_pandas(self, names: Sequence[Any]) -> TableFormat:
        """The same columns as a pandas frame with other names; text becomes 'category', which every model reads."""
        columns = (column.as_pandas(name) for column, name in zip(self.columns, names, strict=True))
        return TableFormat("pandas", tuple(columns), pd.Index(list(names)))

    def write(self, rows: Rows) -> Table:
        """Encoded rows (n, M) -> native table with n rows. Plain float tables share the memory of `rows`."""
        if self.backend == "pandas":
            return write_pandas(rows, self.columns, self.header)
        write = {"polars": write_polars, "pyarrow": write_pyarrow, "numpy": write_numpy}[self.backend]
        return write(rows, self.columns)

    def describe(self, row: Floats) -> str:
        """One encoded row (M,) in words, at most five features, missing ones first."""
        shown = sorted(range(len(row)), key=lambda j: not np.isnan(row[j]))[:5]
        cells = (f"{self.columns[j].name}={_cell(row[j], self.columns[j].levels)}" for j in shown)
        rest = f", ... {len(row) - 5} more" if len(row) > 5 else ""
        return "{" + ", ".join(cells) + rest + "}"


def _cell(value: float, levels: Levels | None) -> str:
    if np.isnan(value):
        return "missing"
    return f"{value:.6g}" if levels is None else repr(levels[int(value)])
