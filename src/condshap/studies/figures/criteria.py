"""A criterion of every method, ours and the paper's, against training rows or correlation, for studies with tables."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from condshap.exceptions import StorageError
from condshap.studies.figures.style import COLOURS, new_figure
from condshap.studies.pages.study_page import NAMES
from condshap.studies.pages.summary import Results, summarise
from condshap.studies.running.runner import TRUTH


def draw_criterion(results: Results, criterion: str) -> Figure:
    """A panel per setting: ours as lines with standard errors, the paper's figures as crosses."""
    table = summarise(results, (criterion,))
    table = table[table["method"] != TRUTH]
    if not table["repetitions"].any():
        raise StorageError(f"the figure needs results of '{results.study.name}', got none. Run the study first.")
    along = "rho" if "rho" in table and table["rho"].nunique() > 1 else "N"
    settings = [name for name in ("M", "L", "N") if name in table and name != along]
    groups = list(table.groupby(settings, sort=False))
    n_columns = min(3, len(groups))
    figure, axes = new_figure(
        3.6 * n_columns, 3 * -(-len(groups) // n_columns), -(-len(groups) // n_columns), n_columns
    )
    for axis, (setting, some) in zip(axes.flat, groups, strict=False):
        _draw_panel(axis, some, along)
        axis.set_title(", ".join(f"{name} = {value:g}" for name, value in zip(settings, setting, strict=True)))
        axis.set_xlabel(along)
        axis.set_ylabel(NAMES[criterion])
    for axis in axes.flat[len(groups) :]:
        axis.set_axis_off()
    axes[0, 0].scatter([], [], marker="x", s=20, color="black", label="the paper's figures")
    axes[0, 0].legend(frameon=False, fontsize=7)
    return figure


def _draw_panel(axis: object, table: pd.DataFrame, along: str) -> None:
    for method, some in table.groupby("method", sort=False):
        colour, line = COLOURS.get(str(method), "black"), some.sort_values(along)
        ours = line[line["repetitions"] > 0]
        axis.errorbar(  # type: ignore[attr-defined]
            ours[along], ours["mean"], yerr=ours["std_error"].fillna(0.0), color=colour, marker="o", markersize=3,
            label=method,
        )  # fmt: skip
        axis.scatter(line[along], line["paper"], marker="x", s=20, color=colour)  # type: ignore[attr-defined]
    if along == "N":
        axis.set_xscale("log")  # type: ignore[attr-defined]
