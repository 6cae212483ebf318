"""Explanation, summary, or cohorts -> bars: Shapley values of one row, or one number per player over several rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError, listing
from condshap.explanation import Explanation
from condshap.games.loss_explanation import LossExplanation
from condshap.plots.selection import OneOutput, find_among, find_rows, make_lines, one_loss, one_output
from condshap.plots.style import (
    HATCHES,
    LABEL_SIZE,
    add_legend,
    amounts,
    error_bars,
    height_of,
    legend_name,
    list_amounts,
    list_names,
    name_output,
    new_axes,
    shorten,
    signed_bars,
    with_value,
)
from condshap.types import Floats
from condshap.views.palette import CYCLE, DARK, NEUTRAL
from condshap.views.summaries import Sizes, Summary

Drawn: TypeAlias = Explanation | Sizes | Summary
_THICKNESS, _INCHES = 0.8, 0.16  # of all bars of a line together, and of one bar


def bar(
    explanation: Drawn | LossExplanation | Mapping[str, Drawn],
    rows: Any = None,
    *,
    output: str | int | None = None,
    max_features: int = 12,
    ax: Axes | None = None,
) -> Axes:
    """Draw the signed Shapley values of one row as bars, or their mean absolute values over several rows.

    Of a loss explanation the importance is drawn: means over several rows, with a sign.

    Parameters
    ----------
    explanation : an explanation; a summary such as ``abs(explanation).max(0)``; or several of either by name, such as
        ``explanation.cohorts("sex")``, which are drawn side by side
    rows : position or index label, slice, list or mask; None for all. A single row is drawn with its feature values. For
        explanations only
    output : name or position of the output, if the model has several
    max_features : number of lines; players beyond that are added up

    Notes
    -----
    Error bars extend one total error (`Explanation.errors`) to both sides. For several rows, and for "N others", they are
    upper bounds, because the errors of rows and players may depend on each other: the mean, or the sum, of the errors.
    """
    if isinstance(explanation, (Sizes, Summary, Mapping)):
        if rows is not None:
            raise OptionError(f"rows cannot be combined with summaries or cohorts, got {rows!r}. Select rows first.")
        several = explanation if isinstance(explanation, Mapping) else {"": explanation}
        return _summaries({str(name): _summary(one) for name, one in several.items()}, output, max_features, ax)
    chosen = (
        one_loss(explanation, output) if isinstance(explanation, LossExplanation) else one_output(explanation, output)
    )
    positions = find_rows(explanation.row_labels, rows)
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
    reach = lines.add_up(chosen.errors[positions].mean(axis=0))
    error_bars(ax, shown, reach)
    ax.set_xlim(left=0.0, right=None if shown.any() else 1.0)
    list_names(ax, lines.label([shorten(name) for name in chosen.names]))
    list_amounts(ax, amounts(shown, reach, signed=False))
    _label(ax, chosen.output, f"mean |{chosen.words.value}| of {len(positions)} rows{chosen.words.unit}")
    return ax


def _importance(loss: LossExplanation, chosen: OneOutput, max_features: int, ax: Axes | None) -> Axes:
    """Importance of players with a sign: a negative one makes predictions worse."""
    found, errors = loss.importance, np.nan_to_num(loss.importance_std_errors)
    lines = make_lines(np.abs(found), max_features)
    shown = lines.add_up(found)
    ax = new_axes(ax, 7.0, height_of(len(lines)))
    signed_bars(ax, shown)
    reach = lines.add_up(errors)  # rows err, too: their sum is known no better than its parts
    error_bars(ax, shown, reach)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    list_names(ax, lines.label([shorten(name) for name in chosen.names]))
    list_amounts(ax, amounts(shown, reach))
    _label(ax, chosen.output, f"mean {chosen.words.value} of {len(loss)} rows{chosen.words.unit}")
    return ax


def _one_row(chosen: OneOutput, row: int, max_features: int, ax: Axes | None) -> Axes:
    values, errors = chosen.values[row], chosen.errors[row]
    lines = make_lines(np.abs(values), max_features)
    shown = lines.add_up(values)
    ax = new_axes(ax, 7.0, height_of(len(lines)))
    signed_bars(ax, shown)
    reach = lines.bound_errors(errors, is_whole=chosen.is_whole)
    error_bars(ax, shown, reach)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    if not shown.any():
        ax.set_xlim(-1.0, 1.0)
    pairs = zip(chosen.names, chosen.columns, strict=True)
    list_names(ax, lines.label([with_value(name, column, row) for name, column in pairs]))
    list_amounts(ax, amounts(shown, reach))
    _label(ax, chosen.output, chosen.words.value + chosen.words.unit)
    return ax


def _summary(given: Any) -> Summary:
    """What is drawn of an explanation beside others, or of sizes: the mean size over rows."""
    if isinstance(given, Summary):
        return given
    if not isinstance(given, (Explanation, Sizes)):
        raise OptionError(
            f"bars must be of explanations or summaries, got {type(given).__name__}. Pass e.g. explanation.cohorts('sex')."
        )
    return (abs(given) if isinstance(given, Explanation) else given).mean(0)


def _summaries(given: Mapping[str, Summary], output: str | int | None, max_features: int, ax: Axes | None) -> Axes:
    """Draw summaries side by side, a line per player; a single one as bars of its own."""
    if not given:
        raise OptionError("bars must be of at least one explanation or summary, got an empty mapping.")
    first = next(iter(given.values()))
    for name, other in given.items():
        if (other.player_names, other.output_names, other.what) != (first.player_names, first.output_names, first.what):
            raise OptionError(
                f"what is drawn side by side must have the same players, outputs and kind of number, but '{name}' has "
                f"{other.what} of {listing(other.player_names)}, the first {first.what} of {listing(first.player_names)}."
            )
    several = first.values.ndim == 2
    which = find_among(first.output_names, output)
    values, errors = (
        np.array([getattr(one, part)[:, which] if several else getattr(one, part) for one in given.values()])
        for part in ("values", "errors")
    )
    if not np.isfinite(values).all():
        raise OptionError("values must be finite to be drawn, got NaN or infinite ones. Leave these rows out.")
    lines = make_lines(np.abs(values).mean(axis=0), max_features)
    shown, reach = lines.add_up(values), lines.add_up(np.nan_to_num(errors))
    ax = new_axes(ax, 7.0, height_of(len(lines), max(0.32, _INCHES * len(given) + 0.1)) + 0.4 * (len(given) > 1))
    names = [f"{shorten(name, 56)} ({one.n_rows} rows)" for name, one in given.items()]
    if len(given) == 1:
        _draw_alone(ax, shown[0], reach[0], is_size=first.is_size)
    else:
        _draw_beside(ax, shown, reach, names)
    if first.is_size:
        ax.set_xlim(left=0.0, right=None if shown.any() else 1.0)
    list_names(ax, lines.label([shorten(name) for name in first.player_names]))
    _label(ax, first.output_names[which] if several else None, f"{first.what}{_rows_of(given)}")
    if len(given) > 1:
        add_legend(ax)
    return ax


def _rows_of(given: Mapping[str, Summary]) -> str:
    return f" of {next(iter(given.values())).n_rows} rows" if len(given) == 1 else ""


def _draw_alone(ax: Axes, shown: Floats, reach: Floats, *, is_size: bool) -> None:
    if is_size:
        ax.barh(np.arange(len(shown)), shown, 0.7, color=NEUTRAL)
    else:
        signed_bars(ax, shown)
        ax.axvline(0.0, color=DARK, linewidth=0.8)
    error_bars(ax, shown, reach)
    list_amounts(ax, amounts(shown, reach, signed=not is_size))


def _draw_beside(ax: Axes, shown: Floats, reach: Floats, names: list[str]) -> None:
    """Bars of summaries (K, L), the first one on top of each line."""
    thickness = _THICKNESS / len(shown)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    for i, (ends, errors, name) in enumerate(zip(shown, reach, names, strict=True)):
        places = np.arange(len(ends), dtype=np.float64) + (i - (len(shown) - 1) / 2) * thickness
        look: dict[str, Any] = {"color": CYCLE[i % len(CYCLE)], "hatch": HATCHES[i % len(HATCHES)]}
        ax.barh(places, ends, thickness, edgecolor="white", linewidth=0.3, label=legend_name(name, 64), **look)
        error_bars(ax, ends, errors, places)


def _label(ax: Axes, output: str | None, text: str) -> None:
    ax.set_xlabel(text, fontsize=LABEL_SIZE)
    name_output(ax, output)
