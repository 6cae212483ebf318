"""Numbers that take few values, as levels: no value is drawn that cannot occur.

A year that is 1999 or 2008 in every row is no continuous number: a draw of 2003.7 would be nonsense, and the nearest value
would come with the wrong frequency. Such a column gets a head of levels inside the networks, and codes become values again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from condshap.numerics.additive import AdditiveFunction
from condshap.types import Floats, Indices, Masks, Rows

_MOST, _OFTEN = 12, 20  # different values, and how often each occurs on average


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Values (M, n) of the columns that take few, padded with NaN; all NaN for others. `n_levels` (M,) as given."""

    values: Floats
    n_levels: Indices

    @classmethod
    def learn(cls, X: Rows, n_levels: Indices, support: Floats | None) -> Atoms:
        """Find columns of rows (N, M) with at most 12 different numbers, each 20 times on average.

        Where a support (2, M) is declared, other values may occur, whatever the rows have.
        """
        found = [np.zeros(0)] * X.shape[1]
        is_open = np.zeros(X.shape[1], dtype=bool) if support is None else ~np.isnan(support).all(axis=0)
        for j in np.flatnonzero((n_levels == 0) & ~is_open):
            seen = X[~np.isnan(X[:, j]), j]
            values = np.unique(seen)
            if 1 < len(values) <= min(_MOST, len(seen) / _OFTEN):
                found[j] = values
        table = np.full((len(found), max(len(values) for values in found)), np.nan)
        for row, values in zip(table, found, strict=True):
            row[: len(values)] = values
        return cls(table, n_levels)

    @classmethod
    def none(cls, n_levels: Indices) -> Atoms:
        """No column takes few values."""
        return cls(np.full((len(n_levels), 0), np.nan), n_levels)

    @property
    def columns(self) -> list[int]:
        """Positions of the columns that take few values."""
        found: list[int] = np.flatnonzero(~np.isnan(self.values).all(axis=1)).tolist()
        return found

    @property
    def inner_levels(self) -> Indices:
        """Number of levels (M,) that the networks see."""
        return np.asarray(
            np.where(self.n_levels > 0, self.n_levels, (~np.isnan(self.values)).sum(axis=1)), dtype=np.intp
        )

    def of(self, j: int) -> Floats:
        """Values of column j."""
        return np.asarray(self.values[j, ~np.isnan(self.values[j])])

    def encode(self, X: Rows) -> Rows:
        """Rows (n, M) with codes in place of values; a value that no training row had counts as the nearest one."""
        if not self.columns:
            return X
        X = X.copy()
        for j in self.columns:
            values = self.of(j)
            codes = np.searchsorted((values[1:] + values[:-1]) / 2, X[:, j])
            X[:, j] = np.where(np.isnan(X[:, j]), np.nan, codes)
        return X

    def decode(self, drawn: Any, X: Rows, masks: Masks, *, fill_missing: bool) -> Any:
        """Draws (C, R, K, M), a tensor whose hidden entries hold codes, with values in place of them, in place."""
        for j in self.columns:
            values = torch.from_numpy(self.of(j)).to(drawn.device)
            hidden = ~masks[:, j, None] | (np.isnan(X[:, j]) & fill_missing)[None]  # (C, R)
            where = torch.from_numpy(hidden).to(drawn.device)
            codes = drawn[..., j][where]
            drawn[..., j][where] = values[codes.long()]
        return drawn

    def terms(self, function: AdditiveFunction, j: int) -> Floats:
        """Terms (L, O) of the levels of column j, or of its few values."""
        own = function.levels[j]
        return function.term(j, self.of(j)) if own is None else own
