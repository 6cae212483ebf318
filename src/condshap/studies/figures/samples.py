"""Conditional samples given ShellWeight among the training rows (the paper's Figure "sampling from the estimated
conditional distributions").
"""  # noqa: D205

from __future__ import annotations

from matplotlib.figure import Figure

from condshap.studies.figures.scene import AT, GIVEN, Scene
from condshap.studies.figures.style import COLOURS, GREY, new_figure

ACROSS = ("Diameter", "ShuckedWeight")
_SHIFT = 0.012
"""How far the points of one method stand above those of the next, so that all can be seen."""


def draw_samples(scene: Scene) -> Figure:
    """Samples of the feature on the x-axis given four values of ShellWeight, a panel per feature."""
    figure, axes = new_figure(9, 4.2, 1, len(ACROSS), sharey=True)
    methods = list(dict.fromkeys(name for name, _ in scene.drawn))
    for axis, feature in zip(axes[0], ACROSS, strict=True):
        axis.scatter(scene.X_train[feature], scene.X_train[GIVEN], s=3, color=GREY, label="training rows")
        for i, name in enumerate(methods):
            for value in AT:
                rows = scene.drawn[name, value].rows
                height = rows[GIVEN] + _SHIFT * (len(methods) - 1 - i)
                label = name if value == AT[0] else None
                axis.scatter(rows[feature], height, s=5, alpha=0.6, color=COLOURS[name], label=label)
        axis.set_xlabel(feature)
    axes[0, 0].set_ylabel(GIVEN)
    axes[0, 0].legend(loc="upper left", markerscale=3, frameon=False)
    return figure
