"""Explanation -> bars: Shapley values of one row, or their mean size over several."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.explanation import Explanation
from condshap.games.loss_explanation import LossExplanation
from condshap.plots.selection import OneOutput, find_rows, make_lines, one_loss, one_output
from condshap.plots.style import (
    DARK,
    LABEL_SIZE,
    NEUTRAL,
    amounts,
    error_bars,
    height_of,
    list_amounts,
    list_names,
    name_output,
    new_axes,
    shorten,
    signed_bars,
    with_value,
)


def bar(
    explanation: Explanation | LossExplanation,
    rows: Any = None,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley values of one row as bars with a sign, or the mean of their sizes over several rows.

    Of a loss explanation the importance is drawn: means over several rows, with a sign.

    Parameters
    ----------
    rows : position, slice, list or mask; None for all. A single row is drawn with its values.
    output : name or position where the model has several
    max_features : lines; players beyond are added up

    Notes
    -----
    Error bars are one error to both sides, all errors together (`Explanation.errors`).
    Those of several rows, and of "N others", are upper bounds, because the
    errors of rows and players may depend on each other: means, and sums, of the errors.
    """
    chosen = (
        one_loss(explanation, output) if isinstance(explanation, LossExplanation) else one_output(explanation, output)
    )
    positions = find_rows(len(explanation), rows)
    if len(positions) == 1:
        return _one_row(chosen, int(positions[0]), max_features, ax)
    if isinstance(explanation, LossExplanation):
        return _importance(explanation[positions], chosen, max_features, ax)
    sizes = np.abs(chosen.values[positions]).mean(axis=0)
    lines = make_lines(sizes, max_features)
    shown = lines.add_up(sizes)
    ax = new_axes(ax, 7.0, height_of(len(lines)))
    ax.barh(np.arange(len(lines)), shown, 0.7, color=NEUTRAL)
    # sizes, unlike values, do not add up to something without error: no smaller bound for the rest here
    error_bars(ax, shown, lines.add_up(chosen.errors[positions].mean(axis=0)))
    ax.set_xlim(left=0.0, right=None if shown.any() else 1.0)
    list_names(ax, lines.label([shorten(name) for name in chosen.names]))
    list_amounts(ax, amounts(shown, signed=False))
    _label(ax, chosen, f"mean |{chosen.words.value}| of {len(positions)} rows")
    return ax


def _importance(loss: LossExplanation, chosen: OneOutput, max_features: int, ax: Axes | None) -> Axes:
    """Importance of players with a sign: a negative one makes predictions worse."""
    found, errors = loss.importance, np.nan_to_num(loss.importance_std_errors)
    lines = make_lines(np.abs(found), max_features)
    shown = lines.add_up(found)
    ax = new_axes(ax, 7.0, height_of(len(lines)))
    signed_bars(ax, shown)
    error_bars(ax, shown, lines.add_up(errors))  # rows err, too: their sum is known no better than its parts
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    list_names(ax, lines.label([shorten(name) for name in chosen.names]))
    list_amounts(ax, amounts(shown))
    _label(ax, chosen, f"mean {chosen.words.value} of {len(loss)} rows")
    return ax


def _one_row(chosen: OneOutput, row: int, max_features: int, ax: Axes | None) -> Axes:
    values, errors = chosen.values[row], chosen.errors[row]
    lines = make_lines(np.abs(values), max_features)
    shown = lines.add_up(values)
    ax = new_axes(ax, 7.0, height_of(len(lines)))
    signed_bars(ax, shown)
    error_bars(ax, shown, lines.bound_errors(errors))
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    if not shown.any():
        ax.set_xlim(-1.0, 1.0)
    pairs = zip(chosen.names, chosen.columns, strict=True)
    list_names(ax, lines.label([with_value(name, column, row) for name, column in pairs]))
    list_amounts(ax, amounts(shown))
    _label(ax, chosen, chosen.words.value)
    return ax


def _label(ax: Axes, chosen: OneOutput, text: str) -> None:
    ax.set_xlabel(text + chosen.words.unit, fontsize=LABEL_SIZE)
    name_output(ax, chosen.output)
