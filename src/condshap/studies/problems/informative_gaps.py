"""Values that are missing for a reason: an example whose truth is known (Appendix C.4 of the paper).

Three equicorrelated normals; x3 is missing mostly where x2 is negative. That x3 is missing then says something about x2,
also to one who knows x1. The model to explain is x1 + x2, so it does not mind a gap in x3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtr

from condshap.coalitions import all_coalitions
from condshap.schema import Kind
from condshap.seeding import derive_seed, generator
from condshap.studies.problems.cells import NUMBERS, Problem
from condshap.types import Floats, Masks, Model, Table

_STAGE = "informative missingness"


@dataclass(frozen=True, slots=True)
class InformativeGaps:
    """Three normals, the third of them missing with a probability that depends on the sign of the second.

    Attributes
    ----------
    rho : correlation of any two
    if_negative, if_positive : probabilities that x3 is missing for x2 < 0 and for x2 > 0
    """

    rho: float = 0.5
    if_negative: float = 0.9
    if_positive: float = 0.1

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Draw n rows with gaps in x3."""
        rng = generator(seed, _STAGE)
        normals = np.sqrt(self.rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - self.rho) * rng.standard_normal((n, 3))
        chance = np.where(normals[:, 1] < 0, self.if_negative, self.if_positive)
        normals[rng.random(n) < chance, 2] = np.nan
        return pd.DataFrame(normals, columns=["x1", "x2", "x3"])

    def true_values(
        self, model: Model, X: Table, masks: Masks, *, base_value: float | None = None
    ) -> tuple[Floats, Floats]:
        """E[x1 + x2 | x_S, whether x3 is missing if 3 is in S] in closed form, and zeros; both (C, R).

        Parameters
        ----------
        model : `sum_of_two`, whatever is passed
        X : R rows of the design
        masks : (C, 3), True = in S
        base_value : v of the empty coalition, None for the true mean, 0
        """
        rows = np.asarray(X, dtype=np.float64)
        v = np.stack([self._expected(rows, mask) for mask in masks])
        v[~masks.any(axis=1)] = 0.0 if base_value is None else base_value
        return v, np.zeros_like(v)

    def _expected(self, rows: Floats, mask: Masks) -> Floats:
        """E[x1 + x2 | x_S], shape (R,): first x2, then x1 by regression on x2 and the numbers that are known."""
        known = mask & ~np.isnan(rows)  # (R, 3)
        x2 = np.where(mask[1], rows[:, 1], self._expected_second(rows, known, says_gap=bool(mask[2])))
        given = np.column_stack([np.ones(len(rows), dtype=bool), known[:, 2]])
        others = np.column_stack([x2, np.where(known[:, 2], rows[:, 2], 0.0)])
        x1 = np.where(mask[0], rows[:, 0], _regression(self.rho, given, others)[0])
        return np.asarray(x1 + x2)

    def _expected_second(self, rows: Floats, known: Masks, *, says_gap: bool) -> Floats:
        """E[x2 | known ones of x1 and x3, and whether x3 is missing], shape (R,)."""
        given = known[:, [0, 2]]
        mean, deviation = _regression(self.rho, given, np.where(given, rows[:, [0, 2]], 0.0))
        if not says_gap:
            return mean
        is_gap = np.isnan(rows[:, 2])
        negative = np.where(is_gap, self.if_negative, 1 - self.if_negative)
        positive = np.where(is_gap, self.if_positive, 1 - self.if_positive)
        return mean + deviation * _tilted_mean(mean / deviation, negative, positive)


def _regression(rho: float, given: Masks, others: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation (R,) of a normal given some of its equicorrelated fellows (R, n), the others of which are 0."""
    n_given = given.sum(axis=1)
    slope = rho / (1 + (n_given - 1) * rho)
    return slope * others.sum(axis=1), np.sqrt(1 - n_given * rho * slope)


def _tilted_mean(shift: Floats, negative: Floats, positive: Floats) -> Floats:
    """Mean (R,) of a standard normal e whose density is multiplied by one of two weights, by the sign of shift + e."""
    density = np.exp(-(shift**2) / 2) / np.sqrt(2 * np.pi)
    mass = negative * ndtr(-shift) + positive * ndtr(shift)
    return np.asarray((positive - negative) * density / mass)


def sum_of_two(X: pd.DataFrame) -> Floats:
    """The model: x1 + x2, shape (n,)."""
    return np.asarray(X["x1"] + X["x2"], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class InformativeCell:
    """Explain rows in which x3 is missing, where that says something.

    Attributes
    ----------
    n_train, n_rows : training rows, about half of them with a gap, and explained rows, all of them with one
    gaps : the design
    """

    n_train: int = 1000
    n_rows: int = 200
    gaps: InformativeGaps = InformativeGaps()

    @property
    def key(self) -> str:
        """Name of the cell.

        >>> InformativeCell().key
        'informative rho=0.5 missing=0.9/0.1 N=1000 rows=200'
        """
        law = f"rho={self.gaps.rho:g} missing={self.gaps.if_negative:g}/{self.gaps.if_positive:g}"
        return f"informative {law} N={self.n_train} rows={self.n_rows}"

    @property
    def truth_key(self) -> str:
        """Name of the truth."""
        return self.key

    @property
    def setting(self) -> Mapping[str, float]:
        """M, N and rho."""
        return {"M": 3, "N": self.n_train, "rho": self.gaps.rho}

    @property
    def kinds(self) -> frozenset[Kind]:
        """Numbers only."""
        return NUMBERS

    def make_problem(self, repetition: int) -> Problem:
        """Draw training rows, and rows with a gap in x3."""
        X_train = self.gaps.draw(self.n_train, derive_seed(repetition, "training rows"))
        drawn = self.gaps.draw(10 * self.n_rows, derive_seed(repetition, "test rows"))
        X = drawn[drawn["x3"].isna()].head(self.n_rows).reset_index(drop=True)
        base_value = float(sum_of_two(X_train).mean())
        return Problem(self.gaps, X_train, X, None, sum_of_two, base_value, all_coalitions(3))

    def quick(self) -> InformativeCell:
        """A cell of 30 rows and 200 training rows."""
        return replace(self, n_train=200, n_rows=30)
