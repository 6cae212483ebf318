"""Explanations by several approaches -> MSEv with confidence intervals: overall, row by row, or by coalition size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.evaluation import Criterion, mean_squared_error
from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.numerics.row_means import half_width, over_rows, shared_coalitions
from condshap.options import check_choice
from condshap.plots.selection import Explanations, find_output, named
from condshap.plots.style import (
    LABEL_SIZE,
    MARKERS,
    VALUE_SIZE,
    add_legend,
    amounts,
    colours_of,
    height_of,
    legend_name,
    list_amounts,
    list_names,
    new_axes,
    open_frame,
    shorten,
)
from condshap.ranking import comparable
from condshap.types import Floats
from condshap.views.palette import DARK

_MARKS = 12  # on a line
_DASHES = ("-", "-", "--", ":", "-.")  # the first one is the explanation that the others are compared with


def msev(
    explanations: Explanations,
    *,
    by: str = "overall",
    names: Sequence[str] | None = None,
    output: str | int | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the MSEv (EC3 of the paper, Section 4.1) of approaches; smaller is better.

    Parameters
    ----------
    explanations : explanations with the same rows, model and base value, as a list, by name, or as what `compare` gave. If
        coalitions differ, MSEv is over those that all of them share, with a warning
    by : "overall"; "row" for each row's difference from the first explanation, sorted (with a single explanation, each row's
        MSEv); or "size" for the MSEv by number of players in the coalition
    names : names of the explanations; by default their approaches
    output : name or position of the output, if the model has several; None for the sum over outputs
    level : level of the confidence intervals over rows

    Notes
    -----
    Part of the MSEv is the spread of f given x_S, the same for all approaches: only differences between them are meaningful.
    """
    check_choice("by", by, ("overall", "row", "size"))
    given = named(explanations, names)
    for one in given.values():
        if one.value_table is None:
            one.msev  # noqa: B018 - says what is missing
    found = comparable({name: _of_output(one, output) for name, one in given.items()})
    draw = {"overall": _draw_overall, "row": _draw_rows, "size": _draw_sizes}[by]
    return draw(found, level, ax)


def _of_output(explanation: Explanation, output: str | int | None) -> Explanation:
    """The explanation with what MSEv needs of one output."""
    if output is None or explanation.values.ndim == 2:
        if output is not None:
            find_output(explanation, output)
        return explanation
    which, table = find_output(explanation, output), explanation.value_table
    if table is None:
        raise _no_table(explanation)
    return replace(
        explanation,
        values=explanation.values[..., which],
        base_values=explanation.base_values[..., which],
        predictions=explanation.predictions[..., which],
        output_names=(explanation.output_names[which],),
        value_table=replace(table, values=table.values[..., which], std_errors=table.std_errors[..., which]),
    )


def _draw_overall(found: Mapping[str, Explanation], level: float, ax: Axes | None) -> Axes:
    ax = new_axes(ax, 6.5, height_of(len(found), 0.36))
    criteria = [one.msev for one in found.values()]
    values = np.array([float(one) for one in criteria])
    for line, (criterion, colour) in enumerate(zip(criteria, colours_of(list(found)), strict=True)):
        low, high = criterion.interval(level)
        ax.plot([low, high], [line, line], color=colour, linewidth=2.0, solid_capstyle="butt")
        ax.plot(values[line], line, MARKERS[line % len(MARKERS)], color=colour, markersize=7)
    list_names(ax, [shorten(name) for name in found])
    errors = np.array([criterion.total_std_error() for criterion in criteria])
    list_amounts(ax, amounts(values, errors, signed=False))
    ax.set_xlabel(_title(found, level), fontsize=LABEL_SIZE)
    ax.margins(x=0.05)
    return ax


