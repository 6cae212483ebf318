"""Cells of a study; see `condshap.studies.problems.cells`."""

from condshap.studies.problems.cells import (
    BurrCell,
    CategoricalCell,
    Cell,
    Law,
    MixedCell,
    Problem,
    draw_coalitions,
    fit_forest,
    speed_up,
)

__all__ = [
    "BurrCell",
    "CategoricalCell",
    "Cell",
    "Law",
    "MixedCell",
    "Problem",
    "draw_coalitions",
    "fit_forest",
    "speed_up",
]
