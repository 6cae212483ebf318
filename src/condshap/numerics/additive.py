"""Functions that are sums of one function per feature: their terms at rows, sums of terms, and the linear ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from condshap.types import Floats, Masks, Rows, Values


class AdditiveFunction(ABC):
    """f(x) = intercept + sum_j g_j(x_j), with O outputs.

    Attributes
    ----------
    intercept : (O,)
    levels : per feature the terms of its levels (L, O), None for numbers
    """

    __slots__ = ()
    intercept: Floats
    levels: tuple[Floats | None, ...]

    @abstractmethod
    def term(self, j: int, values: Floats) -> Floats:
        """Return g_j at values or codes of any shape, with one more axis for the outputs; NaN where g_j is not known."""

    def terms(self, rows: Rows) -> Floats:
        """All g_j at rows (n, M), shape (n, M, O)."""
        return np.stack([self.term(j, rows[:, j]) for j in range(rows.shape[1])], axis=1)

    def __call__(self, rows: Floats) -> Floats:
        """Return f at rows (..., M), shape (..., O), summed feature by feature, so that bits do not depend on the shape."""
        total = np.broadcast_to(self.intercept, (*rows.shape[:-1], len(self.intercept))).copy()
        for j in range(rows.shape[-1]):
            total += self.term(j, rows[..., j])
        return total


@dataclass(frozen=True, slots=True, eq=False)
class AffineFunction(AdditiveFunction):
    """f(x) = intercept + sum_j g_j(x_j) with g_j(x) = slope_j x for numbers and any number per level otherwise.

    Attributes
    ----------
    intercept : (O,)
    slopes : (M, O), zero for features with levels
    levels : per feature the terms of its levels (L, O), None for numbers
    """

    intercept: Floats
    slopes: Floats
    levels: tuple[Floats | None, ...]

    def term(self, j: int, values: Floats) -> Floats:
        """Return g_j at values or codes of any shape, with one more axis for the outputs; NaN stays NaN."""
        own = self.levels[j]
        if own is None:
            return np.asarray(values[..., None] * self.slopes[j])
        return level_terms(own, values, np.full(own.shape[1], np.nan))


def level_terms(own: Floats, codes: Floats, missing: Floats) -> Floats:
    """Terms (..., O) of codes of any shape from the table (L, O) of a feature, and `missing` (O,) for NaN."""
    is_gap = np.isnan(codes)
    found = own[np.where(is_gap, 0.0, codes).astype(np.intp)]
    found[is_gap] = missing
    return np.asarray(found)


def add_terms(terms: Floats, mask: Masks) -> Floats:
    """Terms (n, M, O) of the features in `mask` (M,), added in their order: (n, O)."""
    total = np.zeros((len(terms), terms.shape[2]))
    for j in np.flatnonzero(mask):
        total += terms[:, j]
    return total


def sum_terms(terms: Floats, masks: Masks, otherwise: Floats) -> Values:
    """Sum over features of the rows' own terms (R, M, O) where they are known, else of `otherwise` (M, O): (C, R, O)."""
    total = np.zeros((len(masks), len(terms), terms.shape[2]))
    for j in range(terms.shape[1]):
        known = masks[:, j]
        total[known] += terms[:, j]
        total[~known] += otherwise[j]
    return total