def _draw_rows(found: Mapping[str, Explanation], level: float, ax: Axes | None) -> Axes:
    per_row = {name: _per_row(one.msev) for name, one in found.items()}
    first, *others = per_row
    ax = new_axes(ax, 6.5, 4.2)
    colours, shares = colours_of(list(found)), _shares(len(per_row[first]))
    if not others:
        ax.plot(shares, np.sort(per_row[first]), color=colours[0], marker=".", markersize=4, label=legend_name(first))
        ax.set_ylabel("MSEv of a row", fontsize=LABEL_SIZE)
    for i, name in enumerate(others, start=1):
        change = per_row[name] - per_row[first]
        text = _difference(name, change, found[name].msev, level)
        style: dict[str, Any] = {
            "color": colours[i],
            "marker": MARKERS[i % len(MARKERS)],
            "markersize": 4.5,
            "linewidth": 1.2,
            "linestyle": _DASHES[i % len(_DASHES)],
            "markevery": _some(len(shares), i - 1, len(others)),
        }
        ax.plot(shares, np.sort(change), label=text, **style)
    if others:
        ax.axhline(0.0, color=DARK, linewidth=0.8)
        ax.set_ylabel(f"MSEv less that of {shorten(first, 24)}", fontsize=LABEL_SIZE)
        add_legend(ax)
    ax.set_xlabel("share of rows", fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=VALUE_SIZE)
    open_frame(ax)
    return ax


def _some(n: int, which: int, n_lines: int) -> tuple[int, int]:
    """First marker and step of a line, so that the markers of all lines stand apart, in turn."""
    step = max(n_lines, -(-n // _MARKS))
    return (which * step // n_lines) % n, step


def _draw_sizes(found: Mapping[str, Explanation], level: float, ax: Axes | None) -> Axes:
    ax = new_axes(ax, 6.5, 4.2)
    shift = 0.5 / (len(found) + 1)
    for i, ((name, one), colour) in enumerate(zip(found.items(), colours_of(list(found)), strict=True)):
        sizes, criteria = by_size(one)
        values = np.array([float(criterion) for criterion in criteria])
        ends = np.array([criterion.interval(level) for criterion in criteria]).T
        reach = np.nan_to_num(np.maximum([values - ends[0], ends[1] - values], 0.0))
        ax.errorbar(
            sizes + (i - (len(found) - 1) / 2) * shift, values, yerr=reach, color=colour, capsize=2.5, elinewidth=0.8,
            marker=MARKERS[i % len(MARKERS)], markersize=4.5, linewidth=1.0, label=legend_name(name),
        )  # fmt: skip
    ax.set_xticks(sizes)
    ax.set_xlabel("players in the coalition", fontsize=LABEL_SIZE)
    ax.set_ylabel(_title(found, level), fontsize=LABEL_SIZE)
    ax.tick_params(labelsize=VALUE_SIZE)
    if len(sizes) > 20:
        ax.set_xticks(sizes[:: -(-len(sizes) // 15)])
    add_legend(ax)
    open_frame(ax)
    return ax


def by_size(explanation: Explanation) -> tuple[Floats, list[Criterion]]:
    """Sizes of the interior coalitions that all rows have, and the MSEv over those of each size."""
    table = explanation.value_table
    if table is None:
        raise _no_table(explanation)
    usable = shared_coalitions(table.values)
    sizes = table.coalitions.sum(axis=1)
    present = np.unique(sizes[usable])
    if len(present) == 0:
        raise OptionError(
            "MSEv by size needs coalitions between the empty and the grand one, got none. Explain at least two players."
        )
    parts = [usable & (sizes == size) for size in present]
    return present.astype(np.float64), [
        mean_squared_error(explanation.predictions, table.values[part], table.std_errors[part]) for part in parts
    ]


def _per_row(criterion: Criterion) -> Floats:
    """Sum over outputs, (R,)."""
    return np.asarray(criterion.per_row.reshape(len(criterion.per_row), -1).sum(axis=1))


def _shares(n: int) -> Floats:
    """Ranks 1, ..., n in the middle of their n-th part of 0 to 1."""
    return (np.arange(n) + 0.5) / n


def _difference(name: str, change: Floats, like: Criterion, level: float) -> str:
    """What differences (R,) to the first approach say: their mean, its paired interval, how often they are below 0."""
    mean, spread = (np.asarray(part) for part in over_rows(change, like.weights))
    half = np.nan_to_num(half_width(float(spread), len(change), level))
    middle, low, high = amounts(np.array([float(mean), float(mean) - half, float(mean) + half]))
    ends = f" [{low}, {high}]" if len(change) > 1 else ""
    return f"{legend_name(name, 24)}: {middle}{ends}, smaller in {np.mean(change < 0):.0%} of rows"


def _title(found: Mapping[str, Explanation], level: float) -> str:
    several = any(len(one) > 1 for one in found.values())
    return f"MSEv, {100 * level:g} % interval" if several else "MSEv of one row"


def _no_table(explanation: Explanation) -> OptionError:
    return OptionError(f"MSEv is made of v(S), but {explanation.provenance.no_table}")
