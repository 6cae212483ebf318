"""Figures that the paper prints, to stand beside ours; tables of its Sections 4.2 to 5 and Appendix D."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from condshap.studies.designs import MIXED_SETUPS
from condshap.studies.problems.abalone import AbaloneCell
from condshap.studies.problems.cells import BurrCell, CategoricalCell, Cell, MixedCell

_SHARED = ("independence", "empirical", "gaussian", "copula", "ctree")


@cache
def published_table(name: str) -> pd.DataFrame:
    """One of the paper's tables, by the name of its file in ``paper/``, such as continuous_low."""
    with files("condshap.studies.pages").joinpath("paper", f"{name}.csv").open() as file:
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


def paper_name(cell: Cell, method: str) -> str | None:
    """What the paper calls a method in a cell, None if it has no such method.

    Where coalitions are drawn, the default learns from their masks, which the paper calls VAEAC_C, and uniform masks are its
    VAEAC. Where all coalitions are used there is only VAEAC. The number of samples of
    other methods is not looked at.

    >>> paper_name(BurrCell(25, 1000, n_coalitions=1000), "vaeac")
    'vaeac_c'
    """
    base = re.sub(r":n_samples=\d+$", "", method)
    shared = base if base in _SHARED else None
    if method == "truth":
        return "true"
    if getattr(cell, "n_coalitions", None) is not None:
        return {"vaeac": "vaeac_c", "vaeac-uniform": "vaeac"}.get(method, shared)
    return "vaeac" if method in ("vaeac", "vaeac-paper") else shared


def published_for(cell: Cell, method: str, criterion: str) -> float | None:
    """Figure of the paper to stand beside one of our methods, None if there is none."""
    name = paper_name(cell, method)
    return None if name is None else published(cell, name, criterion)


def published_minutes(cell: Cell, method: str) -> float | None:
    """CPU minutes that the paper's method took for the whole of a cell's explanations, None if it has none.

    The paper timed VAEAC_C only, with all coalitions, too.
    """
    name = {"vaeac": "vaeac_c", "vaeac-paper": "vaeac_c"}.get(method, method)
    mixed = isinstance(cell, MixedCell)
    table = published_table("cpu_minutes_mixed" if mixed else "cpu_minutes_continuous")
    if not mixed and not isinstance(cell, BurrCell):
        return None
    wanted = _mixed_counts(cell) if isinstance(cell, MixedCell) else {"M": cell.setting["M"]}
    wanted |= {"N_train": cell.setting["N"]}
    fits = (table[list(wanted)] == pd.Series(wanted)).all(axis=1) & (table["method"] == name)
    return float(table.loc[fits, "total_min"].iloc[0]) if fits.any() else None


def _place(cell: Cell, criterion: str) -> tuple[str | None, dict[str, Any]]:
    """Table in which a cell would stand, and the columns that tell where."""
    if isinstance(cell, BurrCell) and cell.kappa == 2.0:
        name = "continuous_low" if cell.n_coalitions is None else "continuous_high"
        return name, {"M": cell.n_features, "N_train": cell.n_train, "criterion": criterion}
    if isinstance(cell, MixedCell):
        name = "mixed_low" if cell.n_coalitions is None else "mixed_high"
        return name, {**_mixed_counts(cell), "N_train": cell.n_train, "rho": cell.rho}
    if isinstance(cell, CategoricalCell) and cell.n_train == 1000:
        return "categorical", {"M": cell.n_features, "L": cell.n_levels, "rho": cell.rho}
    if isinstance(cell, AbaloneCell) and cell.n_train == AbaloneCell().n_train:
        return "abalone_ec3", {}
    return None, {}


def _mixed_counts(cell: MixedCell) -> dict[str, float]:
    setup = MIXED_SETUPS[cell.setup]
    return {"M_cont": setup.n_continuous, "M_cat": setup.n_categorical, "L": len(setup.cutoffs) + 1}
