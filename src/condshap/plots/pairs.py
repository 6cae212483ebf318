"""Real rows, generated rows -> a grid of all pairs of columns, to see whether they look alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from condshap.exceptions import OptionError, listing
from condshap.options import check_integer
from condshap.plots.conditional_samples import places_of
from condshap.plots.style import (
    VALUE_SIZE,
    shorten,
)
from condshap.plots.value_axis import ValueAxis
from condshap.tables.reading import Column, read_columns, to_pandas
from condshap.types import Floats, Table
from condshap.views.palette import DARK, GREY, RAISES

REAL, GENERATED = "#7A7A7A", RAISES
_BINS = 25
_POINTS = 1000
_LONGEST = 18
_INCHES = 1.9  # per panel


def pairs(
    real: Table,
    generated: Table,
    *,
    features: Sequence[str] | None = None,
    max_features: int = 6,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Draw generated rows, e.g. from `VAEACNetworks.sample_table`, beside real ones.

    Parameters
    ----------
    real, generated : tables with the same columns
    features : columns to draw; None for the first `max_features`
    figure : figure to draw into; None for a new one

    Returns
    -------
    (d, d) array of Axes: points below the diagonal, shares of rows on it (bars for levels, steps for numbers), correlations
    of numbers above it. At most 1000 rows of each table are drawn as points; histograms and correlations use all rows.
    """
    names = _names(real, generated, features, max_features)
    columns = [[_columns(table)[name] for table in (real, generated)] for name in names]
    axes = [ValueAxis.of(some) for some in columns]
    d = len(names)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(_INCHES * d + 1.0, _INCHES * d + 0.6), layout="constrained")
    grid: Any = figure.subplots(d, d, squeeze=False)
    for i, j in np.ndindex(d, d):
        if i == j:
            _draw_shares(grid[i, j], axes[i], columns[i])
        elif i > j:
            _draw_points(grid[i, j], [axes[j], axes[i]], [columns[j], columns[i]])
        else:
            _write_correlations(grid[i, j], columns[j], columns[i])
        _dress(grid[i, j], axes, i, j)
    figure.align_ylabels(grid[:, 0])
    handles = [grid[0, 0].plot([], [], "s", color=colour)[0] for colour in (REAL, GENERATED)]
    figure.legend(handles, ["real", "generated"], loc="outside upper center", ncols=2, frameon=False)
    return np.asarray(grid)


def _columns(table: Table) -> dict[str, Column]:
    return {column.name: column for column in read_columns(to_pandas(table))}


def _names(real: Table, generated: Table, features: Sequence[str] | None, max_features: Any) -> list[str]:
    known = [name for name in _columns(real) if name in _columns(generated)]
    if features is None:
        wanted = known[: check_integer("max_features", max_features, least=1)]
    else:
        wanted = [str(name) for name in features]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise OptionError(
            f"both tables must have the columns to draw, at least one, got {listing(wanted)} of which {listing(unknown)} "
            "are missing. Check the spelling."
        )
    return wanted


def _draw_points(ax: Axes, axes: list[ValueAxis], columns: list[list[Column]]) -> None:
    for table, colour, marker in ((0, REAL, "o"), (1, GENERATED, "^")):
        x, y = (places[:_POINTS] for places in places_of(axes, columns, table))
        ax.scatter(x, y, s=5, color=colour, marker=marker, alpha=0.4, linewidths=0, rasterized=True)


def _draw_shares(ax: Axes, axis: ValueAxis, columns: list[Column]) -> None:
    """Shares of rows: beside each other for levels and missing values, steps for numbers."""
    strips = [*range(len(axis.labels))] if axis.levels is not None else []
    strips = [*strips, axis.missing_at] if axis.missing_at is not None else strips
    edges = np.linspace(axis.low, axis.high, _BINS + 1) if axis.high > axis.low else axis.low + np.array([-0.5, 0.5])
    half = axis.strip_width()
    for side, (column, colour, line) in enumerate(zip(columns, (REAL, GENERATED), ("-", "--"), strict=True)):
        places = axis.place(column)
        if axis.levels is None:
            numbers = places[~axis.is_strip(column)]
            heights = np.histogram(numbers, edges)[0] / len(places)
            ax.stairs(
                heights, edges, color=colour, linewidth=1.3, fill=side == 0, alpha=0.5 if side == 0 else 1.0, ls=line
            )
        shares = [float(np.mean(places == strip)) for strip in strips]
        lefts = np.asarray(strips, dtype=np.float64) - half * (1 - side)
        hatch = "" if side == 0 else "////"
        ax.bar(lefts, shares, half, align="edge", color=colour, edgecolor="white", linewidth=0, hatch=hatch)
    ax.set_ylim(bottom=0.0)


def _write_correlations(ax: Axes, first: list[Column], second: list[Column]) -> None:
    """Correlation of two columns of numbers, over rows where none is missing."""
    ax.set_axis_off()
    lines = []
    for table, (x, y) in zip(("real", "generated"), zip(first, second, strict=True), strict=True):
        if x.numbers is not None and y.numbers is not None:
            lines.append(f"{table}\n{_correlation(x.numbers, y.numbers)}")
    for line, (text, colour) in enumerate(zip(lines, (DARK, GENERATED), strict=False)):
        place: dict[str, Any] = {"transform": ax.transAxes, "ha": "center", "va": "center"}
        ax.text(0.5, 0.72 - 0.44 * line, text, color=colour, fontsize=VALUE_SIZE, **place)


def _correlation(x: Floats, y: Floats) -> str:
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return "r undefined"
    return f"r = {np.corrcoef(x, y)[0, 1]:.2f}".replace("-", "−")


def _dress(ax: Axes, axes: list[ValueAxis], i: int, j: int) -> None:
    """Ticks and names at the left and at the bottom of the grid only."""
    if i < j:
        return
    axes[j].dress(ax, "x", label=False, ticks=3)
    if i > j:
        axes[i].dress(ax, "y", label=False, ticks=3)
    ax.tick_params(which="both", labelsize=7, labelbottom=i == len(axes) - 1, labelleft=j == 0 and i > 0)
    if i == j:
        ax.set_yticks([])
    if i == len(axes) - 1:
        ax.set_xlabel(shorten(axes[j].name, _LONGEST), fontsize=VALUE_SIZE)
    if j == 0:
        ax.set_ylabel(shorten(axes[i].name, _LONGEST), fontsize=VALUE_SIZE)
    for side in ("top", "right"):
        ax.spines[side].set_color(GREY)
