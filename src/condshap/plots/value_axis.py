"""Columns -> places on an axis: numbers as they are, levels as strips, missing values as a strip of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError
from condshap.plots.style import (
    LABEL_SIZE,
    VALUE_SIZE,
    Readable,
    round_ticks,
    shorten,
)
from condshap.tables.reading import Column
from condshap.types import Floats, Masks
from condshap.views.palette import GREY

MOST_LEVELS = 12
"""Strips of levels; the rarest ones share the last."""
_LONGEST_LEVEL = 18


@dataclass(frozen=True, slots=True, eq=False)
class ValueAxis:
    """Where the values of a feature stand.

    Attributes
    ----------
    name : of the feature
    levels : level as text -> its strip, a whole number; None for numbers
    labels : of the strips
    low, high : ends of what is not missing
    missing_at : place of missing values; None where there are none
    """

    name: str
    levels: dict[str, int] | None
    labels: tuple[str, ...]
    low: float
    high: float
    missing_at: float | None

    @classmethod
    def of(cls, columns: Sequence[Column]) -> ValueAxis:
        """Room for all values of columns that mean the same feature in different tables."""
        name = columns[0].name
        has_gaps = any(is_missing(column).any() for column in columns)
        if any(column.numbers is None for column in columns):
            levels, labels = _strips(columns)
            return cls(name, levels, labels, 0.0, len(labels) - 1.0, float(len(labels)) if has_gaps else None)
        numbers = np.concatenate([column.numbers for column in columns if column.numbers is not None])
        present = numbers[np.isfinite(numbers)]
        low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)
        beyond = high + 0.15 * (high - low or 1.0)
        return cls(name, None, (), low, high, beyond if has_gaps else None)

    @property
    def extent(self) -> float:
        """Length of the axis."""
        return (self.high if self.missing_at is None else self.missing_at) - self.low

    def place(self, column: Column) -> Floats:
        """Places (n,) of the values of a column."""
        gaps = np.nan if self.missing_at is None else self.missing_at
        if self.levels is None:
            assert column.numbers is not None
            return np.where(np.isnan(column.numbers), gaps, column.numbers)
        codes = np.full(0, -1) if column.codes is None else column.codes
        places = np.array([*(self.levels.get(str(level), np.nan) for level in column.levels), gaps])
        return np.asarray(places[codes])

    def is_strip(self, column: Column) -> Masks:
        """Where (n,) values stand on a strip, that is, share one place."""
        return is_missing(column) if self.levels is None else np.ones(len(is_missing(column)), dtype=bool)

    def strip_width(self) -> float:
        """Half the width of a strip, which points may use."""
        return 0.35 if self.levels is not None else 0.04 * (self.high - self.low or 1.0)

    def dress(self, ax: Axes, which: Literal["x", "y"], *, label: bool = True, ticks: int = 5) -> None:
        """Write ticks and name, and set off missing values by a line."""
        axis = ax.xaxis if which == "x" else ax.yaxis
        ends = (self.low, self.high if self.missing_at is None else self.missing_at)
        margin = 0.5 if self.levels is not None else 0.05 * (ends[1] - ends[0] or 1.0)
        (ax.set_xlim if which == "x" else ax.set_ylim)(ends[0] - margin, ends[1] + margin)
        if self.levels is None:
            axis.set_major_formatter(Readable(of_feature=True))
        if self.levels is not None:
            axis.set_ticks(np.arange(len(self.labels)), self.labels)
        elif self.missing_at is not None:
            marks = np.asarray(round_ticks(ticks).tick_values(self.low, self.high))
            reach = self.high - self.low or 1.0
            axis.set_ticks(marks[(marks >= self.low - 0.02 * reach) & (marks <= self.high + 0.02 * reach)])
        else:
            axis.set_major_locator(round_ticks(ticks))
        if self.missing_at is not None:
            axis.set_ticks([self.missing_at], ["missing"], minor=True)
            edge = (self.high + self.missing_at) / 2
            (ax.axvline if which == "x" else ax.axhline)(edge, color=GREY, linewidth=0.8, linestyle=":")
        turned = self._turn() if which == "x" else {}
        axis.set_tick_params(which="both", labelsize=VALUE_SIZE, length=3.5, **turned)
        if label:
            (ax.set_xlabel if which == "x" else ax.set_ylabel)(shorten(self.name), fontsize=LABEL_SIZE)

    def _turn(self) -> dict[str, Any]:
        """Long or many labels below an axis stand upright."""
        crowded = sum(len(label) + 2 for label in self.labels) > 60
        return {"labelrotation": 90.0} if crowded else {}


def is_missing(column: Column) -> Masks:
    """Where (n,) a column has no value."""
    if column.numbers is not None:
        return np.asarray(np.isnan(column.numbers))
    assert column.codes is not None
    return np.asarray(column.codes < 0)


def _strips(columns: Sequence[Column]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Levels that occur, in the order of their dtype; the rarest of many share the last strip."""
    counts: Counter[str] = Counter()
    order: dict[str, None] = {}
    for column in columns:
        if column.codes is None:
            raise OptionError(
                f"column '{column.name}' must hold levels in all tables, got numbers in one. Convert it in all of them."
            )
        order |= dict.fromkeys(str(level) for level in column.levels)
        found, times = np.unique(column.codes[column.codes >= 0], return_counts=True)
        counts.update({str(column.levels[code]): int(n) for code, n in zip(found, times, strict=True)})
    present = [level for level in order if counts[level]]
    kept = present if len(present) <= MOST_LEVELS else _frequent(present, counts)
    strips = {level: kept.index(level) if level in kept else len(kept) for level in present}
    others = len(present) - len(kept)
    labels = [shorten(level, _LONGEST_LEVEL) for level in kept] + ([f"{others} others"] if others else [])
    return strips, tuple(labels)


def _frequent(levels: list[str], counts: Counter[str]) -> list[str]:
    best = sorted(levels, key=lambda level: -counts[level])[: MOST_LEVELS - 1]
    return [level for level in levels if level in best]
