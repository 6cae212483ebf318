"""Explanation -> colours: players by rows, with the predictions above."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from condshap.explanation import Explanation
from condshap.plots.selection import OneOutput, make_lines, one_output
from condshap.plots.style import (
    LABEL_SIZE,
    VALUE_SIZE,
    amounts,
    colour_bar,
    give_room,
    height_of,
    lowers_to_raises,
    name_output,
    new_axes,
    open_frame,
    shorten,
)
from condshap.types import Floats, Indices
from condshap.views.palette import DARK, GREY

_MOST_WRITTEN = 10
"""Rows up to which the numbers are written into the cells."""


def heatmap(
    explanation: Explanation,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley values of all rows as colours, one line per player, with rows sorted by their prediction.

    Parameters
    ----------
    output : name or position of the output, if the model has several
    max_features : number of lines; players beyond that are added up row by row

    Notes
    -----
    If there are few rows, the cells show their numbers. The curve above shows the predictions, the dotted line the base
    value.
    """
    chosen = one_output(explanation, output)
    order = np.argsort(chosen.predictions, kind="stable")
    lines = make_lines(np.abs(chosen.values).mean(axis=0), max_features)
    shown = lines.add_up(chosen.values)[order].T  # (L, R)
    ax = new_axes(ax, 7.5, height_of(len(lines)) + 0.8)
    above = give_room(ax, 0.6 / (0.6 + 0.32 * len(lines)), above=True)
    largest = float(np.abs(shown).max()) or 1.0
    drawn = ax.imshow(
        shown, aspect="auto", cmap=lowers_to_raises(), vmin=-largest, vmax=largest, interpolation="nearest"
    )
    ax.set_yticks(np.arange(len(lines)), lines.label([shorten(name) for name in chosen.names]), fontsize=LABEL_SIZE)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if len(order) <= _MOST_WRITTEN:
        _write_numbers(ax, shown)
        ax.set_xticks(np.arange(len(order)), [str(row) for row in order])
    ax.tick_params(axis="x", labelsize=VALUE_SIZE)
    ax.set_xlabel("row" if len(order) <= _MOST_WRITTEN else "rows by rising prediction", fontsize=LABEL_SIZE)
    colour_bar(ax, drawn, chosen.words.value + chosen.words.unit)
    _draw_predictions(above, chosen, order)
    return ax


def _write_numbers(ax: Axes, shown: Floats) -> None:
    texts = amounts(shown.ravel())
    strong = 0.6 * np.abs(shown).max()
    for i, (line, row) in enumerate(np.ndindex(*shown.shape)):
        colour = "white" if abs(shown[line, row]) > strong else DARK
        ax.text(row, line, texts[i], ha="center", va="center", fontsize=7, color=colour)


def _draw_predictions(above: Axes, chosen: OneOutput, order: Indices) -> None:
    above.plot(np.arange(len(order)), chosen.predictions[order], color=DARK, linewidth=1.2, marker="o", markersize=2)
    above.plot(np.arange(len(order)), chosen.base_values[order], color=GREY, linewidth=1.0, linestyle=":")
    above.set_ylabel(chosen.words.end, fontsize=VALUE_SIZE, rotation=0, ha="right", va="center")
    above.yaxis.set_major_locator(MaxNLocator(2))
    above.tick_params(axis="y", labelsize=7)
    above.tick_params(axis="x", labelbottom=False, length=0)
    open_frame(above, "bottom")
    name_output(above, chosen.output)
