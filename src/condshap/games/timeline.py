"""Series and exogenous variables as users hold them -> tables ordered in time, and positions of times."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import CondShapWarning, OptionError, SchemaError, listing
from condshap.runtime.announcing import level_of_user
from condshap.tables.reading import plain_array, to_pandas
from condshap.types import Indices

_WIDE = 1.5
"""Steps of the usual length from which on times seem to be missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Variables at T times.

    Attributes
    ----------
    series : (T, A) what is forecast, in its first column, and other series of which only the past is known
    exogenous : (T or more, B) other variables; rows beyond T are values that are known in advance
    is_array : whether all of it came as NumPy arrays
    """

    series: pd.DataFrame
    exogenous: pd.DataFrame
    is_array: bool

    def __len__(self) -> int:
        """Return the number of times T at which the series is known."""
        return len(self.series)

    @property
    def times(self) -> pd.Index[Any]:
        """Labels (T,) of the times; 0, 1, ... where there are none."""
        return self.series.index

    @classmethod
    def read(cls, series: Any, exogenous: Any = None) -> Timeline:
        """Check that times are in order, and that both tables are about the same ones."""
        left = _read(series, "series", "y")
        for name, dtype in zip(left.columns, left.dtypes, strict=True):
            if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
                raise SchemaError(
                    f"series must hold numbers, got column '{name}' of dtype {dtype}. Convert it, or pass it as exogenous."
                )
        right = pd.DataFrame(index=left.index) if exogenous is None else _read(exogenous, "exogenous", "x")
        _check_together(left, right)
        _warn_if_uneven(left.index)
        arrays = all(isinstance(one, np.ndarray) for one in (series, exogenous) if one is not None)
        return cls(left, right, arrays)

    def find(self, at: Any) -> Indices:
        """Positions of times that are given by positions or labels, in the order given, or by a slice or mask."""
        if isinstance(at, slice):
            found = self._find_slice(at)
        else:
            several = [at] if isinstance(at, str) or np.ndim(at) == 0 else list(at)
            if len(several) > 1 and all(isinstance(one, (bool, np.bool_)) for one in several):
                found = self._find_mask(several)
            else:
                found = np.array([self._find_one(one) for one in several], dtype=np.intp)
        if not len(found):
            raise OptionError(f"at must name at least one time to explain, got none with {at!r}. {self._span()}")
        return found

    def _find_one(self, at: Any) -> int:
        n = len(self)
        is_whole = hasattr(at, "__index__") and not isinstance(at, (bool, np.bool_))
        if is_whole and self._goes_by_place:
            if not -n <= int(at) < n:
                raise OptionError(f"at must be positions below {n}, the number of times, got {at!r}. {self._span()}")
            return int(at) % n
        try:
            found: Any = None if isinstance(at, (bool, np.bool_)) else self.times.get_loc(at)
        except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError):
            found = None
        if found is None:
            raise OptionError(f"at must be times of the series, but {at!r} is not one. {self._span()}")
        places = np.arange(n)[found].ravel()
        if len(places) != 1:
            raise OptionError(
                f"at must name single times, got {at!r}, which stands for {len(places)}. Write them in full."
            )
        return int(places[0])

    def _find_mask(self, at: list[Any]) -> Indices:
        if len(at) != len(self):
            raise OptionError(f"a mask of times must have {len(self)} entries, one for each, got {len(at)}.")
        return np.flatnonzero(at)

    def _find_slice(self, at: slice) -> Indices:
        ends = [end for end in (at.start, at.stop) if end is not None]
        if self._goes_by_place and all(hasattr(end, "__index__") for end in ends):
            return np.arange(len(self))[at]
        try:
            return np.arange(len(self))[self.times.slice_indexer(at.start, at.stop, at.step)]
        except (KeyError, TypeError, ValueError):
            raise OptionError(f"at must be a slice of times of the series, got {at!r}. {self._span()}") from None

    @property
    def _goes_by_place(self) -> bool:
        """Whether integers are positions; times that are numbers themselves, such as years, are labels."""
        return _is_plain(self.times) or not pd.api.types.is_numeric_dtype(self.times.dtype)

    def _span(self) -> str:
        return f"The series goes from {self.name_of(0)} to {self.name_of(len(self) - 1)}."

    def name_of(self, position: int) -> str:
        """Time at a position, for messages."""
        return f"position {position}" if _is_plain(self.times) else f"'{self.times[position]}' (position {position})"


def _is_plain(times: pd.Index[Any]) -> bool:
    """Whether times are only numbered."""
    return isinstance(times, pd.RangeIndex) and times.start == 0 and times.step == 1


def _read(given: Any, what: str, letter: str) -> pd.DataFrame:
    """A table or a single column as a pandas table with names as text, its rows in the order of time."""
    if isinstance(given, (list, tuple)):
        try:
            given = np.asarray(given)
        except ValueError as error:  # rows of different lengths
            raise SchemaError(
                f"{what} must be a table with a row per time, got a list that cannot be one: {error}."
            ) from None
    if isinstance(given, np.ndarray) and given.ndim in (1, 2):
        values = plain_array(given)
        names = [letter] if values.ndim == 1 else [f"{letter}{j}" for j in range(values.shape[1])]
        frame = to_pandas(values.reshape(len(values), len(names))).set_axis(names, axis=1)
    else:
        if hasattr(given, "to_frame") and not hasattr(given, "columns"):  # one column of pandas or Polars
            given = given.to_frame(given.name if given.name not in (None, "") else letter)
        frame = to_pandas(given)
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not len(frame) or not len(frame.columns):
        raise SchemaError(
            f"{what} must have rows and columns, got shape {frame.shape}. Pass a table with a row per time."
        )
    _check_order(frame.index, what)
    return frame


def _check_order(times: pd.Index[Any], what: str) -> None:
    """Refuse times that are not in order: lags would be those of other times."""
    if isinstance(times, pd.MultiIndex):
        raise SchemaError(f"{what} must have one level of times, got {times.nlevels}. Explain one series at a time.")
    advice = (
        "Sort it with sort_index(), or number its rows with reset_index(drop=True) if they are in chronological order."
    )
    if times.hasnans:
        raise SchemaError(f"{what} must have a time in every row, got missing ones in its index. Drop these rows.")
    if not times.is_unique:
        again = times[times.duplicated()].unique()
        raise SchemaError(
            f"{what} must have one row per time, got several for {listing(map(str, again))}. Keep one row of each."
        )
    if not times.is_monotonic_increasing:
        order = np.arange(1, len(times))
        try:
            order = order[np.asarray(times[1:] < times[:-1])]
        except TypeError:  # labels of several types have no order
            order = order[:1]
        raise SchemaError(
            f"{what} must be in chronological order, got '{times[order[0]]}' after '{times[order[0] - 1]}'. {advice}"
        )


def _warn_if_uneven(times: pd.Index[Any]) -> None:
    """Warn where times seem to be missing, as lags are counted in rows; jitter and lengths of months are no reason."""
    if isinstance(times, pd.DatetimeIndex) and (times.day_of_week < 5).all() and times.normalize().is_unique:
        dates = times.tz_localize(None).to_numpy().astype("datetime64[D]")
        places = np.busday_count(dates[0], dates).astype(np.float64)  # no weekends are missing from working days
    elif isinstance(times, (pd.DatetimeIndex, pd.PeriodIndex, pd.TimedeltaIndex)):
        places = times.asi8.astype(np.float64)
    elif pd.api.types.is_numeric_dtype(times.dtype) and not _is_plain(times):
        places = times.to_numpy(dtype=np.float64)
    else:
        return
    steps = np.diff(places)
    wide = np.flatnonzero(steps > _WIDE * np.median(steps)) if len(steps) else steps
    if len(wide):
        i = int(wide[0])
        warnings.warn(
            f"times should be evenly spaced, because a lag is one row, but {len(wide)} of {len(steps)} steps are much wider "
            f"than the others, the first one from '{times[i]}' to '{times[i + 1]}'. Reindex the series if times are "
            "missing, which makes them gaps, or number its rows with reset_index(drop=True) if they are not.",
            CondShapWarning,
            stacklevel=level_of_user(),
        )


def _check_together(series: pd.DataFrame, exogenous: pd.DataFrame) -> None:
    """Refuse exogenous variables of other times than the series, and names that stand for two variables."""
    twice = [name for name in exogenous.columns if name in set(series.columns)]
    if twice:
        raise SchemaError(f"series and exogenous must have different names, got {listing(twice)} in both. Rename them.")
    n = len(series)
    if len(exogenous) < n:
        raise SchemaError(
            f"exogenous must have a row for each of the {n} times of the series, got {len(exogenous)} rows. It may go on "
            "beyond the series, but not end before it."
        )
    ours, theirs = series.index, exogenous.index[:n]
    if ours.equals(theirs):
        return
    numbered = [one for one in (ours, theirs) if _is_plain(one)]
    if len(numbered) == 1 and not all(pd.api.types.is_integer_dtype(one.dtype) for one in (ours, theirs)):
        return  # one table has times and the other only numbers its rows: they go by position
    first = int(np.flatnonzero(np.asarray(ours.astype(object) != theirs.astype(object)))[0])
    raise SchemaError(
        f"exogenous must have the times of the series, but row {first} is '{theirs[first]}' in exogenous and "
        f"'{ours[first]}' in the series. Reindex it, or number the rows of both with reset_index(drop=True)."
    )
