"""Columns that repeat another one exactly -> the columns to learn, and how the others follow from them.

A Fahrenheit beside a Celsius, hours awake beside hours asleep, a code beside its name: such a column tells nothing new, and
networks that must find out so by themselves fail on small tables. So only the first of them is learned. It is known as soon
as one of them is, and what is drawn of it gives all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.types import Floats, Indices, Masks, Rows

_EXACT = 3e-7  # of the largest value: more is no rounding, of 32 bits either, in which some files keep their numbers
_FEWEST_ROWS = 20  # with both values, and
_FEWEST_OTHERS = 5  # of these beside the most frequent value, or it may be chance
_FEWEST_VALUES = 3  # of numbers: any two lie on a line


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Rows at positions `at` (r,) and coalitions at `asked` (c,), as what was learned sees them: (r, m) and (c, m)."""

    at: Indices
    asked: Indices
    rows: Rows
    masks: Masks


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """How M features follow from those that are learned.

    Attributes
    ----------
    kept : (m,) positions of the features that are learned
    source : (M,) position among `kept` of the feature that each follows from, its own for those that are learned
    slope, offset : (M,) of numbers: x = offset + slope source
    codes : (M, L) of levels: the code that goes with each code of the source; L is 0 where no levels repeat others
    is_level : (M,)
    sizes : (m,) largest absolute values of what is learned
    """

    kept: Indices
    source: Indices
    slope: Floats
    offset: Floats
    codes: Indices
    is_level: Masks
    sizes: Floats

    @classmethod
    def find(cls, X: Rows, n_levels: Sequence[int], apart: Collection[int] = ()) -> Repeats | None:
        """Look for exact repeats in training rows (N, M), those at `apart` aside; None if there are none."""
        M = X.shape[1]
        is_level = np.asarray(n_levels) > 0
        kept: list[int] = []
        source, slope, offset = np.zeros(M, dtype=np.intp), np.ones(M), np.zeros(M)
        codes = np.zeros((M, max([0, *n_levels])), dtype=np.intp)
        for j in range(M):
            for place, i in enumerate(kept):
                if j in apart or is_level[i] != is_level[j]:
                    continue
                follows = _as_codes(X[:, i], X[:, j], n_levels[i]) if is_level[j] else _as_line(X[:, i], X[:, j])
                if follows is None:
                    continue
                source[j] = place
                if is_level[j]:
                    codes[j, : n_levels[i]] = follows
                else:
                    offset[j], slope[j] = follows
                break
            else:
                source[j] = len(kept)
                codes[j] = np.arange(codes.shape[1])
                kept.append(j)
        sizes = np.fmax.reduce(np.abs(X[:, kept]), axis=0, initial=0.0)
        return cls(np.array(kept), source, slope, offset, codes, is_level, sizes) if len(kept) < M else None

    def reduce_masks(self, masks: Masks) -> Masks:
        """Coalitions (C, m) of what is learned: known if one of its repeats is, for coalitions (C, M)."""
        reduced = np.zeros((len(masks), len(self.kept)), dtype=bool)
        for j, place in enumerate(self.source):
            reduced[:, place] |= masks[:, j]
        return reduced

    def reduce_rows(self, X: Rows, mask: Masks | None = None) -> Rows:
        """Rows (R, m) of what is learned, from the first of its repeats that is known by `mask` (M,) and not missing."""
        reduced = np.full((len(X), len(self.kept)), np.nan)
        for j in np.argsort(self.source * len(self.source) + np.arange(len(self.source))):
            if mask is None or mask[j]:
                place = self.source[j]
                reduced[:, place] = np.where(np.isnan(reduced[:, place]), self._back(j, X[:, j]), reduced[:, place])
        return reduced

    def questions(self, X: Rows, masks: Masks) -> Iterator[Question]:
        """Split rows (R, M) and coalitions (C, M) into questions to what was learned.

        Rows whose repeats are all there and agree are asked about together. Of others, each coalition sees only what it
        knows: the value of the first repeat that it knows, which may be missing.
        """
        reduced = self.reduce_masks(masks)
        usual = self._agree(X)
        if usual.any():
            yield Question(np.flatnonzero(usual), np.arange(len(masks)), self.reduce_rows(X[usual]), reduced)
        odd = np.flatnonzero(~usual)
        if len(odd):
            repeated = np.flatnonzero(np.bincount(self.source)[self.source] > 1)
            patterns, which = np.unique(masks[:, repeated], axis=0, return_inverse=True)
            for k in range(len(patterns)):
                some = np.flatnonzero(which.ravel() == k)
                yield Question(odd, some, self.reduce_rows(X[odd], masks[some[0]]), reduced[some])

    def _agree(self, X: Rows) -> Masks:
        """Rows (R,) of which all repeats are there, and as those of the training rows are."""
        learned = self.reduce_rows(X)
        found = np.ones(len(X), dtype=bool)
        for j, place in enumerate(self.source):
            if self.kept[place] == j:
                continue
            apart = np.abs(self._back(j, X[:, j]) - learned[:, place])
            agrees = apart <= 2 * _EXACT * np.maximum(np.abs(learned[:, place]), self.sizes[place])
            found &= agrees & ~np.isnan(X[:, self.kept[place]])  # a missing one agrees with nothing
        return found

    def expand(self, drawn: Any, X: Rows, masks: Masks, *, fill_missing: bool) -> Any:
        """Rows (C, R, K, M) of draws (C, R, K, m), an array or a tensor; known columns are as rows (R, M) have them."""
        known = np.broadcast_to(masks[:, None, :], (len(masks), *X.shape))
        if fill_missing:
            known = known & ~np.isnan(X)
        given = np.broadcast_to(X, known.shape)
        if isinstance(drawn, np.ndarray):
            found = np.stack([self._follow(j, drawn[..., place]) for j, place in enumerate(self.source)], axis=-1)
            return np.where(known[:, :, None], given[:, :, None], found)
        import torch

        columns = [self._follow(j, drawn[..., place]) for j, place in enumerate(self.source)]
        is_known, values = (torch.tensor(a, device=drawn.device) for a in (known, given))
        return torch.where(is_known[:, :, None], values[:, :, None].to(drawn.dtype), torch.stack(columns, dim=-1))

    def _follow(self, j: int, column: Any) -> Any:
        """Values of feature j that go with those of its source, any shape, an array or a tensor."""
        if self.kept[self.source[j]] == j:
            return column
        if not self.is_level[j]:
            return self.offset[j] + self.slope[j] * column
        found = column + np.nan  # a code that is missing stays so
        for code, other in enumerate(self.codes[j]):
            found[column == code] = float(other)
        return found

    def _back(self, j: int, column: Floats) -> Floats:
        """Values (R,) of the source that go with those of feature j."""
        if not self.is_level[j]:
            return np.asarray((column - self.offset[j]) / self.slope[j])
        inverse = np.full(self.codes.shape[1], np.nan)
        inverse[self.codes[j]] = np.arange(self.codes.shape[1])
        return np.where(np.isnan(column), np.nan, inverse[np.nan_to_num(column).astype(np.intp)])


