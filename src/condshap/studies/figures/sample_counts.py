"""Criteria and CPU time against the number of samples K, plain and quasi-Monte Carlo (the paper's Appendix F)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from condshap.exceptions import StorageError
from condshap.studies.figures.style import COLOURS, new_figure
from condshap.studies.pages.study_page import NAMES
from condshap.studies.pages.summary import Results, mean_and_error
from condshap.studies.problems.cells import Cell
from condshap.studies.running.methods import find_method
from condshap.types import Floats

KINDS = {"plain": COLOURS["independence"], "qmc": COLOURS["vaeac"]}
LABELS = {"plain": "independent draws", "qmc": "quasi-Monte Carlo"}


def count_table(results: Results) -> pd.DataFrame:
    """One line per kind of draws, K and quantity (ec1, ec2, ec3, minutes): mean and standard error.

    Repetitions that all methods have are compared, and each repetition's own mean over all K is taken off before the
    standard error: how hard a repetition is says nothing about K.
    """
    (cell,) = results.study.cells
    names = [name for name in results.study.methods if results.of(cell, name)]
    common = results.common(cell, names)
    lines = []
    for quantity in (*NAMES, "minutes"):
        values = np.array([_values(results, cell, name, quantity, common) for name in names])  # (methods, R)
        centred = values - values.mean(axis=0) if len(common) else values
        for name, own, rest in zip(names, values, centred, strict=True):
            method = find_method(name)
            kind = str(dict(method.options).get("draws", "plain" if method.is_paper else "qmc"))
            lines.append((kind, method.n_samples, quantity, mean_and_error(own)[0], mean_and_error(rest)[1]))
    return pd.DataFrame(lines, columns=["kind", "K", "quantity", "mean", "std_error"]).dropna(subset="mean")


def _values(results: Results, cell: Cell, name: str, quantity: str, repetitions: Sequence[int]) -> Floats:
    if quantity != "minutes":
        return results.values(cell, name, quantity, repetitions)
    parts = [results.values(cell, name, part, repetitions) for part in ("cpu_fit", "cpu_explain")]
    return np.asarray(sum(parts) / 60)


def draw_counts(results: Results) -> Figure:
    """Three criteria and CPU minutes against K."""
    table = count_table(results)
    if table.empty:
        raise StorageError(f"the figure needs results of '{results.study.name}', got none. Run the study first.")
    figure, axes = new_figure(11, 3, 1, 4)
    for axis, quantity in zip(axes[0], (*NAMES, "minutes"), strict=True):
        for kind, colour in KINDS.items():
            some = table[(table["kind"] == kind) & (table["quantity"] == quantity)].sort_values("K")
            axis.errorbar(
                some["K"], some["mean"], yerr=some["std_error"].fillna(0.0), color=colour, marker="o", markersize=3,
                label=LABELS[kind],
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlabel("K")
        axis.set_title(NAMES.get(quantity, "CPU minutes"))
    axes[0, 3].set_yscale("log")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
