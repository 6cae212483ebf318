"""Explanation -> a swarm of points per player: how large, in which direction and for which values."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.lines import Line2D

from condshap.explanation import Explanation
from condshap.games.loss_explanation import LossExplanation
from condshap.plots.selection import make_lines, one_loss, one_output
from condshap.plots.style import (
    LABEL_SIZE,
    add_legend,
    colour_bar,
    height_of,
    list_names,
    low_to_high,
    name_output,
    new_axes,
    shorten,
)
from condshap.plots.swarm import swarm
from condshap.plots.value_axis import is_missing
from condshap.tables.reading import Column
from condshap.types import Floats
from condshap.views.palette import DARK

PLAIN = "#8C8C8C"
"""Points whose colour says nothing: categories, groups, missing values, added-up players."""


def beeswarm(
    explanation: Explanation | LossExplanation,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley values of all rows, one line per player, coloured by the value of the feature.

    Of a loss explanation: by how much players lower the losses of the rows.

    Parameters
    ----------
    output : name or position of the output, if the model has several
    max_features : number of lines; players beyond that are added up row by row

    Notes
    -----
    Colours run from the 5 % to the 95 % quantile of a feature. Categories, groups of features and "N others" are grey,
    and missing values are grey rings.
    """
    chosen = (
        one_loss(explanation, output) if isinstance(explanation, LossExplanation) else one_output(explanation, output)
    )
    lines = make_lines(np.abs(chosen.values).mean(axis=0), max_features)
    shown = lines.add_up(chosen.values)
    ax = new_axes(ax, 7.0, height_of(len(lines), 0.42))
    ax.axvline(0.0, color=DARK, linewidth=0.8, zorder=0)
    extent = float(np.ptp(np.append(shown, 0.0)))
    columns = [*(chosen.columns[player] for player in lines.shown), *[None] * (len(lines.rest) > 0)]
    found = [_draw_line(ax, line, shown[:, line], column, extent) for line, column in enumerate(columns)]
    if extent == 0:
        ax.set_xlim(-1.0, 1.0)
    list_names(ax, lines.label([shorten(name) for name in chosen.names]))
    ax.set_xlabel(chosen.words.value + chosen.words.unit, fontsize=LABEL_SIZE)
    name_output(ax, chosen.output)
    if any(colours for colours, _ in found):
        _colour_bar(ax)
    if any(gaps for _, gaps in found):
        ring = Line2D([], [], marker="o", linestyle="", markersize=4, markerfacecolor="white", markeredgecolor=PLAIN)
        add_legend(ax, ["missing"], [ring])
    return ax


def _draw_line(ax: Axes, line: int, values: Floats, column: Column | None, extent: float) -> tuple[bool, bool]:
    """Draw points (R,) of one player; whether some have a colour, and whether some values are missing."""
    heights = line - swarm(values, extent)
    size = float(np.clip(2000 / len(values), 3, 14))
    style: dict[str, Any] = {"s": size, "linewidths": 0.6, "rasterized": len(values) > 1000}
    missing = np.zeros(len(values), dtype=bool) if column is None else is_missing(column)
    if missing.any():
        ax.scatter(values[missing], heights[missing], facecolors="white", edgecolors=PLAIN, **style)
    here = ~missing
    if column is None or column.numbers is None:
        ax.scatter(values[here], heights[here], color=PLAIN, **style)
        return False, bool(missing.any())
    shades = shades_of(column.numbers)[here]
    ax.scatter(values[here], heights[here], c=shades, cmap=low_to_high(), vmin=0.0, vmax=1.0, **style)
    return bool(here.any()), bool(missing.any())


def shades_of(numbers: Floats) -> Floats:
    """Numbers (n,) -> 0 for the 5 % quantile and below to 1 for the 95 % quantile and above; NaN stays."""
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        return numbers
    low, high = np.quantile(present, [0.05, 0.95])
    if low == high:
        low, high = present.min(), present.max()
    if low == high:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    return np.asarray(np.clip((numbers - low) / (high - low), 0.0, 1.0))


def _colour_bar(ax: Axes) -> None:
    bar = colour_bar(ax, ScalarMappable(cmap=low_to_high()), "feature value", ticks=[0, 1])
    bar.set_yticklabels(["low", "high"])
