"""Differences between rows and draws -> whether draws look like rows, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from condshap.exceptions import listing
from condshap.numerics.likeness import FREQUENCY, LIMITS, LOCATION, SPREAD
from condshap.numerics.readable import fixed, typed

_KEPT = 20


@dataclass(frozen=True, slots=True)
class Departure:
    """One way in which draws differ from rows.

    Attributes
    ----------
    approach : name of the approach that drew
    known : columns that were known when the others were drawn
    kind : "dependence" of two columns, "curved dependence" with the square of one of them, "frequency" of a level, or
        "location" or "spread" of a number
    columns : the two columns, or the one
    what : the same in words: "carat", "carat squared", "cut = Ideal"; "state (by price)" is a column of more than 12 levels
        as a number, the mean of the normal scores of the price over other rows of the state
    rows, draws : the figure for rows and for draws. Dependence is the correlation of normal scores and indicators of levels,
        for two unknown columns after a regression on the known ones; a location is in standard deviations, a spread
        relative to that of the rows
    size : the difference; for frequencies in standard deviations, for spreads 1 - smaller / larger
    z : the difference in standard errors
    is_sure : whether it is beyond chance
    """

    approach: str
    known: tuple[str, ...]
    kind: str
    columns: tuple[str, ...]
    what: tuple[str, ...]
    rows: float
    draws: float
    size: float
    z: float
    is_sure: bool

    @property
    def share(self) -> float:
        """The difference relative to the smallest that matters, which is doubled with nothing known: no value uses that."""
        return self.size / LIMITS[self.kind] / (1 if self.known else 2)

    @property
    def is_large(self) -> bool:
        """Whether it is beyond chance, and so large that it matters."""
        return self.is_sure and self.share >= 1

    @property
    def given(self) -> str:
        """What was known, in words."""
        return f"given {listing(self.known, 3)}" if self.known else "with nothing known"

    def __str__(self) -> str:
        """Describe the difference in words."""
        names = " and ".join(f"'{what}'" for what in self.what)
        if self.kind == FREQUENCY:
            return f"the frequency of {names} {self.given} is {self.draws:.1%} in draws, {self.rows:.1%} in rows"
        if self.kind == LOCATION:
            return f"{names} {self.given} is {_text(self.draws, signed=True)} standard deviations off"
        if self.kind == SPREAD:
            return f"the spread of {names} {self.given} is {self.draws:.2f} times that in rows"
        return f"the correlation of {names} {self.given} is {_text(self.draws)} in draws, {_text(self.rows)} in rows"


def _text(value: float, *, signed: bool = False) -> str:
    return typed(fixed(value, 2, signed=signed))


@dataclass(frozen=True, slots=True, repr=False)
class DrawCheck:
    """Whether draws of the unknown columns look like the training rows.

    Attributes
    ----------
    score : largest difference beyond chance, relative to the smallest that matters for its kind: 0 where chance explains
        everything, 1 or more if draws do not look like rows
    n_rows : training rows that were compared with their draws
    n_coalitions : coalitions that were checked, with no, one, half and all but one of the players
    n_differences : differences that were checked; by chance alone all stay within `critical` in 99 of 100 fits
    critical : number of standard errors from which a difference is beyond chance
    columns : columns with a difference that is both beyond chance and large, the worst first
    n_large : number of such differences, counting at most one of each kind per pair of columns
    worst : the largest differences, at most one of each kind per pair of columns; empty if none is worth a look
    """

    score: float
    n_rows: int
    n_coalitions: int
    n_differences: int
    critical: float
    columns: tuple[str, ...]
    n_large: int
    worst: tuple[Departure, ...]

    @property
    def looks_right(self) -> bool:
        """Whether no difference is both beyond chance and large."""
        return self.score < 1

    @property
    def large(self) -> tuple[Departure, ...]:
        """Differences that are both beyond chance and large, as far as `worst` has them."""
        return tuple(one for one in self.worst if one.is_large)

    def __repr__(self) -> str:
        """Describe in words what was found."""
        return f"DrawCheck: {self.text}"

    @property
    def text(self) -> str:
        """What was found, in a sentence or two."""
        compared = f"{self.n_rows} rows, {self.n_coalitions} coalitions, score {self.score:.2f}"
        if self.looks_right:
            return f"draws look like rows ({compared}; 1 or more would be a difference that matters)."
        return f"draws do not look like rows in columns {listing(self.columns, 8)} ({compared}): {self.example}."

    @property
    def example(self) -> str:
        """The worst difference, and how many more there are."""
        more = self.n_large - 1
        others = f", and {more} more differences" if more > 1 else ", and one more difference" if more else ""
        return f"{self.large[0]}{others}"

    def to_frame(self) -> pd.DataFrame:
        """One line per difference, the worst first."""
        heads = ("approach", "known", "kind", "columns", "rows", "draws", "size", "z", "is_sure", "is_large")
        lines = [
            {
                **asdict(one),
                "columns": " and ".join(one.what),
                "known": ", ".join(one.known),
                "is_large": one.is_large,
            }
            for one in self.worst
        ]
        return pd.DataFrame(lines, columns=list(heads))

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DrawCheck:
        """Inverse of `to_json`."""
        worst = tuple(Departure(**_with_tuples(one)) for one in stored["worst"])
        return cls(**{**_with_tuples(stored), "worst": worst})


def _with_tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}


def judge(
    found: Sequence[Departure], *, n_rows: int, n_coalitions: int, n_differences: int, critical: float
) -> DrawCheck:
    """Draw the conclusion from all departures."""
    order = sorted(found, key=lambda one: (one.is_large, one.is_sure, one.share), reverse=True)
    first: dict[tuple[str, frozenset[str]], Departure] = {}
    for one in order:
        first.setdefault((one.kind, frozenset(one.columns)), one)
    large = [one for one in first.values() if one.is_large]
    return DrawCheck(
        score=max((one.share for one in found if one.is_sure), default=0.0),
        n_rows=n_rows,
        n_coalitions=n_coalitions,
        n_differences=n_differences,
        critical=critical,
        columns=tuple(dict.fromkeys(name for one in large for name in one.columns)),
        n_large=len(large),
        worst=tuple(first.values())[:_KEPT],
    )
