"""Interactions -> bars: the largest ones of a row, or on average, with their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.games.interactions import Interactions
from condshap.options import check_integer
from condshap.plots.player_sets import one_output
from condshap.plots.selection import find_rows
from condshap.plots.style import (
    amounts,
    error_bars,
    height_of,
    label_lines,
    new_axes,
    signed_bars,
)
from condshap.views.palette import DARK, NEUTRAL


def interaction_bar(
    pairs: Interactions,
    rows: Any = None,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest interactions of one row as bars with a sign, or the mean of their sizes over several rows.

    Parameters
    ----------
    rows : position or index label, slice, list or mask; None for all. A single row is drawn with its values.
    output : name or position where the model has several
    max_features : lines; smaller interactions are left out, and the label below says of how many these are the largest

    Notes
    -----
    Sets of all orders from 2 on are drawn together. Error bars are one standard error to both sides; those of several rows
    are an upper bound, the mean of the errors, because the errors of rows may depend on each other. Part of an interaction
    of features that depend on each other is this dependence, not the model.
    """
    chosen = one_output(pairs, output)
    positions = find_rows(pairs.row_labels, rows)
    is_one = len(positions) == 1
    values = chosen.values[positions[0]] if is_one else np.abs(chosen.values[positions]).mean(axis=0)
    errors = chosen.errors[positions].mean(axis=0)
    most = check_integer("max_features", max_features, least=2)
    largest = np.argsort(-np.abs(values), kind="stable")[:most]
    shown = values[largest]
    ax = new_axes(ax, 7.5, height_of(len(shown)))
    if is_one:
        signed_bars(ax, shown)
        ax.axvline(0.0, color=DARK, linewidth=0.8)
        limits = (-1.0, 1.0)
    else:
        ax.barh(np.arange(len(shown)), shown, 0.7, color=NEUTRAL)
        limits = (0.0, 1.0)
    error_bars(ax, shown, errors[largest])
    if not shown.any():
        ax.set_xlim(*limits)
    elif not is_one:
        ax.set_xlim(left=0.0)
    what = chosen.index if is_one else f"mean |{chosen.index}| of {len(positions)} rows"
    some = f", the largest {len(shown)} of {len(values)}" if len(shown) < len(values) else ""
    labels = [chosen.label(int(which)) for which in largest]
    label_lines(ax, labels, amounts(shown, signed=is_one), what + some, chosen.output)
    return ax
