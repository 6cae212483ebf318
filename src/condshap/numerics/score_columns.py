"""Encoded rows -> scores that can be compared: numbers as normal scores and their squares, levels as indicators.

Scores have mean 0 and variance 1 in the rows that they were learned from, so that differences are comparable;
correlations of squares see dependence that is not monotone. `level_effects` turns many levels into numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from condshap.types import Floats, Indices, Masks, Rows

_MOST_ROWS = 10_000  # to learn margins from
_RARE, MOST_LEVELS = 0.02, 12  # levels that are rarer, or beyond the most frequent ones, are not looked at
_SAME = 0.05  # variance of a square around a line below which it tells nothing new, as for a number with two values


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one feature: `level` is one of its codes, or None for a number; `is_square` for that number's square.

    The number at `values` (g,), ascending, has normal scores `scores` (g,), interpolated in between. Levels as a number have
    `effects` (2, L) on the feature `target`, one line for each half of the compared rows, learned from other rows.
    """

    feature: int
    level: int | None = None
    is_square: bool = False
    values: Floats | None = None
    scores: Floats | None = None
    share: float = 0.0
    """Frequency of the level."""
    target: int | None = None
    effects: Floats | None = None

    def of(self, column: Floats, halves: Indices | None = None) -> Floats:
        """Scores of values (n, ...) of the feature, NaN where missing; effects ask for the `halves` (n,) of the rows."""
        if self.effects is not None:
            assert halves is not None
            there = np.isfinite(column)
            codes = np.where(there, column, 0).astype(np.intp)
            own = halves.reshape(-1, *(1,) * (column.ndim - 1))
            return np.asarray(np.where(there, self.effects[own, codes], np.nan))
        if self.level is None:
            assert self.values is not None
            assert self.scores is not None
            return np.asarray(np.interp(column, self.values, self.scores))
        found = (column == self.level) - self.share
        return np.asarray(np.where(np.isnan(column), np.nan, found / self.spread))

    @property
    def spread(self) -> float:
        """Standard deviation of the indicator of a level."""
        return float(np.sqrt(self.share * (1 - self.share)))


def learn_scores(X: Rows, n_levels: list[int]) -> list[Score]:
    """Scores of rows (N, M) whose features have `n_levels` (M,) levels, 0 for numbers; constant features have none."""
    some = X[:: -(-len(X) // _MOST_ROWS)]
    found: list[Score] = []
    for j, n in enumerate(n_levels):
        column = some[~np.isnan(some[:, j]), j]
        found += _level_scores(j, column, n) if n else _number_scores(j, column)
    return found


def score_rows(scores: list[Score], rows: Floats, known: Masks | None = None, halves: Indices | None = None) -> Floats:
    """Scores (..., D) of encoded rows (n, ..., M); columns of features that are `known` (M,) are left at 0.

    `halves` (n,), 0 or 1, tell where effects of levels must come from; a row's draws are in the half of the row.
    """
    result = np.zeros((*rows.shape[:-1], len(scores)))
    for d, score in enumerate(scores):
        if known is None or not known[score.feature]:
            result[..., d] = score.of(rows[..., score.feature], halves)
    return result


def _number_scores(feature: int, column: Floats) -> list[Score]:
    """Normal scores of mid-ranks, and their squares less the line that goes with them."""
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return []
    z = ndtri((np.cumsum(counts) - counts / 2) / len(column))
    z = _standardised(z, counts)
    square = z**2 - 1
    square -= np.average(square * z, weights=counts) * z
    found = [Score(feature, values=values, scores=z)]
    if np.average(square**2, weights=counts) > _SAME:
        found.append(Score(feature, is_square=True, values=values, scores=_standardised(square, counts)))
    return found


def _standardised(scores: Floats, counts: Indices) -> Floats:
    centred = scores - np.average(scores, weights=counts)
    return np.asarray(centred / np.sqrt(np.average(centred**2, weights=counts)))


def _level_scores(feature: int, column: Floats, n_levels: int) -> list[Score]:
    """Indicators of the frequent levels; one of two says it all."""
    shares = np.bincount(column.astype(np.intp), minlength=n_levels) / max(1, len(column))
    frequent = [int(level) for level in np.argsort(-shares, kind="stable")[:MOST_LEVELS] if shares[level] >= _RARE]
    frequent = [level for level in frequent if shares[level] <= 1 - _RARE]
    if len(frequent) == 2 and shares[frequent].sum() > 1 - 1e-9:
        frequent = frequent[1:]
    return [Score(feature, level=level, share=float(shares[level])) for level in sorted(frequent)]
