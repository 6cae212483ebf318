"""Interactions -> colours: every pair of players as a cell, for one row or on average."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from condshap.games.interactions import Interactions
from condshap.options import check_integer
from condshap.plots.player_sets import busiest_players, one_output
from condshap.plots.style import (
    LABEL_SIZE,
    VALUE_SIZE,
    amounts,
    colour_bar,
    lowers_to_raises,
    name_output,
    new_axes,
    open_frame,
    shorten,
)
from condshap.types import Floats
from condshap.views.palette import DARK, NEUTRAL

_MOST_WRITTEN = 10
"""Players up to which the numbers are written into the cells."""
_LONGEST_BELOW = 20  # characters of a name below the cells, where it stands upright
_DIAGONAL = "#E6E6E6"


def interactions(
    pairs: Interactions,
    row: Any = 0,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the interactions of all pairs of players as colours.

    Parameters
    ----------
    row : position of the row; None for the mean size over all rows
    output : name or position where the model has several
    max_features : players; those with the smallest interactions are left out, and the label below says how many

    Notes
    -----
    Orange-red pairs raise the prediction by more, together, than apart; blue ones by less. Where features depend on each
    other, part of this is their dependence and not the model: two features that tell the same raise a prediction less
    together than apart.
    """
    chosen = one_output(pairs, output)
    values, _, text = chosen.at(row)
    players = busiest_players(chosen, values, check_integer("max_features", max_features, least=2))
    shown = chosen.matrix(values)[np.ix_(players, players)]
    n, largest = len(players), float(np.nanmax(np.abs(shown))) or 1.0
    ax = new_axes(ax, 4.0 + 0.5 * n, 1.6 + 0.36 * n)
    has_signs = row is not None
    colours = lowers_to_raises() if has_signs else LinearSegmentedColormap.from_list("sizes", ["#FFFFFF", NEUTRAL])
    low = -largest if has_signs else 0.0
    drawn = ax.imshow(
        shown, aspect="auto", cmap=colours.with_extremes(bad=_DIAGONAL), vmin=low, vmax=largest, interpolation="nearest"
    )
    ax.set_yticks(np.arange(n), [shorten(chosen.names[j]) for j in players], fontsize=LABEL_SIZE)
    below = [shorten(chosen.names[j], _LONGEST_BELOW) for j in players]
    ax.set_xticks(np.arange(n), below, fontsize=VALUE_SIZE, rotation=90)
    ax.tick_params(length=0)
    open_frame(ax, "left", "bottom")
    if n <= _MOST_WRITTEN:
        _write_numbers(ax, shown, signed=has_signs)
    left_out = len(chosen.names) - n
    if left_out:
        ax.set_xlabel(
            f"{left_out} player{'s' * (left_out > 1)} with smaller interactions left out", fontsize=LABEL_SIZE
        )
    colour_bar(ax, drawn, text)
    name_output(ax, chosen.output)
    return ax


def _write_numbers(ax: Axes, shown: Floats, *, signed: bool) -> None:
    texts = amounts(np.nan_to_num(shown).ravel(), signed=signed)
    strong = 0.6 * float(np.nanmax(np.abs(shown)))
    for k, (i, j) in enumerate(np.ndindex(*shown.shape)):
        if i != j:
            colour = "white" if abs(shown[i, j]) > strong else DARK
            ax.text(j, i, texts[k], ha="center", va="center", fontsize=7, color=colour)
