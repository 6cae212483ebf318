"""Explanation -> points: value of a feature against its Shapley value, with a histogram of the values below."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.plots.selection import OneOutput, find_player, one_output
from condshap.plots.style import (
    LABEL_SIZE,
    MARKERS,
    VALUE_SIZE,
    add_legend,
    colour_bar,
    low_to_high,
    name_output,
    new_axes,
    open_frame,
    round_ticks,
    shorten,
)
from condshap.plots.swarm import swarm
from condshap.plots.value_axis import ValueAxis, is_missing
from condshap.tables.reading import Column
from condshap.types import Floats, Masks
from condshap.views.palette import CYCLE, DARK, GREY, LOWERS

_BAND = 0.2  # share of the height that the histogram takes
_BINS = 30
_LONGEST_TITLE = 24  # characters, of the legend


def scatter(
    explanation: Explanation,
    feature: str | int,
    *,
    color: str | int | None = None,
    output: str | int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley values of a feature against its values, one point per row.

    Parameters
    ----------
    feature : name or position of a player that is a single feature
    color : name or position of another feature whose values colour the points; None for one colour
    output : name or position of the output, if the model has several

    Notes
    -----
    Each level has its own strip, and so do missing values. The bars below count the rows.
    """
    chosen = one_output(explanation, output)
    player = find_player(chosen.names, feature)
    column = _column(chosen, player)
    axis, values = ValueAxis.of([column]), chosen.values[:, player]
    places = axis.place(column)
    strips = axis.is_strip(column)
    shifted = places.copy()
    for place in np.unique(places[strips]):
        at = strips & (places == place)
        shifted[at] += swarm(values[at], float(np.ptp(values)), half=axis.strip_width(), step=0.1 * axis.strip_width())
    ax = new_axes(ax, 6.0, 4.2)
    ax.axhline(0.0, color=DARK, linewidth=0.8, zorder=0)
    _draw_points(ax, shifted, values, None if color is None else _column(chosen, find_player(chosen.names, color)))
    axis.dress(ax, "x")
    _draw_counts(ax, places, strips, values)
    ax.tick_params(axis="y", labelsize=VALUE_SIZE)
    ax.set_ylabel(chosen.words.value + chosen.words.unit, fontsize=LABEL_SIZE)
    open_frame(ax)
    name_output(ax, chosen.output)
    return ax


def _column(chosen: OneOutput, player: int) -> Column:
    column = chosen.columns[player]
    if column is None:
        raise OptionError(
            f"a scatter plot needs a single feature, got the group '{chosen.names[player]}', which has no value of its "
            "own. Use plots.beeswarm, or explain without groups."
        )
    return column


def _draw_points(ax: Axes, x: Floats, y: Floats, colour: Column | None) -> None:
    size = float(np.clip(4000 / len(x), 4, 18))
    style: dict[str, Any] = {"s": size, "linewidths": 0.6, "alpha": 0.8, "rasterized": len(x) > 1000}
    if colour is None:
        ax.scatter(x, y, color=LOWERS, **style)
        return
    by = ValueAxis.of([colour])
    missing = is_missing(colour)
    absent = ax.scatter(x[missing], y[missing], facecolors="white", edgecolors=DARK, **style)
    here = ~missing
    if by.levels is None:
        drawn = ax.scatter(x[here], y[here], c=by.place(colour)[here], cmap=low_to_high(), **style)
        colour_bar(ax, drawn, shorten(by.name), of_feature=True)
        if missing.any():
            add_legend(ax, ["missing"], [absent])
        return
    strips, drawn_levels = by.place(colour), []
    for i, label in enumerate(by.labels):
        at = here & (strips == i)
        look: dict[str, Any] = {"color": CYCLE[i % len(CYCLE)], "marker": MARKERS[(i + i // len(CYCLE)) % len(MARKERS)]}
        drawn_levels.append((ax.scatter(x[at], y[at], **look, **style), label))
    handles, labels = zip(*drawn_levels, *[(absent, "missing")] * bool(missing.any()), strict=True)
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    title = shorten(by.name, _LONGEST_TITLE)
    ax.legend(handles, labels, title=title, fontsize=VALUE_SIZE, title_fontsize=VALUE_SIZE, **beside)


def _draw_counts(ax: Axes, places: Floats, strips: Masks, values: Floats) -> None:
    """Histogram of numbers, and a bar per strip, in a band below the points."""
    _leave_room(ax, values)
    span = float(np.ptp(ax.get_xlim()))
    edges = _edges(places[~strips], span)
    at, times = np.unique(places[strips], return_counts=True)
    width = 0.5 if strips.all() else 0.06 * span
    heights = np.append(np.histogram(places[~strips], edges)[0] if len(edges) > 1 else [], times)
    ax.bar(
        np.append(edges[:-1], at - width / 2), _BAND * 0.9 * heights / heights.max(),
        np.append(np.diff(edges), np.full(len(at), width)), align="edge", color=GREY, edgecolor="white", linewidth=0.4,
        transform=ax.get_xaxis_transform(), zorder=0,
    )  # fmt: skip


def _edges(numbers: Floats, span: float) -> Floats:
    """Edges of bins; one narrow bin for a constant, none for no numbers."""
    if len(numbers) == 0 or np.ptp(numbers) == 0:
        return np.asarray([number + end * span for number in numbers[:1] for end in (-0.02, 0.02)])
    return np.histogram_bin_edges(numbers, min(_BINS, max(5, len(numbers) // 5)))


def _leave_room(ax: Axes, values: Floats) -> None:
    """Set the y-axis so that a band below the points stays free, without ticks beside it."""
    low, high = float(min(values.min(), 0.0)), float(max(values.max(), 0.0))
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    reach = high - low
    marks = np.asarray(round_ticks(6).tick_values(low, high))
    ax.set_yticks(marks[(marks >= low - 0.05 * reach) & (marks <= high + 0.05 * reach)])
    ax.set_ylim(low - reach * (0.08 + _BAND / (1 - _BAND)), high + 0.05 * reach)