def _both(a: Floats, b: Floats) -> Masks | None:
    """Rows (N,) with both values; None if these are too few to tell."""
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < _FEWEST_ROWS:
        return None
    _, counts = np.unique(a[both], return_counts=True)
    return both if both.sum() - counts.max() >= _FEWEST_OTHERS else None


def _as_line(a: Floats, b: Floats) -> tuple[float, float] | None:
    """Offset and slope of the line that numbers b (N,) are on over a (N,); None if they are not on one."""
    there = ~(np.isnan(a) | np.isnan(b))
    x, y = a[there], b[there]
    if len(x) < _FEWEST_ROWS:
        return None
    first, last = int(x.argmin()), int(x.argmax())
    slope = (y[last] - y[first]) / (x[last] - x[first]) if x[first] < x[last] else 0.0
    if not np.isfinite(slope) or slope == 0:
        return None
    offset = y[first] - slope * x[first]
    if not (np.abs(offset + slope * x - y).max() <= _EXACT * np.abs(y).max()):  # most pairs of columns end here
        return None
    is_exact = np.abs((y - offset) / slope - x).max() <= _EXACT * np.abs(x).max()
    if not is_exact or _both(a, b) is None or len(np.unique(x)) < _FEWEST_VALUES:
        return None
    return float(offset), float(slope)


def _as_codes(a: Floats, b: Floats, n_levels: int) -> Indices | None:
    """Code of b (N,) that goes with each code 0, 1, ... of a (N,); None if they do not go one by one."""
    both = _both(a, b)
    if both is None:
        return None
    pairs = np.unique(np.column_stack([a[both], b[both]]), axis=0).astype(np.intp)
    names, others = pairs.T
    if len(pairs) != n_levels or len(set(names)) < n_levels or len(set(others)) < n_levels:
        return None  # also where a level was never seen beside one of the other
    return np.asarray(others) if set(others) == set(range(n_levels)) else None
