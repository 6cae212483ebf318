"""Columns that another one determines -> draws that keep to it: the country of a city, the make of a model.

Networks draw unknown features side by side, given latents, so that a city may come with the country of another one. Such a
row cannot occur, and models answer it with anything. So where one column determines another in all training rows, draws are
put right until they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np

from condshap.seeding import row_keys
from condshap.types import Floats, Indices, Masks, Rows

_CHANCE = 1e-6  # of as much agreement among all pairs of columns that have nothing to do with each other
_ROWS_PER_VALUE = (
    5  # of what determines others, on average: a number that is another one in every row determines nothing
)
_GOLDEN = (5**0.5 - 1) / 2  # parts of multiples of it are spread out evenly, however many there are


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchies:
    """Pairs of features of which one determines the other.

    Attributes
    ----------
    lower, upper : (h,) positions of what determines and of what is determined; those with most values first, so that a
        state follows from its city before a country follows from its state; numbers that another column speaks for are last
    values : (h, L) values of the lower one in increasing order, NaN beyond them
    follows : (h, L) the upper one's value that goes with each
    often : (h, L) how many training rows have each, 0 beyond them
    """

    lower: Indices
    upper: Indices
    values: Floats
    follows: Floats
    often: Indices

    @classmethod
    def find(cls, X: Rows, apart: Collection[int] = ()) -> Hierarchies | None:
        """Look for such pairs in training rows (N, M), those of columns at `apart` aside; None if there are none.

        Rows that are there twice count once.
        """
        _, first = np.unique(row_keys(X), return_index=True)
        columns = [_Column.of(column) for column in X[np.sort(first)].T]
        limit = log(_CHANCE / max(1, X.shape[1] * (X.shape[1] - 1)))
        found: dict[tuple[int, int], Floats] = {}
        for a, lower in enumerate(columns):
            if a in apart or not lower.may_determine:
                continue
            for b, upper in enumerate(columns):
                follows = None if a == b or b in apart else lower.determines(upper, limit)
                if follows is not None:
                    found[a, b] = follows
        return cls._of(columns, found) if found else None

    @classmethod
    def _of(cls, columns: Sequence[_Column], found: Mapping[tuple[int, int], Floats]) -> Hierarchies:
        """Put pairs in order, by what goes with each value (L,) of the lower one, NaN where nobody knows."""
        names = _spokesmen(columns, found)
        known = {(a, b): ~np.isnan(follows) for (a, b), follows in found.items() if names.get(a, b) == b}
        pairs = sorted(known, key=lambda pair: (pair[0] in names, -known[pair].sum()))
        shape = len(pairs), max(int(some.sum()) for some in known.values())
        values, follows, often = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, dtype=np.intp)
        for h, (a, b) in enumerate(pairs):
            some, n = known[a, b], int(known[a, b].sum())
            values[h, :n], follows[h, :n] = columns[a].values[some], found[a, b][some]
            often[h, :n] = columns[a].counts[some]
        places = np.array(pairs)
        return cls(places[:, 0], places[:, 1], values, follows, often)

    def keep_to(self, drawn: Any, known: Masks, points: Indices | None = None) -> Any:
        """Put right, in place, draws (C, R, K, M), an array or a tensor, of features that are not known, (C, R, M).

        What follows from something known is settled. Then, from the top down, a lower feature that does not go with the
        upper one of its sample takes the value of another sample of the same pair that does. Where there is none, it takes
        one of the training rows if the upper one is settled, else the upper one follows. What does not go with that in
        turn, as the plant of another country where the country followed from a city, is chosen again. Single draws
        (C, R, 1, M) have nothing but their `points` (R,) to tell which of the training rows.
        """
        if not isinstance(drawn, np.ndarray):
            return self._keep_to_tensor(drawn, known)
        numbers = np.broadcast_to(np.arange(drawn.shape[2]) if points is None else points[:, None], drawn.shape[:3])
        from_known = self._lift_all(drawn, known, only_settled=True)
        self._choose_all(drawn, from_known, from_known, numbers)
        self._choose_all(drawn, from_known, self._lift_all(drawn, from_known), numbers)
        return drawn

    def _lift_all(self, drawn: Rows, settled: Masks, *, only_settled: bool = False) -> Masks:
        """Let upper features follow from lower ones, or from settled ones only; what is settled then, (C, R, M)."""
        settled = settled.copy()
        for h, (a, b) in enumerate(zip(self.lower, self.upper, strict=True)):
            at = ~settled[..., b] & (settled[..., a] | (not only_settled))
            if at.any():
                settled[at, b] = self._lift(h, drawn, at)
        return settled

    def _choose_all(self, drawn: Rows, kept: Masks, settled: Masks, numbers: Indices) -> None:
        """Let lower features that are not kept go with upper ones, from the top down."""
        for h in reversed(range(len(self.lower))):
            at = ~kept[..., self.lower[h]]
            if at.any():
                self._choose(h, drawn, np.nonzero(at), settled, numbers)

    def _keep_to_tensor(self, drawn: Any, known: Masks) -> Any:
        """The same for a tensor: only the features in question leave the device."""
        import torch

        some = np.union1d(self.lower, self.upper)
        lower, upper = (np.searchsorted(some, which) for which in (self.lower, self.upper))
        columns = drawn[..., torch.as_tensor(some, device=drawn.device)].cpu().numpy()
        mended = replace(self, lower=lower, upper=upper).keep_to(columns, known[..., some])
        drawn[..., torch.as_tensor(some, device=drawn.device)] = torch.as_tensor(mended, device=drawn.device)
        return drawn

    def _above(self, h: int, lower: Floats) -> Floats:
        """Value of the upper feature that goes with each of the lower one, any shape; NaN where nobody knows."""
        values, follows = self.values[h].astype(lower.dtype), self.follows[h].astype(lower.dtype)
        place = np.minimum(np.searchsorted(values, lower), len(values) - 1)
        return np.where(values[place] == lower, follows[place], np.nan)

    def _lift(self, h: int, drawn: Rows, at: Masks) -> Masks:
        """Let the upper feature follow at some pairs of coalition and row; for which of them (n,) all values were known."""
        above, upper = self._above(h, drawn[at, :, self.lower[h]]), drawn[at, :, self.upper[h]]
        drawn[at, :, self.upper[h]] = np.where(np.isnan(above), upper, above)
        return np.asarray(~np.isnan(above).any(axis=-1))

    def _choose(self, h: int, drawn: Rows, at: tuple[Indices, ...], settled: Masks, numbers: Indices) -> None:
        """Let lower features of pairs `at` (n,) coalitions and rows go with upper ones: values of other samples.

        Of training rows if there is none and the upper one is settled.
        """
        lower, upper = drawn[*at, :, self.lower[h]], drawn[*at, :, self.upper[h]]
        above = self._above(h, lower)
        wrong = ~np.isnan(above) & (above != upper) & _is_among(self.follows[h].astype(upper.dtype), upper)
        if not wrong.any():  # as always where numbers are drawn that no training row has
            return
        pair, sample = np.nonzero(wrong)
        names, codes = np.unique(np.stack([above, upper]), return_inverse=True)
        own, wanted = codes.reshape(2, *lower.shape) + len(names) * np.arange(len(lower))[:, None]
        place = _in_turn(own.ravel(), wanted[pair, sample], sample)
        lower[pair, sample] = np.where(place >= 0, lower.ravel()[place], lower[pair, sample])
        drawn[*at, :, self.lower[h]] = lower
        c, r, k = at[0][pair], at[1][pair], sample
        lost = (place < 0) & settled[c, r, self.upper[h]]
        if lost.any():
            c, r, k = c[lost], r[lost], k[lost]
            drawn[c, r, k, self.lower[h]] = self._choose_trained(h, drawn[c, r, k], settled[c, r], numbers[c, r, k])

    def _choose_trained(self, h: int, drawn: Rows, settled: Masks, numbers: Indices) -> Floats:
        """Lower values (n,) of training rows, as often as there, that go with all upper ones that are settled.

        As they are for draws (n, M) with which no training row goes.
        """
        lower, mates = drawn[:, self.lower[h]], np.flatnonzero(self.lower == self.lower[h])
        counts = settled[:, self.upper[mates]] & ~np.isnan(drawn[:, self.upper[mates]])
        patterns, which = np.unique(counts, axis=0, return_inverse=True)
        values = self.values[h].astype(drawn.dtype)
        for i, pattern in enumerate(patterns):
            some, own = np.flatnonzero(which.ravel() == i), mates[pattern]
            having = np.nan_to_num(np.stack([self._above(g, values) for g in own]), nan=np.inf)
            both = np.concatenate([having, drawn[some][:, self.upper[own]].T], axis=1)
            codes = np.unique(both, axis=1, return_inverse=True)[1].ravel()
            place = _by_weight(codes[: len(values)], codes[len(values) :], self.often[h], numbers[some])
            lower[some] = np.where(place >= 0, values[place], lower[some])
        return lower


def _is_among(known: Floats, values: Floats) -> Masks:
    """Which values, any shape, are among those that are known (L,); NaN is not."""
    known = np.unique(known)
    return np.asarray(known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values)


def _in_turn(having: Any, wanted: Any, number: Indices) -> Indices:
    """Position of an entry that is as wanted (n,), by the number (n,) one or another of them; -1 where there is none."""
    order = np.argsort(having, kind="stable")
    low, high = (np.searchsorted(having[order], wanted, side=side) for side in ("left", "right"))
    return np.where(high > low, order[np.minimum(low + number % np.maximum(high - low, 1), len(order) - 1)], -1)


def _by_weight(having: Indices, wanted: Indices, weights: Indices, number: Indices) -> Indices:
    """Position of an entry that is as wanted (n,), by the number (n,) one or another as their weights say; -1 where none."""
    order = np.argsort(having, kind="stable")
    ends = np.append(0, np.cumsum(weights[order]))
    low, high = (np.searchsorted(having[order], wanted, side=side) for side in ("left", "right"))
    share = (number + 1) * _GOLDEN % 1.0
    place = np.searchsorted(ends, ends[low] + share * (ends[high] - ends[low]), side="right") - 1
    return np.where(high > low, order[np.clip(place, low, np.maximum(high - 1, 0))], -1)


def _spokesmen(columns: Sequence[_Column], found: Collection[tuple[int, int]]) -> dict[int, int]:
    """Columns of numbers that say the same as another one, and that one, through which they determine others.

    Thirty statistics of a district would be thirty times thirty pairs. It is a column of levels if there is one, for others
    are hardly ever drawn as a training row has them.
    """
    names: dict[int, int] = {}
    for a, column in enumerate(columns):
        same = [b for b in range(len(columns)) if (a, b) in found and (b, a) in found and b not in names]
        same.sort(key=lambda b: not columns[b].has_codes)
        if same and not column.has_codes and (columns[same[0]].has_codes or a > min(same)):
            names[a] = same[0]
    return names


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """Codes (N,) of the values of a column, -1 where there is none; the values (L,), in increasing order, and how often."""

    codes: Indices
    values: Floats
    counts: Indices

    @classmethod
    def of(cls, column: Floats) -> _Column:
        has_value = ~np.isnan(column)
        values, codes, counts = np.unique(column[has_value], return_inverse=True, return_counts=True)
        every = np.full(len(column), -1)
        every[has_value] = codes
        return cls(every, values, counts)

    @property
    def has_codes(self) -> bool:
        """Whether values are 0, 1, 2, ... as codes of levels are."""
        return bool((self.values == np.arange(len(self.values))).all())

    @property
    def may_determine(self) -> bool:
        """Whether it has at least two values, and several rows for each."""
        return bool(2 <= len(self.values) <= (self.codes >= 0).sum() / _ROWS_PER_VALUE)

    def determines(self, other: _Column, limit: float) -> Floats | None:
        """The other's value for each of these (L,), NaN where no row has both; None where it is open or may be chance.

        The first row of each value says what goes with it. That all others agree must have a logarithm of the probability
        below the limit, if the two had nothing to do with each other.
        """
        both = (self.codes >= 0) & (other.codes >= 0)
        mine, its = self.codes[both], other.codes[both]
        code = np.full(len(self.values), -1)
        code[mine] = its
        if (code[mine] != its).any() or len(other.values) < 2:
            return None
        counts = np.bincount(its, minlength=len(other.values))
        chances = np.log(np.maximum(counts, 1) / max(1, len(its)))
        is_seen = code >= 0
        if chances @ counts - chances[code[is_seen]].sum() > limit:
            return None
        return np.where(is_seen, other.values[code], np.nan)
