"""Conditional samples given ShellWeight among the training rows (the paper's Figure "sampling from the estimated
conditional distributions").
"""  # noqa: D205

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from condshap.plots.conditional_samples import conditional_samples
from condshap.studies.figures.scene import AT, GIVEN, Scene
from condshap.studies.figures.style import new_figure

ACROSS = ("Diameter", "ShuckedWeight")
_SHIFT = 0.012
"""How far the points of one method stand above those of the next, so that all can be seen."""


def draw_samples(scene: Scene) -> Figure:
    """Samples of the feature on the x-axis given four values of ShellWeight, a panel per feature."""
    figure, axes = new_figure(9, 4.2, 1, len(ACROSS), sharey=True)
    methods = dict.fromkeys(name for name, _ in scene.drawn)
    samples = {name: pd.concat([scene.drawn[name, value].rows for value in AT]) for name in methods}
    for axis, feature in zip(axes[0], ACROSS, strict=True):
        conditional_samples(scene.X_train, samples, feature, GIVEN, shift=_SHIFT, legend=False, ax=axis)
    axes[0, 1].set_ylabel("")
    axes[0, 0].legend(loc="upper left", markerscale=2, frameon=False)
    return figure
