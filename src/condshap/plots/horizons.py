"""Explanation of forecasts -> lines: Shapley values of one row over the steps ahead, with bands of their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from condshap.explanation import Explanation
from condshap.plots.selection import make_lines, whole_output
from condshap.plots.style import (
    LABEL_SIZE,
    MARKERS,
    TITLE_SIZE,
    VALUE_SIZE,
    add_legend,
    legend_name,
    new_axes,
    open_frame,
    shorten,
)
from condshap.types import Floats
from condshap.views.palette import CYCLE, DARK
from condshap.views.rows import find_row

_MOST_TICKS = 16
_TOTAL = "prediction − base value"


def horizons(explanation: Explanation, row: Any = 0, *, max_features: int = 8, ax: Axes | None = None) -> Axes:
    """Draw how the Shapley values of one row change over the steps ahead, a line per player.

    Parameters
    ----------
    explanation : of forecasts, as `explain_forecast` gives it: its outputs are the steps, in their order
    row : position or index label of the explained time
    max_features : lines; players beyond are added up

    Notes
    -----
    Bands are one error to both sides, all errors together (`Explanation.errors`); that of "N others" is an upper bound. The
    dashed line is what all players add to the base value: prediction less base value.
    """
    several = explanation.values.ndim == 3 if isinstance(explanation, Explanation) else False
    steps = explanation.output_names if several else (None,)
    found = [whole_output(explanation, None if step is None else i) for i, step in enumerate(steps)]
    row = find_row(explanation.row_labels, row)
    values, errors = (np.array([getattr(one, part)[row] for one in found]) for part in ("values", "errors"))  # (O, P)
    total = np.array([one.predictions[row] - one.base_values[row] for one in found])
    lines = make_lines(np.abs(values).mean(axis=0), max_features)
    labels = lines.label([legend_name(name) for name in found[0].names])
    ax = new_axes(ax, 7.0, 3.8 + _inches_below(labels))
    ax.axhline(0.0, color=DARK, linewidth=0.8, zorder=0)
    _draw_players(ax, lines.add_up(values), lines.bound_errors(errors), labels)
    places = np.arange(len(found))
    style: dict[str, Any] = {"color": DARK, "linestyle": "--", "linewidth": 1.4, "marker": "|", "markersize": 7}
    ax.plot(places, total, label=_TOTAL, **style)
    if not total.any() and not values.any():
        ax.set_ylim(-1.0, 1.0)
    every = -(-len(found) // _MOST_TICKS)
    ax.xaxis.set_major_locator(FixedLocator(places[::every].tolist()))
    ax.set_xticklabels([shorten(name, 12) for name in explanation.output_names[::every]])
    ax.set_xlim(-0.4, len(found) - 0.6)
    ax.tick_params(labelsize=VALUE_SIZE)
    ax.set_xlabel("step ahead", fontsize=LABEL_SIZE)
    ax.set_ylabel("Shapley value", fontsize=LABEL_SIZE)
    ax.set_title(f"forecast at {_time_of(explanation, row)}", fontsize=TITLE_SIZE)
    open_frame(ax)
    add_legend(ax)
    return ax


def _inches_below(labels: list[str]) -> float:
    """Room for the legend, which has a line per player where names are long."""
    side_by_side = max(1, 64 // (max(map(len, [*labels, _TOTAL])) + 7))
    return 0.18 * -(-(len(labels) + 1) // side_by_side)


def _draw_players(ax: Axes, shown: Floats, errors: Floats, labels: list[str]) -> None:
    """Lines (O, L), each with its own colour and marker, beside each other where steps are few."""
    places = np.arange(len(shown), dtype=np.float64)
    for i, label in enumerate(labels):
        colour, marker = CYCLE[i % len(CYCLE)], MARKERS[i % len(MARKERS)]
        ax.plot(places, shown[:, i], color=colour, marker=marker, markersize=4.5, linewidth=1.2, label=label)
        if not errors[:, i].any():
            continue
        if len(places) == 1:  # a band has no width there
            ax.errorbar(places, shown[:, i], yerr=errors[:, i], fmt="none", ecolor=colour, capsize=2.5)
        low, high = shown[:, i] - errors[:, i], shown[:, i] + errors[:, i]
        ax.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0.0)


def _time_of(explanation: Explanation, row: int) -> str:
    """Label of the explained time, or the number of the row."""
    index = getattr(explanation.data, "index", None)
    if index is None or callable(index):
        return f"row {row}"
    return shorten(str(index[row]).removesuffix(" 00:00:00"))
