"""Densities of the predicted response over conditional samples given ShellWeight, by method."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from condshap.studies.figures.scene import AT, GIVEN, Drawn, Scene
from condshap.studies.figures.style import COLOURS, new_figure
from condshap.types import Floats

_POINTS = 300
_MARGIN = 3.0  # rings


def draw_densities(scene: Scene) -> Figure:
    """A panel per value of ShellWeight: where the forest's predictions fall, and v(S) as a vertical line."""
    figure, axes = new_figure(11, 3.2, 1, len(AT), sharex=True)
    every = np.concatenate([drawn.responses for drawn in scene.drawn.values()])
    rings = np.linspace(every.min() - _MARGIN, every.max() + _MARGIN, _POINTS)
    for axis, value in zip(axes[0], AT, strict=True):
        for name, at in scene.drawn:
            if at == value:
                drawn = scene.drawn[name, at]
                axis.plot(rings, density(drawn, rings), color=COLOURS[name], label=name)
                axis.axvline(drawn.weights @ drawn.responses, color=COLOURS[name], linestyle=":")
        axis.set_title(f"{GIVEN} = {value:g}")
        axis.set_xlabel("predicted rings")
        axis.set_yticks([])
    axes[0, 0].set_ylabel("density")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


def density(drawn: Drawn, at: Floats) -> Floats:
    """Kernel density estimate of the responses at points (n,)."""
    return np.asarray(gaussian_kde(drawn.responses, weights=drawn.weights)(at))
