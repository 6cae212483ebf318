"""The paper's simulation designs: rows, responses, and exact truth about them."""

from __future__ import annotations

from condshap.studies.designs.base import Design, true_values
from condshap.studies.designs.burr import Burr, burr_design
from condshap.studies.designs.categorical import (
    CATEGORICAL_SETUPS,
    Cells,
    categorical_design,
    cell_probabilities,
    draw_categorical,
    likely_cells,
)
from condshap.studies.designs.linear import LinearModel
from condshap.studies.designs.mixed import MIXED_SETUPS, MixedGaussian, draw_mixed, mixed_design
from condshap.studies.designs.one_factor import OneFactor

__all__ = [
    "CATEGORICAL_SETUPS",
    "MIXED_SETUPS",
    "Burr",
    "Cells",
    "Design",
    "LinearModel",
    "MixedGaussian",
    "OneFactor",
    "burr_design",
    "categorical_design",
    "cell_probabilities",
    "draw_categorical",
    "draw_mixed",
    "likely_cells",
    "mixed_design",
    "true_values",
]
