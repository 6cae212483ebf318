"""Figures that the paper prints, to stand beside ours; tables of its Sections 4.2, 4.3 and Appendix D."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from condshap.studies.cells import BurrCell, CategoricalCell, Cell, MixedCell
from condshap.studies.designs import MIXED_SETUPS


@cache
def published_table(name: str) -> pd.DataFrame:
    """One of the paper's tables: continuous_low, continuous_high, mixed_low or categorical."""
    with files("condshap.studies").joinpath("paper", f"{name}.csv").open() as file:
        return pd.read_csv(file)


def published(cell: Cell, method: str, criterion: str = "EC1") -> float | None:
    """Mean of a criterion in the paper for a cell's setting and one of the paper's methods, None if it has none.

    The number of explained rows and the forest are not looked at.

    >>> published(BurrCell(5, 1000), "gaussian")
    0.0424
    """
    name, wanted = _place(cell, criterion)
    if name is None:
        return None
    table = published_table(name)
    fits = (table[list(wanted)] == pd.Series(wanted)).all(axis=1) & (table["method"] == method)
    column = "value" if "value" in table else criterion
    if column not in table or not fits.any():
        return None
    return float(table.loc[fits, column].iloc[0])


def _place(cell: Cell, criterion: str) -> tuple[str | None, dict[str, float | str]]:
    """Table in which a cell would stand, and the columns that tell where."""
    if isinstance(cell, BurrCell) and cell.kappa == 2.0:
        name = "continuous_low" if cell.n_coalitions is None else "continuous_high"
        return name, {"M": cell.n_features, "N_train": cell.n_train, "criterion": criterion}
    if isinstance(cell, MixedCell) and cell.n_coalitions is None:
        setup = MIXED_SETUPS[cell.setup]
        counts = {"M_cont": setup.n_continuous, "M_cat": setup.n_categorical, "L": len(setup.cutoffs) + 1}
        return "mixed_low", {**counts, "N_train": cell.n_train, "rho": cell.rho}
    if isinstance(cell, CategoricalCell) and cell.n_train == 1000:
        return "categorical", {"M": cell.n_features, "L": cell.n_levels, "rho": cell.rho}
    return None, {}
