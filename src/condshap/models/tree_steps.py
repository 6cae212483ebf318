"""Trees that look at one feature each -> the steps that they make of every feature, at each of their thresholds.

No grid can miss a leaf here: a tree changes its answer at a threshold and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from condshap.models.predictor import Predictor
from condshap.numerics.curves import Asks, Curve, constant_pieces
from condshap.types import Floats, Indices, Masks, Rows

GoesRight: TypeAlias = Callable[[Floats, Indices], Masks]
"""Values (k,) for the features of some thresholds, positions (k,) of these -> which values go right there."""

_DOUBLINGS = 60  # of the range in which a threshold is looked for


def read_steps(
    predictor: Predictor, columns: Sequence[int], base: Rows, ends: dict[int, tuple[float, float]], ask: Asks
) -> dict[int, Curve]:
    """Curves of all numeric features, as steps between the outermost thresholds at least.

    Parameters
    ----------
    predictor : of a model whose trees are known
    columns : per column of the trees the feature that it is an increasing function of, -1 for levels
    base : (M,) what all other features are
    ends : per numeric feature the least range to read
    ask : features (k,), their values (k,) -> their terms (k, O)
    """
    column, threshold = _find_thresholds(predictor, set(np.flatnonzero(np.asarray(columns) >= 0).tolist()))
    feature = np.asarray(columns, dtype=np.intp)[column]

    def goes_right(values: Floats, some: Indices) -> Masks:
        if not len(some):  # steps of a pipeline refuse tables without rows
            return np.zeros(0, dtype=bool)
        rows = np.repeat(base[None], len(some), axis=0)
        rows[np.arange(len(some)), feature[some]] = values
        compared = predictor.compared_numbers(rows)
        return np.asarray(compared[np.arange(len(some)), column[some]] > threshold[some])

    low, high = (np.array([ends[j][side] for j in feature.tolist()]) for side in (0, 1))
    low, high = _widen(goes_right, low, high)
    at = _bisect(goes_right, low, high)
    return {j: _step_curve(ask, j, ends[j], at[feature == j]) for j in ends}


def _find_thresholds(predictor: Predictor, chosen: set[int]) -> tuple[Indices, Floats]:
    """Distinct finite thresholds (n,) in the chosen columns, and their columns (n,), which come first."""
    assert predictor.trees is not None
    nodes = predictor.trees.nodes
    pairs = np.unique(np.column_stack([nodes["feature"], nodes["threshold"]]).astype(np.float64), axis=0)
    kept = np.isfinite(pairs[:, 1]) & np.isin(pairs[:, 0], sorted(chosen))
    return pairs[kept, 0].astype(np.intp), pairs[kept, 1]


def _widen(goes_right: GoesRight, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ranges (n,) that hold the thresholds, doubled until they do; as they were where they never do."""
    ranges = []
    for side, start in ((-1.0, low), (1.0, high)):
        end, width, waiting = start.copy(), high - low, np.arange(len(low))
        for _ in range(_DOUBLINGS):
            waiting = waiting[goes_right(end[waiting], waiting) == (side < 0)]
            if not len(waiting):
                break
            end[waiting] += side * width[waiting]
            width[waiting] *= 2
        end[waiting] = start[waiting]
        ranges.append(end)
    return ranges[0], ranges[1]


def _bisect(goes_right: GoesRight, low: Floats, high: Floats) -> Floats:
    """Smallest floats (n,) that go right at their thresholds; NaN for thresholds outside the ranges."""
    everyone = np.arange(len(low))
    held = ~goes_right(low, everyone) & goes_right(high, everyone)
    low, high, going = low.copy(), high.copy(), everyone[held]
    while len(going):
        middle = low[going] + (high[going] - low[going]) / 2
        inside = (low[going] < middle) & (middle < high[going])
        going, middle = going[inside], middle[inside]
        right = goes_right(middle, going)
        high[going[right]] = middle[right]
        low[going[~right]] = middle[~right]
    return np.where(held, high, np.nan)


def _step_curve(ask: Asks, j: int, ends: tuple[float, float], at: Floats) -> Curve:
    """Curve of feature j that may change at the values `at` (n,), NaN aside, and nowhere else."""
    at = np.unique(at[~np.isnan(at)])
    first, last = (min(ends[0], *at[:1]), max(ends[1], *at[-1:])) if len(at) else ends
    starts = np.unique(np.append(at, np.nextafter(first, -np.inf)))
    values = ask(np.full(len(starts), j), starts)
    return constant_pieces(np.append(starts, np.nextafter(last, np.inf)), values)
