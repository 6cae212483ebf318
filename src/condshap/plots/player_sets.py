"""Interactions -> what one plot of them shows: one output, sets of several players, and what single players add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, listing
from condshap.games.interactions import Interactions
from condshap.plots.style import shorten
from condshap.types import Floats, Indices
from condshap.views.rows import find_row

_LONGEST_LABEL = 54  # characters of all players of a set together


@dataclass(frozen=True, slots=True, eq=False)
class OneOutput:
    """Interactions of one output.

    Attributes
    ----------
    sets : (K,) sets of at least two players, by size
    values, errors : (R, K); errors are 0 where they are not known
    single : (R, P) what the same index has for single players
    names : of the P players
    row_labels : of the R rows
    index : which interactions these are
    output : name of the output where there are several, else None
    """

    sets: tuple[tuple[int, ...], ...]
    values: Floats
    errors: Floats
    single: Floats
    names: tuple[str, ...]
    row_labels: pd.Index[Any]
    index: str
    output: str | None

    def label(self, which: int) -> str:
        """Names of the players of a set."""
        members = self.sets[which]
        return " × ".join(shorten(self.names[j], _LONGEST_LABEL // len(members)) for j in members)

    def matrix(self, values: Floats) -> Floats:
        """Symmetric matrix (P, P) of values (K,) of all sets; NaN on its diagonal."""
        found = np.full((len(self.names),) * 2, np.nan)
        for members, value in zip(self.sets, values, strict=True):
            if len(members) == 2:
                found[members] = found[members[::-1]] = value
        return found

    def at(self, row: object) -> tuple[Floats, Floats, str]:
        """Values and errors (K,) of a row, or their mean sizes over all rows if that is None, and which of these it is."""
        if row is None:
            text = f"mean |{self.index}| of {len(self.values)} rows"
            return np.abs(self.values).mean(axis=0), self.errors.mean(axis=0), text
        found = find_row(self.row_labels, row)
        return self.values[found], self.errors[found], self.index


def one_output(interactions: Interactions, output: str | int | None = None) -> OneOutput:
    """Choose an output by name or position; what is not finite is refused."""
    if not isinstance(interactions, Interactions):
        raise OptionError(
            f"a plot of interactions must get Interactions, got {type(interactions).__name__}. Pass what "
            "explanation.interactions() returns."
        )
    if len(interactions) == 0:
        raise OptionError("a plot must get interactions of at least one row, got none. Explain some rows.")
    which = interactions.find_output(output)
    several = tuple(members for members in interactions.values if len(members) > 1)
    single = tuple(members for members in interactions.values if len(members) == 1)

    def stacked(by_set: dict[tuple[int, ...], Floats], sets: tuple[tuple[int, ...], ...]) -> Floats:
        found = np.stack([by_set[members] for members in sets], axis=1)  # (R, K) or (R, K, O)
        return found if which is None else found[..., which]

    values = stacked(interactions.values, several)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise OptionError(
            f"interactions must be finite to be drawn, got NaN or infinite ones in rows {listing(bad.tolist())}. Leave "
            "these rows out, e.g. explanation[:5].interactions()."
        )
    return OneOutput(
        several,
        values,
        np.nan_to_num(stacked(interactions.std_errors, several)),
        stacked(interactions.values, single),
        interactions.player_names,
        interactions.row_labels,
        interactions.index,
        None if which is None else interactions.output_names[which],
    )


def busiest_players(chosen: OneOutput, values: Floats, most: int) -> Indices:
    """At most `most` players, in their order, with the largest interactions of pairs, given values (K,) of all sets."""
    sizes = np.nansum(np.abs(chosen.matrix(values)), axis=0)
    return np.sort(np.argsort(-sizes, kind="stable")[:most])
