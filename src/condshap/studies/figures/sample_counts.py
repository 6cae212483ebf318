"""Criteria and CPU time against the number of samples K, plain and quasi-Monte Carlo (the paper's Appendix F)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from condshap.exceptions import StorageError
from condshap.studies.figures.style import COLOURS, new_figure
from condshap.studies.methods import find_method
from condshap.studies.summary import Results, mean_and_error
from condshap.studies.tables import NAMES

KINDS = {"plain": COLOURS["independence"], "nets": COLOURS["vaeac"]}
LABELS = {"plain": "independent draws", "nets": "quasi-Monte Carlo"}


def count_table(results: Results) -> pd.DataFrame:
    """One line per kind of draws, K and quantity (ec1, ec2, ec3, minutes): mean and standard error over repetitions."""
    (cell,) = results.study.cells
    lines = []
    for name in results.study.methods:
        method = find_method(name)
        kind = str(dict(method.options).get("draws", "plain" if method.is_paper else "nets"))
        values = {criterion: results.values(cell, name, criterion) for criterion in NAMES}
        seconds = sum(results.values(cell, name, part) for part in ("cpu_fit", "cpu_explain"))
        values["minutes"] = np.asarray(seconds) / 60
        for quantity, some in values.items():
            mean, error = mean_and_error(some)
            lines.append((kind, method.n_samples, quantity, mean, error))
    return pd.DataFrame(lines, columns=["kind", "K", "quantity", "mean", "std_error"]).dropna(subset="mean")


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
