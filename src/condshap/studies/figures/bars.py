"""Shapley values of three observations by method, side by side (the paper's Figure "Shapley values for three test
observations").
"""  # noqa: D205

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from condshap.studies.figures.scene import Scene
from condshap.studies.figures.style import COLOURS, new_figure

LETTERS = ("A", "B", "C")
_WIDTH = 0.8


def draw_bars(scene: Scene) -> Figure:
    """A panel per observation: bars of every feature by method, with standard errors."""
    explanations = scene.explanations
    figure, axes = new_figure(11, 4.6, 1, len(LETTERS))
    features = next(iter(explanations.values())).feature_names
    thickness = _WIDTH / len(explanations)
    for row, (axis, letter) in enumerate(zip(axes[0], LETTERS, strict=True)):
        for i, (name, found) in enumerate(explanations.items()):
            places = np.arange(len(features)) + (i - (len(explanations) - 1) / 2) * thickness
            axis.barh(places, found.values[row], thickness, xerr=found.std_errors[row], color=COLOURS[name], label=name)
        data = next(iter(explanations.values())).data.iloc[row]
        shown = [v if isinstance(v, str) else f"{v:.3g}" for v in data]
        labels = [f"{feature} = {value}" for feature, value in zip(features, shown, strict=True)]
        axis.set_yticks(np.arange(len(features)), labels, fontsize=8)
        axis.invert_yaxis()
        axis.axvline(0, color="black", linewidth=0.8)
        prediction = next(iter(explanations.values())).predictions[row]
        axis.set_title(f"{letter}: predicted {prediction:.2f} rings")
        axis.set_xlabel("Shapley value")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure
