"""Owen values of one row -> steps of a waterfall: unions, and the players of those that are unfolded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.exceptions import OptionError, listing
from condshap.games.owen import OwenValues, Union
from condshap.plots.selection import OneOutput, make_lines
from condshap.plots.style import shorten, with_value


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a waterfall: a bar, or the head of the `n_below` lines that follow and add up to its value."""

    label: str
    value: float
    error: float
    n_below: int = 0


def union_steps(owen: OwenValues, chosen: OneOutput, row: int, unfold: Any, max_features: int) -> list[Step]:
    """Steps from the top: unions by size of their totals, with their parts below them where they are unfolded.

    Parameters
    ----------
    chosen : the Owen values of one output
    unfold : None or False for none, True for all, or names of unions; one inside another opens that one, too
    max_features : parts of one level; those beyond are added up
    """
    opened = _opened(owen.unions, unfold)
    which = None if chosen.output is None else owen.output_names.index(chosen.output)
    cell = (row,) if which is None else (row, which)

    def one(part: Union | int) -> tuple[str, float, float]:
        if isinstance(part, Union):
            error = float(np.nan_to_num(owen.union_std_errors[part.name][cell]))
            return shorten(part.name), float(owen.union_values[part.name][cell]), error
        label = with_value(chosen.names[part], chosen.columns[part], row)
        return label, float(chosen.values[row, part]), float(chosen.errors[row, part])

    def level(parts: tuple[Union | int, ...]) -> list[Step]:
        labels, values, errors = zip(*(one(part) for part in parts), strict=True)
        lines = make_lines(np.abs(values), max_features)
        steps: list[Step] = []
        for k in lines.shown:
            part = parts[k]
            is_open = isinstance(part, Union) and part.name in opened
            below = level(part.parts()) if is_open and isinstance(part, Union) else []
            steps += [Step(labels[k] + ":" * bool(below), values[k], errors[k], len(below)), *below]
        if len(lines.rest):
            rest = lines.rest  # the standard error of a sum is at most the sum of the standard errors
            steps.append(Step(f"{len(rest)} others", np.take(values, rest).sum(), np.take(errors, rest).sum()))
        return steps

    return level(owen.unions)


def _opened(unions: tuple[Union, ...], unfold: Any) -> set[str]:
    """Names of the unions whose parts are shown."""
    names = [one.name for union in unions for one in (union, *union.inside)]
    if unfold is None or isinstance(unfold, bool):
        return set(names) if unfold else set()
    wanted = {unfold} if isinstance(unfold, str) else set(unfold) if isinstance(unfold, Iterable) else {repr(unfold)}
    if not wanted <= set(names):
        raise OptionError(f"unfold must be True or names of unions among {listing(names)}, got {unfold!r}.")
    outer = {union.name for union in unions for inner in union.inside if inner.name in wanted}
    return wanted | outer
