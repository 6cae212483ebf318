"""Timeline, lags, horizon -> lagged table: a row per time with the past of all variables, and what came after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, SchemaError, listing
from condshap.games.timeline import Timeline
from condshap.options import check_integer
from condshap.types import Indices


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a lagged table: `variable` at `offset` times after the last known one, as `name`."""

    variable: str
    offset: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """What a row of a lagged table holds, for a timeline.

    Attributes
    ----------
    cells : columns of the table, variable by variable, from lag 1 backwards, then steps ahead
    first, last : positions of the first and the last time with a complete window
    """

    timeline: Timeline
    cells: tuple[Cell, ...]
    horizon: int

    @classmethod
    def of(
        cls,
        timeline: Timeline,
        lags: Any,
        horizon: Any,
        exogenous_lags: Any = 0,
        known_ahead: bool | Sequence[str] | None = None,
    ) -> Windows:
        """Check lags and horizon, and lay out the columns."""
        n_lags, n_steps = check_integer("lags", lags, least=1), check_integer("horizon", horizon, least=1)
        n_other = check_integer("exogenous_lags", exogenous_lags, least=0)
        names = list(timeline.exogenous.columns)
        if not names and (n_other or known_ahead):
            raise OptionError("exogenous_lags and known_ahead need exogenous variables, got none. Pass exogenous.")
        ahead = _known_ahead(known_ahead, names, n_other)
        unused = [name for name in names if not n_other and name not in ahead]
        if unused:
            raise OptionError(
                f"exogenous variables must have lags or be known ahead, got neither for {listing(unused)}. Set "
                "exogenous_lags to at least 1, or leave them out."
            )
        cells = [cell for name in timeline.series.columns for cell in _past(name, n_lags)]
        for name in names:
            cells += _past(name, n_other)
            cells += [Cell(name, k, f"{name} t+{k}") for k in range(1, n_steps + 1)] if name in ahead else []
        return cls(timeline, tuple(cells), n_steps)

    @property
    def first(self) -> int:
        """Position of the first time with all of its lags."""
        return -min(cell.offset for cell in self.cells)

    @property
    def last(self) -> int:
        """Position of the last time whose values ahead are all there."""
        reach = max(0, *(cell.offset for cell in self.cells))
        return min(len(self.timeline), len(self.timeline.exogenous) - reach) - 1

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps ahead: t+1, t+2, ..."""
        return tuple(f"t+{k}" for k in range(1, self.horizon + 1))

    def groups(self) -> dict[str, list[str]]:
        """Columns of every variable."""
        found: dict[str, list[str]] = {}
        for cell in self.cells:
            found.setdefault(cell.variable, []).append(cell.name)
        return found

    def rows(self, origins: Indices) -> pd.DataFrame:
        """Rows (n, M) for the times at positions `origins` (n,), with the dtypes of the variables."""
        tables = (self.timeline.series, self.timeline.exogenous)
        columns = {name: table[name] for table in tables for name in table.columns}
        index = self.timeline.times[origins]
        made = {cell.name: columns[cell.variable].iloc[origins + cell.offset].set_axis(index) for cell in self.cells}
        return pd.DataFrame(made, index=index)

    def targets(self, origins: Indices) -> pd.DataFrame:
        """What came after (n, horizon), of the first series."""
        series = self.timeline.series.iloc[:, 0]
        index = self.timeline.times[origins]
        after = {name: series.iloc[origins + k].set_axis(index) for k, name in enumerate(self.steps, start=1)}
        return pd.DataFrame(after, index=index)


def lagged_table(
    series: Any,
    *,
    lags: int,
    horizon: int,
    exogenous: Any = None,
    exogenous_lags: int = 0,
    known_ahead: bool | Sequence[str] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of lags and what came after them: what a model is trained on that `explain_forecast` is to explain.

    Parameters
    ----------
    series : (T,) or (T, A) numbers in the order of time: NumPy, pandas or Polars; the first column is forecast
    lags : values of each series in a row, the last known one first
    horizon : steps ahead
    exogenous : (T or more, B) other variables, numbers or levels, at the same times and perhaps further
    exogenous_lags : past values of each exogenous variable in a row
    known_ahead : exogenous variables whose values over the horizon are known in advance, such as weekdays, and in the row:
        True for all, False for none, or names. None means all of them where `exogenous_lags` is 0, else none

    Returns
    -------
    X : (n, M) table with a row for each time t that has all of its lags, and all of what came after; columns are, for every
        series and then every exogenous variable, ``"name lag 1"`` (its value at t), ``"name lag 2"`` (one step before), ...,
        then ``"name t+1"``, ... where it is known ahead
    y : (n, horizon) table with columns ``"t+1"``, ``"t+2"``, ...: the first series at these times. Times with a gap among
        them are left out; gaps among lags stay

    Examples
    --------
    >>> X, y = lagged_table([1.0, 2.0, 4.0, 8.0, 16.0], lags=2, horizon=1)
    >>> X.assign(y=y["t+1"])
       y lag 1  y lag 2     y
    1      2.0      1.0   4.0
    2      4.0      2.0   8.0
    3      8.0      4.0  16.0
    """
    timeline = Timeline.read(series, exogenous)
    windows = Windows.of(timeline, lags, horizon, exogenous_lags, known_ahead)
    origins = np.arange(windows.first, min(windows.last, len(timeline) - 1 - windows.horizon) + 1)
    if len(origins):
        origins = origins[windows.targets(origins).notna().all(axis=1).to_numpy()]
    if not len(origins):
        raise SchemaError(
            f"series must have at least one time with {windows.first + 1} values up to it and {windows.horizon} known "
            f"values after it, got {len(timeline)} times, none of them like that. Pass a longer series, or use fewer lags "
            "or a shorter horizon."
        )
    return windows.rows(origins), windows.targets(origins)


def _past(name: str, n: int) -> list[Cell]:
    return [Cell(name, 1 - k, f"{name} lag {k}") for k in range(1, n + 1)]


def _known_ahead(given: Any, names: Sequence[str], n_lags: int) -> set[str]:
    """Names of the exogenous variables whose values ahead are in a row."""
    if given is None or isinstance(given, bool):
        return set(names) if (n_lags == 0 if given is None else given) else set()
    wanted = [given] if isinstance(given, str) else list(given) if np.iterable(given) else [given]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise OptionError(
            f"known_ahead must be True, False or names of exogenous variables among {listing(names)}, got "
            f"{listing(unknown)}."
        )
    return set(wanted)
