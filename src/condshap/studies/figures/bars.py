"""Shapley values of three observations by method, side by side (the paper's Figure "Shapley values for three test
observations").
"""  # noqa: D205

from __future__ import annotations

from matplotlib.figure import Figure

from condshap.plots.compare import compare
from condshap.studies.figures.scene import Scene
from condshap.studies.figures.style import new_figure

LETTERS = ("A", "B", "C")


def draw_bars(scene: Scene) -> Figure:
    """A panel per observation: bars of every feature by method, with standard errors."""
    explanations = scene.explanations
    figure, axes = new_figure(11, 4.6, 1, len(LETTERS))
    for row, (axis, letter) in enumerate(zip(axes[0], LETTERS, strict=True)):
        compare(explanations, row, sort=False, legend=False, ax=axis)
        axis.locator_params(axis="x", nbins=4)  # a panel is narrow
        prediction = next(iter(explanations.values())).predictions[row]
        axis.set_title(f"{letter}: predicted {prediction:.2f} rings")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
