"""Explanation -> waterfall: from the base value to the prediction of one row, player by player."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from condshap.explanation import Explanation
from condshap.games.loss_explanation import LossExplanation
from condshap.plots.selection import find_row, make_lines, one_loss, whole_output
from condshap.plots.style import (
    DARK,
    GREY,
    LABEL_SIZE,
    amounts,
    error_bars,
    height_of,
    list_amounts,
    list_names,
    name_output,
    new_axes,
    signed_bars,
    with_value,
)
from condshap.types import Floats


def waterfall(
    explanation: Explanation | LossExplanation,
    row: int = 0,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw how one row gets from the base value, on the last line, to its prediction, on the first line.

    Of a loss explanation: from the base loss to the loss; what goes left lowers the loss.

    Parameters
    ----------
    row : position of the explained row
    output : name or position of the output, if the model has several
    max_features : number of lines for players; players beyond that are added up

    Notes
    -----
    Error bars extend one total error (`Explanation.errors`) to both sides; for "N others" it is an upper bound. Players that
    ``explanation[:, players]`` left out are one line with their sum, "N not selected".
    """
    chosen = (
        one_loss(explanation, output) if isinstance(explanation, LossExplanation) else whole_output(explanation, output)
    )
    row, words = find_row(len(explanation), row), chosen.words
    lines = make_lines(np.abs(chosen.values[row]), max_features)
    shown = lines.add_up(words.sign * chosen.values[row])
    base, prediction = float(chosen.base_values[row]), float(chosen.predictions[row])
    ends = base + np.cumsum(shown[::-1])[::-1]  # from the bottom line upwards
    starts = np.append(ends[1:], base)
    ax = new_axes(ax, 7.0, height_of(len(lines) + 2))
    _draw_steps(ax, starts, ends, lines.bound_errors(chosen.errors[row]))
    ax.plot([prediction, base], [0, len(lines) + 1], "D", color=DARK, markersize=5)
    ax.use_sticky_edges = False  # room beside the two marks
    if not shown.any():
        ax.set_xlim(base - 1.0, base + 1.0)
    pairs = zip(chosen.names, chosen.columns, strict=True)
    middle = lines.label([with_value(name, column, row) for name, column in pairs])
    f_x, start = amounts(np.array([prediction, base]), signed=False, like=shown)
    list_names(ax, [f"{words.f} = {f_x}", *middle, f"{words.base} = {start}"])
    for line in (0, -1):
        ax.get_yticklabels()[line].set_fontweight("bold")
    list_amounts(ax, ["", *amounts(shown), ""])
    ax.set_xlabel(words.prediction + words.unit, fontsize=LABEL_SIZE)
    name_output(ax, chosen.output)
    return ax


def _draw_steps(ax: Axes, starts: Floats, ends: Floats, errors: Floats) -> None:
    """Bars on lines 1, 2, ..., joined by thin lines, with the prediction on line 0 and the base value on the last."""
    n = len(ends)
    # a first line without a width keeps the bars' lines in step with the names
    signed_bars(ax, np.append(ends[:1], ends), np.append(ends[:1], starts))
    ax.patches[-n - 1].remove()
    error_bars(ax, ends, errors, np.arange(1.0, n + 1))
    levels = np.append(ends, starts[-1])
    ax.vlines(levels, np.arange(n + 1), np.arange(1, n + 2), colors=GREY, linewidth=0.8, linestyles=":", zorder=0)
