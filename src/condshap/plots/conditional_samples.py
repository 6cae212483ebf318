"""Training rows, samples -> points: where approaches draw unknown features (the paper's Figure of conditional samples)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError, listing
from condshap.plots.style import (
    MARKERS,
    add_legend,
    colours_of,
    legend_name,
    new_axes,
    open_frame,
)
from condshap.plots.swarm import spread
from condshap.plots.value_axis import ValueAxis
from condshap.tables.reading import Column, read_columns, to_pandas
from condshap.types import Floats, Table
from condshap.views.palette import DARK, GREY


def conditional_samples(
    train: Table,
    samples: Mapping[str, Table] | Table,
    x: str,
    y: str,
    *,
    point: Table | Mapping[str, Any] | None = None,
    shift: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw two features of training rows and of samples, which should lie where training rows with the known values do.

    Parameters
    ----------
    train : training rows
    samples : samples by approach, or one table of them
    x, y : names of two columns
    point : the row that the samples were drawn for: a table of one row or a mapping; marked by a star
    shift : vertical distance between the samples of one approach and the next, in units of `y`, so that none are hidden;
        None for a small distance if all samples have the same `y`, and otherwise 0
    legend : show above the axes which points belong to which approach

    Notes
    -----
    Each level has its own strip, and so do missing values.
    """
    tables = dict(samples) if isinstance(samples, Mapping) else {"samples": samples}
    given = _as_row(point)
    parts = [train, *tables.values(), *([] if given is None else [given])]
    columns = [[_column(part, name) for part in parts] for name in (x, y)]
    axes = [ValueAxis.of(some) for some in columns]
    ax = new_axes(ax, 5.5, 4.6)
    step = _step(axes[1], columns[1][1 : len(tables) + 1]) if shift is None else shift
    across, up = places_of(axes, columns, 0)
    ax.scatter(across, up, s=_size(len(up)), color=GREY, linewidths=0, label="training rows", rasterized=True)
    for i, (name, colour) in enumerate(zip(tables, colours_of(list(tables)), strict=True)):
        across, up = places_of(axes, columns, i + 1)
        style: dict[str, Any] = {"s": 1.6 * _size(len(up)), "marker": MARKERS[i % len(MARKERS)], "alpha": 0.7}
        height = up + step * (len(tables) - 1 - i)
        ax.scatter(across, height, color=colour, linewidths=0, label=legend_name(name), **style)
    if given is not None:
        across, up = (axis.place(some[-1]) for axis, some in zip(axes, columns, strict=True))
        star: dict[str, Any] = {"marker": "*", "color": "white", "edgecolors": DARK, "linewidths": 1.2}
        ax.scatter(across, up, s=160, zorder=5, label="explained row", **star)
    axes[0].dress(ax, "x")
    axes[1].dress(ax, "y")
    open_frame(ax)
    if legend:
        add_legend(ax, above=True)
    return ax


def places_of(axes: list[ValueAxis], columns: list[list[Column]], i: int) -> list[Floats]:
    """Where the rows of table i stand, spread out on strips; (n,) on either axis."""
    return [
        axis.place(some[i])
        + np.where(axis.is_strip(some[i]), spread(len(axis.place(some[i])), k), 0.0) * axis.strip_width()
        for k, (axis, some) in enumerate(zip(axes, columns, strict=True))
    ]


def _step(axis: ValueAxis, columns: list[Column]) -> float:
    """Distance between approaches: 2 % of the axis where all samples are at one place, else 0."""
    places = np.concatenate([axis.place(column) for column in columns])
    return 0.02 * axis.extent if axis.levels is None and np.ptp(places) == 0 else 0.0


def _size(n: int) -> float:
    return float(np.clip(6000 / n, 3, 12))


def _as_row(point: Table | Mapping[str, Any] | None) -> Table | None:
    import pandas as pd

    row = pd.DataFrame([dict(point)]) if isinstance(point, Mapping) else point
    if row is not None and len(to_pandas(row)) != 1:
        raise OptionError(f"point must be one row, got {len(to_pandas(row))}. Pass e.g. X[:1].")
    return row


def _column(table: Table, name: str) -> Column:
    frame = to_pandas(table)
    names = [str(known) for known in frame.columns]
    if str(name) not in names:
        raise OptionError(
            f"'{name}' must be a column of every table, got one with {listing(names)}. Check the spelling."
        )
    return read_columns(frame.iloc[:, [names.index(str(name))]])[0]
