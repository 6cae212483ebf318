"""A criterion of every method, ours and the paper's, against training rows or correlation, for studies with tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from condshap.exceptions import StorageError
from condshap.studies.figures.style import COLOURS, new_figure
from condshap.studies.pages.study_page import NAMES
from condshap.studies.pages.summary import Results, summarise
from condshap.studies.running.runner import TRUTH


def draw_criterion(results: Results, criterion: str) -> Figure:
    """A panel per setting, with a logarithmic scale: ours as lines with standard errors, the paper's figures as crosses."""
    table = summarise(results, (criterion,))
    table = table[table["method"] != TRUTH]
    if not table["repetitions"].any():
        raise StorageError(f"the figure needs results of '{results.study.name}', got none. Run the study first.")
    along = "rho" if "rho" in table and table["rho"].nunique() > 1 else "N"
    settings = [name for name in ("M", "L", "N") if name in table and name != along]
    groups = [(setting, some) for setting, some in table.groupby(settings, sort=False) if _shows_anything(some)]
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
    if table["paper"].notna().any():
        axes[0, 0].scatter([], [], marker="x", s=20, color="black", label="the paper's figures")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, fontsize=8)
    return figure


def _shows_anything(table: pd.DataFrame) -> bool:
    return bool(table[["mean", "paper"]].notna().any(axis=None))


def _draw_panel(axis: object, table: pd.DataFrame, along: str) -> None:
    for method, some in table.groupby("method", sort=False):
        colour, line = COLOURS.get(str(method), "black"), some.sort_values(along)
        ours = line[line["repetitions"] > 0]
        axis.errorbar(  # type: ignore[attr-defined]
            ours[along], ours["mean"], yerr=ours["std_error"].fillna(0.0), color=colour, marker="o", markersize=3,
            label=method,
        )  # fmt: skip
        axis.scatter(line[along], line["paper"], marker="x", s=20, color=colour)  # type: ignore[attr-defined]
    shown = table[["mean", "paper"]].to_numpy(dtype=float)
    if (shown[~np.isnan(shown)] > 0).all():  # EC2 that is freed of sampling variance may be below 0
        axis.set_yscale("log")  # type: ignore[attr-defined]
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))  # type: ignore[attr-defined]
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))  # type: ignore[attr-defined]
        axis.yaxis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]
    if along == "N":
        sizes = sorted(table[along].unique())
        axis.set_xscale("log")  # type: ignore[attr-defined]
        axis.set_xticks(sizes, [f"{size:g}" for size in sizes])  # type: ignore[attr-defined]
        axis.set_xticks([], minor=True)  # type: ignore[attr-defined]
