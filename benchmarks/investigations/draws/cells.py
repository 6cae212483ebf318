"""What the draw check is run on: data and approach by seed, where draws are right and where they are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.investigations.draws.approaches import Truth, Worse, halve_dependence, halve_spread, thin_a_level
from benchmarks.investigations.draws.tables import NormalDesign, normals, plain_tables
from condshap.studies.designs import burr_design, categorical_design, mixed_design
from condshap.testing.truth import GaussianTruth

RHO = 0.6
MANY = 1000  # rows from which on trees and neighbours are right


@dataclass(frozen=True)
class RightCell:
    """Data, approach, rows, what makes table and approach from a seed, and how many seeds: all should be quiet."""

    data: str
    approach: str
    n_rows: int
    make: Callable[[int], tuple[Any, Any]]
    seeds: int = 5


@dataclass(frozen=True)
class WrongCell:
    """Draws made worse on purpose, rows, and what makes table and approach from a seed."""

    draws: str
    n_rows: int
    make: Callable[[int], tuple[Any, Any]]


def of_normals(n_features: int, rho: float, n: int, approach: Any, seed: int) -> tuple[Any, Any]:
    """Normals with equal correlations."""
    return normals(n_features, rho, n, seed), approach


def of_design(design: Callable[[int], Any], n: int, approach: Any, seed: int) -> tuple[Any, Any]:
    """Rows of a design and an approach; None for the design's own conditional distributions."""
    made = design(seed)
    return made.draw(n, seed), Truth(made) if approach is None else approach


def spoiled(design: Callable[[int], Any], n: int, spoil: Callable[..., None], seed: int) -> tuple[Any, Any]:
    """Rows of a design, and its truth made worse."""
    return design(seed).draw(n, seed), Worse(design(seed), spoil)


def _burr(n_features: int, seed: int) -> Any:
    return burr_design(n_features, seed=seed)


def _mixed(rho: float, seed: int) -> Any:
    return mixed_design("M4", rho, seed)


def _categorical(rho: float, seed: int) -> Any:
    return categorical_design(4, 3, rho, seed)


def right_cells(quick: bool) -> list[RightCell]:
    """All cells in which draws are right, or few and small ones."""
    cells = [cell for n in (100, 300, MANY, 5000) for cell in (*_by_truth(n), *(_by_rows(n) if n >= MANY else ()))]
    for title, make in plain_tables().items():
        for n, seeds in ((300, 6), (MANY, 1)):
            cells.append(RightCell(title, "vaeac", n, lambda s, make=make, n=n: (make(n, s), "vaeac"), seeds))
    if not quick:
        return cells
    few = [cell for cell in cells if cell.n_rows < MANY and cell.approach != "vaeac"]
    return [RightCell(cell.data, cell.approach, cell.n_rows, cell.make, 1) for cell in few]


def _by_truth(n: int) -> Iterator[RightCell]:
    """The truth itself, and approaches whose assumptions hold."""
    for m, rho in ((5, 0.3), (5, 0.9), (10, 0.6)):
        truth = GaussianTruth(np.zeros(m), rho + (1 - rho) * np.eye(m))
        for name, approach in (("gaussian", "gaussian"), ("copula", "copula"), ("truth", truth)):
            yield RightCell(f"normal, M = {m}, rho = {rho}", name, n, partial(of_normals, m, rho, n, approach))
    for m in (5, 10):
        yield RightCell(f"Burr, M = {m}", "copula", n, partial(of_design, partial(_burr, m), n, "copula"))
        yield RightCell(f"Burr, M = {m}", "truth", n, partial(of_design, partial(_burr, m), n, None))
    for rho in (0.0, 0.5, 0.9):
        for title, design in (("mixed, M = 4", _mixed), ("categorical, M = 4, L = 3", _categorical)):
            yield RightCell(f"{title}, rho = {rho}", "truth", n, partial(of_design, partial(design, rho), n, None))


def _by_rows(n: int) -> Iterator[RightCell]:
    """Approaches that lend training rows, which are right where there are many."""
    for rho in (0.3, 0.6):
        for name in ("ctree", "empirical"):
            yield RightCell(f"normal, M = 5, rho = {rho}", name, n, partial(of_normals, 5, rho, n, name))
    for name in ("ctree", "empirical"):
        yield RightCell("Burr, M = 5", name, n, partial(of_design, partial(_burr, 5), n, name))
    for title, design in (("mixed, M = 4", _mixed), ("categorical, M = 4, L = 3", _categorical)):
        yield RightCell(f"{title}, rho = 0.5", "ctree", n, partial(of_design, partial(design, 0.5), n, "ctree"))


def wrong_cells() -> list[WrongCell]:
    """The truth made worse in four ways."""
    normal = NormalDesign(5, RHO)
    ways: dict[str, tuple[Callable[[int], Any], Callable[..., None]]] = {
        f"normal, M = 5, rho = {RHO}: dependence halved": (lambda _: normal, halve_dependence),
        f"normal, M = 5, rho = {RHO}: spread halved": (lambda _: normal, halve_spread),
        "mixed, M = 4, rho = 0.5: a level a third rarer": (partial(_mixed, 0.5), thin_a_level),
        "mixed, M = 4, rho = 0.9: dependence halved": (partial(_mixed, 0.9), halve_dependence),
    }
    return [
        WrongCell(title, n, partial(spoiled, design, n, spoil))
        for n in (300, 1000, 5000)
        for title, (design, spoil) in ways.items()
    ]
