"""Explanation -> Axes: pictures of Shapley values and of what they were made from, a file per plot.

Every function draws into `ax`, or into a new figure if `ax` is None, and returns the Axes; nothing is shown, saved or set
globally. Names longer than 40 characters are shortened in the middle, and players beyond `max_features` lines are added up
as "N others". Orange-red raises a prediction; blue with stripes lowers it. Numbers follow the rule of
`condshap.numerics.readable`: digits end with the second one of the standard error.
"""

from __future__ import annotations

from condshap.plots.bar import bar
from condshap.plots.beeswarm import beeswarm
from condshap.plots.compare import compare
from condshap.plots.conditional_samples import conditional_samples
from condshap.plots.facet import facet
from condshap.plots.force import force
from condshap.plots.heatmap import heatmap
from condshap.plots.horizons import horizons
from condshap.plots.interaction_bar import interaction_bar
from condshap.plots.interaction_network import interaction_network
from condshap.plots.interactions import interactions
from condshap.plots.msev import msev
from condshap.plots.pairs import pairs
from condshap.plots.scatter import scatter
from condshap.plots.training_curves import training_curves
from condshap.plots.waterfall import waterfall

__all__ = [
    "bar",
    "beeswarm",
    "compare",
    "conditional_samples",
    "facet",
    "force",
    "heatmap",
    "horizons",
    "interaction_bar",
    "interaction_network",
    "interactions",
    "msev",
    "pairs",
    "scatter",
    "training_curves",
    "waterfall",
]
