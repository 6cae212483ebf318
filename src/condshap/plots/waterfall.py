"""Explanation -> waterfall: from the base value to the prediction of one row, player by player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.games.loss_explanation import LossExplanation
from condshap.games.owen import OwenValues
from condshap.plots.selection import OneOutput, make_lines, one_loss, one_output, whole_output
from condshap.plots.style import (
    amounts,
    error_bars,
    height_of,
    label_lines,
    new_axes,
    signed_bars,
    with_value,
)
from condshap.plots.union_steps import Step, union_steps
from condshap.types import Floats
from condshap.views.palette import DARK, GREY, NEUTRAL
from condshap.views.rows import find_row


def waterfall(
    explanation: Explanation | LossExplanation | OwenValues,
    row: Any = 0,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    unfold: bool | str | Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how one row gets from the base value, on the last line, to its prediction, on the first line.

    Of a loss explanation: from the base loss to the loss; what goes left lowers the loss.

    Parameters
    ----------
    explanation : or Owen values, which are drawn union by union
    row : position or index label of the explained row
    output : name or position of the output, if the model has several
    max_features : number of lines for players, or for the parts of a union; those beyond that are added up
    unfold : for Owen values only: names of unions that show their parts instead of one bar; True for all of them

    Notes
    -----
    Error bars extend one total error (`Explanation.errors`) to both sides; for "N others" it is an upper bound. Players that
    ``explanation[:, players]`` left out are one line with their sum, "N not selected". The thin grey bar beside the name of
    an unfolded union is the sum of the bars below it, in its bracket.
    """
    if isinstance(explanation, OwenValues):
        chosen = one_output(explanation.to_explanation(), output)
        row = find_row(explanation.row_labels, row)
        steps = union_steps(explanation, chosen, row, unfold, max_features)
    elif unfold is None:
        if isinstance(explanation, LossExplanation):
            chosen = one_loss(explanation, output)
        else:
            chosen = whole_output(explanation, output)
        row = find_row(explanation.row_labels, row)
        steps = _player_steps(chosen, row, max_features)
    else:
        raise OptionError(
            f"unfold works only with Owen values, which have unions, got {unfold!r} with {type(explanation).__name__}. "
            "Leave it out, or draw explanation.owen(unions)."
        )
    words = chosen.words
    values = np.array([0.0 if step.n_below else step.value for step in steps])  # heads of unions add nothing themselves
    base, prediction = float(chosen.base_values[row]), float(chosen.predictions[row])
    ends = base + np.cumsum(values[::-1])[::-1]  # from the bottom line upwards
    starts = np.append(ends[1:], base)
    ax = new_axes(ax, 7.0, height_of(len(steps) + 2))
    _draw_steps(ax, starts, ends, np.array([0.0 if step.n_below else step.error for step in steps]))
    _draw_heads(ax, steps, ends)
    ax.plot([prediction, base], [0, len(steps) + 1], "D", color=DARK, markersize=5)
    ax.use_sticky_edges = False  # room beside the two marks
    if not values.any():
        ax.set_xlim(base - 1.0, base + 1.0)
    errors = np.array([step.error for step in steps])
    end, start = amounts(np.array([prediction, base]), errors, signed=False, like=values)
    labels = [f"{words.end} = {end}", *(step.label for step in steps), f"{words.base} = {start}"]
    texts = ["", *amounts(np.array([step.value for step in steps]), errors), ""]
    label_lines(ax, labels, texts, words.prediction + words.unit, chosen.output)
    for line in (0, -1):
        ax.get_yticklabels()[line].set_fontweight("bold")
    return ax


def _player_steps(chosen: OneOutput, row: int, max_features: int) -> list[Step]:
    lines = make_lines(np.abs(chosen.values[row]), max_features)
    pairs = zip(chosen.names, chosen.columns, strict=True)
    labels = lines.label([with_value(name, column, row) for name, column in pairs])
    shown = zip(
        labels,
        lines.add_up(chosen.words.sign * chosen.values[row]),
        lines.bound_errors(chosen.errors[row]),
        strict=True,
    )
    return [Step(*one) for one in shown]


def _draw_heads(ax: Axes, steps: Sequence[Step], ends: Floats) -> None:
    """Thin bars beside the names of unfolded unions, what the lines below add up to, and brackets around these lines."""
    closed: list[int] = []
    for line, step in enumerate(steps, start=1):
        if step.n_below:
            ax.barh(line, step.value, 0.12, left=ends[line - 1] - step.value, color=GREY)
            depth = sum(last >= line for last in closed)
            reach = (line - 0.3, line + step.n_below + 0.35)
            ax.plot([0.01 * depth] * 2, reach, color=NEUTRAL, linewidth=1.5, transform=ax.get_yaxis_transform())
            closed.append(line + step.n_below)


def _draw_steps(ax: Axes, starts: Floats, ends: Floats, errors: Floats) -> None:
    """Bars on lines 1, 2, ..., joined by thin lines, with the prediction on line 0 and the base value on the last."""
    n = len(ends)
    # a first line without a width keeps the bars' lines in step with the names
    signed_bars(ax, np.append(ends[:1], ends), np.append(ends[:1], starts))
    ax.patches[-n - 1].remove()
    error_bars(ax, ends, errors, np.arange(1.0, n + 1))
    levels = np.append(ends, starts[-1])
    ax.vlines(levels, np.arange(n + 1), np.arange(1, n + 2), colors=GREY, linewidth=0.8, linestyles=":", zorder=0)
