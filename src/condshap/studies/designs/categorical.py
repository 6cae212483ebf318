"""Categorical data: equicorrelated normals, all of them cut into levels (Appendices D and E.3 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from condshap.exceptions import OptionError, listing
from condshap.seeding import generator
from condshap.studies.designs.base import encode_rows
from condshap.studies.designs.linear import LinearModel
from condshap.studies.designs.mixed import MixedGaussian, check_law
from condshap.studies.designs.one_factor import OneFactor, joint_probabilities
from condshap.types import Floats, Rows, Table

MAX_CELLS = 2000
"""How many cells the paper explains where there are more."""

_ENUMERABLE = 2**22

CATEGORICAL_SETUPS: Mapping[tuple[int, int], tuple[float, ...]] = MappingProxyType(
    {
        (3, 3): (0.0, 1.0),
        (3, 4): (-0.5, 0.0, 1.0),
        (4, 3): (0.0, 1.0),
        (5, 6): (-1.5, -1.0, 0.0, 0.5, 1.0),
        (7, 4): (-0.5, 0.5, 1.0),
        (10, 3): (-0.5, 1.0),
    }
)
"""Inner cut-offs of the paper's categorical setups by (M, L)."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells to explain: rows (n, M) of levels as a table, and their probabilities (n,), rescaled to sum to 1.

    `coverage` is the probability of all of these cells together before rescaling.
    """

    X: pd.DataFrame
    weights: Floats
    coverage: float


def categorical_design(n_features: int, n_levels: int, rho: float, seed: int = 0) -> MixedGaussian:
    """One of the paper's categorical designs; `seed` draws its coefficients.

    >>> categorical_design(3, 4, rho=0.5).n_levels
    4
    """
    if (n_features, n_levels) not in CATEGORICAL_SETUPS:
        raise OptionError(
            f"a categorical design must be one of (M, L) in {listing(CATEGORICAL_SETUPS, limit=6)}, got "
            f"{(n_features, n_levels)}. Use draw_categorical for others."
        )
    return draw_categorical(n_features, CATEGORICAL_SETUPS[n_features, n_levels], rho, seed)


def draw_categorical(n_features: int, cutoffs: tuple[float, ...], rho: float, seed: int) -> MixedGaussian:
    """Categorical design of any size; intercept and effects are standard normal, the noise has deviation 0.1."""
    law = check_law(OneFactor(n_features, 0, tuple(cutoffs), rho))
    rng = generator(seed, "categorical design coefficients")
    intercept = float(rng.standard_normal())
    effects = rng.standard_normal((n_features, len(cutoffs) + 1))
    return MixedGaussian(law, LinearModel.of(intercept, effects, []), noise=0.1)


def cell_probabilities(design: MixedGaussian, X: Table) -> Floats:
    """Probability p(x) of every row's cell, shape (n,); by one-dimensional quadrature (Appendix E.3 of the paper)."""
    return joint_probabilities(_all_factors(design), encode_rows(design, X))


def likely_cells(design: MixedGaussian, limit: int = MAX_CELLS) -> Cells:
    """All L^M cells if they are at most `limit`, otherwise the most likely ones, most likely first.

    Cells of equal probability, which are many because factors are exchangeable, are taken in lexicographic order.
    """
    law = _all_factors(design)
    if limit < 1:
        raise OptionError(f"limit must be at least 1 cell, got {limit}.")
    codes = _all_cells(law.n_categorical, design.n_levels)
    probabilities = joint_probabilities(law, codes)
    if len(codes) > limit:
        order = np.argsort(-np.log(probabilities).round(10), kind="stable")[:limit]
        codes, probabilities = codes[order], probabilities[order]
    coverage = float(probabilities.sum())
    return Cells(design.schema.decode(codes), probabilities / coverage, coverage)


def _all_factors(design: MixedGaussian) -> OneFactor:
    if design.law.n_continuous:
        raise OptionError(
            f"cells need a design of factors only, got one with {design.law.n_continuous} numbers. Draw rows instead."
        )
    return design.law


def _all_cells(n_features: int, n_levels: int) -> Rows:
    """All cells (L^M, M) as codes, lexicographic."""
    if n_levels**n_features > _ENUMERABLE:
        raise OptionError(f"at most {_ENUMERABLE} cells can be listed, got {n_levels}^{n_features}. Draw rows instead.")
    grid = np.indices((n_levels,) * n_features).reshape(n_features, -1).T
    return np.ascontiguousarray(grid, dtype=np.float64)
