"""Explanation -> one stacked bar: what pushes a prediction up, and what pushes it down."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.explanation import Explanation
from condshap.numerics.readable import tick_texts
from condshap.plots.selection import make_lines, whole_output
from condshap.plots.style import (
    LABEL_SIZE,
    STRIPES,
    VALUE_SIZE,
    amounts,
    name_output,
    new_axes,
    open_frame,
    round_ticks,
    with_value,
)
from condshap.types import Floats, Indices
from condshap.views.palette import DARK, LOWERS, RAISES
from condshap.views.rows import find_row

_LINE = 0.45  # height of a line of text, where the bar is 1
_WIDE = 0.03  # share of the bar from which on a part has room for its number
_LONGEST = 36  # characters of a name: two lists stand side by side


def force(
    explanation: Explanation,
    row: Any = 0,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw one row as a stacked bar: players that raise the prediction to its left, those that lower it to its right.

    Parameters
    ----------
    row : position or index label of the explained row
    output : name or position of the output, if the model has several
    max_features : number of parts; players beyond that are added up

    Notes
    -----
    The parts are numbered by size, and the lists below name them. The bar is as long as all parts together: from its left
    end the orange-red parts raise the prediction, and from its right end the blue, striped parts lower it. Players that
    ``explanation[:, players]`` left out are one part with their sum, "N not selected".
    """
    chosen = whole_output(explanation, output)
    row = find_row(explanation.row_labels, row)
    lines = make_lines(np.abs(chosen.values[row]), max_features)
    shown = lines.add_up(chosen.values[row])
    pairs = zip(chosen.names, chosen.columns, strict=True)
    labels = lines.label([with_value(name, column, row, _LONGEST) for name, column in pairs])
    up, down = (np.flatnonzero(side) for side in (shown > 0, shown < 0))
    n_lines = max(len(up), len(down), 1)
    ax = new_axes(ax, 9.5, 1.9 + 0.2 * n_lines)
    base, prediction = float(chosen.base_values[row]), float(chosen.predictions[row])
    _draw_parts(ax, prediction, shown, up, down)
    errors = lines.bound_errors(chosen.errors[row])
    end, start = amounts(np.array([prediction, base]), errors, signed=False, like=shown)
    _mark(ax, prediction, f"{chosen.words.end} = {end}", base, f"{chosen.words.base} = {start}")
    texts = amounts(shown, errors)
    for place, side, colour, title in ((0.0, up, RAISES, "raises"), (0.52, down, LOWERS, "lowers")):
        style: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": VALUE_SIZE}
        head = f"{title} the prediction" if len(side) else f"nothing {title} the prediction"
        ax.text(place, -1.35, head, color=colour, fontweight="bold", **style)
        for line, i in enumerate(side):
            ax.text(place, -1.35 - _LINE * (line + 1), f"{i + 1}  {labels[i]}  {texts[i]}", color=DARK, **style)
    ax.set_ylim(-1.35 - _LINE * (n_lines + 0.5), 1.6)
    ax.set_yticks([])
    open_frame(ax, "left", "bottom")
    name_output(ax, chosen.output)
    return ax


def _draw_parts(ax: Axes, prediction: float, shown: Floats, up: Indices, down: Indices) -> None:
    """Stack parts away from the prediction, the largest ones next to it, with a scale below."""
    total = float(np.abs(shown).sum())
    for side, direction, colour, hatch in ((up, -1.0, RAISES, ""), (down, 1.0, LOWERS, STRIPES)):
        at = prediction
        for i in side:
            width = abs(float(shown[i]))
            left = min(at, at + direction * width)
            ax.barh(0.0, width, 0.8, left=left, color=colour, edgecolor="white", hatch=hatch, linewidth=1.0)
            if width > _WIDE * total:
                box: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
                ax.text(left + width / 2, 0.0, f"{i + 1}", ha="center", va="center", fontsize=VALUE_SIZE, bbox=box)
            at += direction * width


def _mark(ax: Axes, prediction: float, end: str, base: float, start: str) -> None:
    """Write prediction and base value above the bar, on two heights so that they never meet."""
    left, right = (min(prediction, base), max(prediction, base))
    ends = ax.dataLim.intervalx if ax.patches else (left, right)
    low, high = min(float(ends[0]), left), max(float(ends[1]), right)
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    reach = high - low
    ax.set_xlim(low - 0.005 * reach, high + 0.005 * reach)  # no more than the width of a line: the bar fills the axes
    for x, text, height, weight in ((prediction, end, 0.75, "bold"), (base, start, 1.2, "normal")):
        ax.plot([x, x], [-0.5, height], color=DARK, linewidth=1.0, linestyle="-" if weight == "bold" else ":")
        side = "left" if x < low + reach / 2 else "right"
        gap = " " if side == "left" else ""
        ax.text(
            x, height, f"{gap}{text}{'' if gap else ' '}", ha=side, va="center", fontsize=LABEL_SIZE, fontweight=weight
        )
    _draw_scale(ax, low, high)


def _draw_scale(ax: Axes, low: float, high: float) -> None:
    """Draw an x-axis between the bar and the lists."""
    marks = np.asarray(round_ticks(7).tick_values(low, high))
    marks = marks[(marks >= low) & (marks <= high)]
    ax.plot([low, high], [-0.62, -0.62], color=DARK, linewidth=0.8)
    for mark, text in zip(marks, tick_texts(marks), strict=True):
        ax.plot([mark, mark], [-0.62, -0.70], color=DARK, linewidth=0.8)
        ax.text(mark, -0.75, text, ha="center", va="top", fontsize=VALUE_SIZE)
    ax.set_xticks([])
