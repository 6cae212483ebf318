"""Columns <-> normal scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from condshap.types import Floats

_GRID_POINTS = 2049
_REACH = 5.0  # bandwidths beyond the extremes
_MOST = 2**17 + 1  # values of a margin


@dataclass(frozen=True, slots=True)
class EmpiricalMargin:
    """Margin of a sorted training column (N,): mid-ranks over N + 1 one way, type 7 quantiles the other."""

    ordered: Floats

    @classmethod
    def learn(cls, column: Floats) -> EmpiricalMargin:
        """Sort a training column (N,); of more than 131,073 values, so many at even ranks stay, the extremes among them."""
        ordered = np.sort(column)
        if len(ordered) > _MOST:
            ordered = ordered[np.linspace(0, len(ordered) - 1, _MOST).round().astype(np.intp)]
        return cls(ordered)

    def to_scores(self, values: Floats) -> Floats:
        """Normal scores of values (n,)."""
        below = np.searchsorted(self.ordered, values, side="left")
        not_above = np.searchsorted(self.ordered, values, side="right")
        return np.asarray(ndtri(((below + not_above) / 2 + 0.5) / (len(self.ordered) + 1)))

    def from_scores(self, scores: Floats) -> Floats:
        """Quantiles, linearly interpolated, at Phi(scores); any shape."""
        position = ndtr(scores)
        position *= len(self.ordered) - 1
        lower = position.astype(np.intp)
        np.minimum(lower, len(self.ordered) - 2, out=lower)
        position -= lower
        return np.asarray(self.ordered[lower] + position * np.diff(self.ordered)[lower])


@dataclass(frozen=True, slots=True)
class KernelMargin:
    """Margin with a Gaussian kernel density, tabulated: increasing `values` (G,) and their normal `scores` (G,)."""

    values: Floats
    scores: Floats

    @classmethod
    def learn(cls, column: Floats) -> KernelMargin:
        """Tabulate the smoothed distribution function of a training column (N,), with Silverman's bandwidth."""
        low, high = float(column.min()), float(column.max())
        if low == high:
            return cls(np.array([low, low]), np.array([-1.0, 1.0]))
        quartiles = np.quantile(column, [0.25, 0.75])
        spread = min(s for s in (column.std(ddof=1), (quartiles[1] - quartiles[0]) / 1.349) if s > 0)
        h = 0.9 * spread * len(column) ** -0.2
        grid = np.linspace(low - _REACH * h, high + _REACH * h, _GRID_POINTS)
        share = np.zeros(_GRID_POINTS)
        for some in np.array_split(column, max(1, len(column) // 4096)):
            share += ndtr((grid[:, None] - some) / h).sum(axis=1)
        scores = ndtri(np.clip(share / len(column), 1e-12, 1 - 1e-12))
        rising = np.concatenate([[True], np.diff(scores) > 0])
        return cls(grid[rising], scores[rising])

    def to_scores(self, values: Floats) -> Floats:
        """Normal scores of values (n,)."""
        return np.asarray(np.interp(values, self.values, self.scores))

    def from_scores(self, scores: Floats) -> Floats:
        """Quantiles at Phi(scores); any shape."""
        return np.asarray(np.interp(scores, self.scores, self.values))
