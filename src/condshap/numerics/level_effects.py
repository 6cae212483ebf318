"""Encoded rows -> columns of many levels as numbers: the mean score of another column over the rows of the level.

Indicators cannot look at 48 states, each of which is rare. A state that goes with a number says so by that number's mean.
The means are cross-fitted: a compared row, and with it all of its draws, is scored by means of rows other than its half of
the compared rows. So a row is as new to them as its draws are, and means of few rows are noisy, but never unfair.
"""

from __future__ import annotations

import numpy as np

from condshap.numerics.score_columns import MOST_LEVELS, Score
from condshap.types import Floats, Indices, Rows

OTHER = 2
"""Group of the rows that are not compared; 0 and 1 are the halves of those that are."""
_LIKELY_ROWS = 8.0
"""Training rows that the level of a row has, on average over rows, or the feature is left out.

Of fewer rows, means are mostly noise, and approaches that keep to them, as donors do, would be flagged.
"""
_DOUBT = 10.0
"""Training rows of a level with which its mean counts half.

There is no limit from which on a level counts: a row would help its own level across, or keep it from it, and its draws not.
"""
_MOST_TARGETS = 3
_LEAST = 0.2
"""Correlation of effects with their target in new rows, below which they are dropped.

Donors come from both halves, and so have more of the noise in effects than rows. Draws without weaker effects are no
difference that matters, and draws with too strong ones are still seen where effects explain 3 % of a number.
"""


def learn_effects(
    X: Rows, positions: Indices, groups: Indices, n_levels: list[int], columns: list[Score]
) -> list[Score]:
    """Levels as numbers, for features of many levels, by the numbers that they go with most.

    Effects that turn their sign in new rows carry nothing, however strong: so do those of a year that every state has once.

    Parameters
    ----------
    X : training rows (N, M)
    positions : (n,) those that effects are learned from
    groups : (n,) 0 or 1 for the halves of the compared rows, OTHER for all others
    n_levels : (M,), 0 for numbers
    columns : scores of the features, of which numbers are possible targets
    """
    many = [feature for feature, n in enumerate(n_levels) if n > MOST_LEVELS]
    if not many:
        return []
    numbers = [(one, one.of(X[positions, one.feature])) for one in columns if one.level is None and not one.is_square]
    found = []
    for feature in many:
        if _likely_rows(X[:, feature]) < _LIKELY_ROWS:
            continue
        cells, there = _cells(X[positions, feature], groups, n_levels[feature])
        pairs = [(one.feature, *_effects(cells, score[there], n_levels[feature])) for one, score in numbers]
        carrying = sorted((pair for pair in pairs if pair[2] >= _LEAST), key=lambda pair: -pair[2])
        found += [Score(feature, target=target, effects=effects) for target, effects, _ in carrying[:_MOST_TARGETS]]
    return found


def _likely_rows(column: Floats) -> float:
    """How many training rows (N,) have the level of a row, on average over rows."""
    counts = np.bincount(column[np.isfinite(column)].astype(np.intp))
    return float((counts**2).sum() / max(1, counts.sum()))


def _cells(column: Floats, groups: Indices, n_levels: int) -> tuple[Indices, Indices]:
    """Group and level of each row with a level as one number (m,), and the positions (m,) of these rows."""
    there = np.flatnonzero(np.isfinite(column))
    return groups[there] * n_levels + column[there].astype(np.intp), there


def _effects(cells: Indices, score: Floats, n_levels: int) -> tuple[Floats, float]:
    """Effects (2, L) of levels on a score (m,), mean 0 and variance 1, and their correlation with it in new rows."""
    present, shape = np.isfinite(score), (OTHER + 1, n_levels)
    counts, sums = (
        np.bincount(cells[present], weights, minlength=shape[0] * shape[1]).reshape(shape)
        for weights in (None, score[present])
    )
    outside, n = counts[1::-1] + counts[OTHER], counts.sum()
    shares = outside / np.maximum(outside.sum(axis=1, keepdims=True), 1)
    means = (sums[1::-1] + sums[OTHER]) / np.maximum(outside, 1) * (shares * n / (shares * n + _DOUBT))
    means -= (shares * means).sum(axis=1, keepdims=True)
    spread = np.sqrt((shares * means**2).sum(axis=1, keepdims=True))
    effects = np.asarray(means / np.where(spread > 0, spread, 1.0))
    return effects, float((effects * sums[:OTHER]).sum() / max(1, counts[:OTHER].sum()))
