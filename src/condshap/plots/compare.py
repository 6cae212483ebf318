"""Explanations of one row by several approaches -> bars side by side (the paper's Figure with three test observations)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.plots.selection import Explanations, check_same_rows, make_lines, named, one_output
from condshap.plots.style import (
    HATCHES,
    LABEL_SIZE,
    TITLE_SIZE,
    add_legend,
    amounts,
    colours_of,
    error_bars,
    height_of,
    legend_name,
    list_names,
    new_axes,
    shorten,
    with_value,
)
from condshap.views.palette import DARK
from condshap.views.rows import find_row

_THICKNESS = 0.8
_INCHES = 0.16  # per bar


def compare(
    explanations: Explanations,
    row: Any = 0,
    *,
    names: Sequence[str] | None = None,
    output: str | int | None = None,
    max_features: int = 12,
    sort: bool = True,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley values of one row by several approaches, one bar per player and approach.

    Parameters
    ----------
    explanations : explanations of the same rows, as a list, by name, or as the table of `compare`
    row : position or index label of the explained row
    names : names of the explanations; by default their approaches
    output : name or position of the output, if the model has several
    max_features : number of lines; players beyond that are added up
    sort : sort players by their mean absolute value over the approaches; otherwise keep their order
    legend : show below the axes which bar belongs to which approach

    Notes
    -----
    Error bars extend one total error (`Explanation.errors`) to both sides; for "N others" it is an upper bound.
    """
    found = named(explanations, names)
    check_same_rows(found)
    picked = [one_output(one, output) for one in found.values()]
    first = picked[0]
    row = find_row(next(iter(found.values())).row_labels, row)
    lines = make_lines(np.mean([np.abs(one.values[row]) for one in picked], axis=0), max_features, sort=sort)
    thickness = _THICKNESS / len(picked)
    ax = new_axes(ax, 7.0, height_of(len(lines), max(0.32, _INCHES * len(picked) + 0.1)) + 0.4)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    looks = zip(found, picked, colours_of(list(found)), strict=True)
    for i, (name, one, colour) in enumerate(looks):
        places = np.arange(len(lines), dtype=np.float64) + (i - (len(picked) - 1) / 2) * thickness
        shown = lines.add_up(one.values[row])
        hatch = HATCHES[i % len(HATCHES)]
        ax.barh(
            places,
            shown,
            thickness,
            color=colour,
            edgecolor="white",
            linewidth=0.3,
            hatch=hatch,
            label=legend_name(name),
        )
        error_bars(ax, shown, lines.bound_errors(one.errors[row], is_whole=one.is_whole), places)
    pairs = zip(first.names, first.columns, strict=True)
    list_names(ax, lines.label([with_value(name, column, row) for name, column in pairs]))
    ax.set_xlabel(first.words.value + first.words.unit, fontsize=LABEL_SIZE)
    (end,) = amounts(first.predictions[row : row + 1], signed=False, like=first.values[row])
    output_name = "" if first.output is None else f"{shorten(first.output)}: "
    ax.set_title(f"{output_name}{first.words.end} = {end}", fontsize=TITLE_SIZE)
    if legend:
        add_legend(ax)
    return ax
