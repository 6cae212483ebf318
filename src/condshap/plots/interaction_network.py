"""Interactions -> network: players on a circle, joined by lines as thick as their interactions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from condshap.games.interactions import Interactions
from condshap.options import check_integer
from condshap.plots.player_sets import OneOutput, busiest_players, one_output
from condshap.plots.style import (
    LABEL_SIZE,
    VALUE_SIZE,
    amounts,
    name_output,
    new_axes,
    shorten,
)
from condshap.types import Floats, Indices
from condshap.views.palette import DARK, LOWERS, RAISES
from condshap.views.rows import find_row

_LONGEST = 24  # characters of a name beside the circle
_THICKEST, _LARGEST_DOT, _SMALLEST_DOT = 9.0, 26.0, 5.0  # points
_BESIDE = 1.2  # radii, where names stand
_SURE = 1.96
_FAINT = 0.3
_LEAST_SHARE = 0.02
"""Of the largest interaction: lines of smaller ones would not be seen."""


def interaction_network(
    pairs: Interactions,
    row: Any = 0,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the players of one row on a circle, joined by their interactions.

    Parameters
    ----------
    row : position or index label of the row
    output : name or position where the model has several
    max_features : players; those with the smallest interactions are left out

    Notes
    -----
    Lines are as thick as interactions of pairs are large, and dots as large as what players add by themselves. Orange-red
    raises the prediction; blue, with dashed lines and square dots, lowers it. Faint lines may be noise: their 95 % interval
    contains 0. Part of an interaction of features that depend on each other is this dependence, not the model.
    """
    chosen = one_output(pairs, output)
    row = find_row(pairs.row_labels, row)
    values, errors, _ = chosen.at(row)
    players = busiest_players(chosen, values, check_integer("max_features", max_features, least=2))
    ax = new_axes(ax, 8.0, 5.2)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(players)) / len(players)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    _draw_lines(ax, chosen.matrix(values), chosen.matrix(errors), players, places)
    _draw_dots(ax, chosen, chosen.single[row, players], players, places)
    ax.set_aspect("equal")
    ax.set_xlim(-1.25, 1.25)
    ax.set_ylim(-1.4, 1.3)
    ax.axis("off")
    largest = float(np.max(np.abs(values)))
    handles = [
        Line2D([], [], color=RAISES, linewidth=4.0, marker="o", markersize=9),
        Line2D([], [], color=LOWERS, linewidth=4.0, marker="s", markersize=9, linestyle="--"),
    ]
    size = amounts(np.array([largest]), signed=False)[0]
    labels = [f"raises the prediction ({chosen.index}, at most {size})", "lowers it"]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02), "borderaxespad": 0.0}
    ax.legend(handles, labels, **place, ncols=2, fontsize=VALUE_SIZE, frameon=False)
    name_output(ax, chosen.output)
    return ax


def _draw_lines(ax: Axes, values: Floats, errors: Floats, players: Indices, places: Floats) -> None:
    largest = float(np.nanmax(np.abs(values))) or 1.0
    for a, b in combinations(range(len(players)), 2):
        value, error = values[players[a], players[b]], errors[players[a], players[b]]
        if abs(value) < _LEAST_SHARE * largest:
            continue
        ax.plot(
            *places[[a, b]].T,
            color=RAISES if value > 0 else LOWERS,
            linestyle="-" if value > 0 else (0, (2.0, 1.0)),
            linewidth=_THICKEST * abs(value) / largest,
            alpha=0.85 if abs(value) > _SURE * error else _FAINT,
            solid_capstyle="butt",
            zorder=1,
        )


def _draw_dots(ax: Axes, chosen: OneOutput, single: Floats, players: Indices, places: Floats) -> None:
    largest = float(np.max(np.abs(single))) or 1.0
    for (x, y), value, player in zip(places, single, players, strict=True):
        size = _SMALLEST_DOT + (_LARGEST_DOT - _SMALLEST_DOT) * np.sqrt(abs(value) / largest)
        colour, marker = (RAISES, "o") if value >= 0 else (LOWERS, "s")
        ax.plot(x, y, markersize=size, markeredgecolor="white", color=colour, marker=marker, zorder=2)
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        name = shorten(chosen.names[player], _LONGEST)
        ax.text(_BESIDE * x, _BESIDE * y, name, ha=side, va="center", fontsize=LABEL_SIZE, color=DARK)
