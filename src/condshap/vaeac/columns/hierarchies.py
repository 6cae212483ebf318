"""Columns that another one determines -> draws that keep to it: the country of a city, the make of a model.

Networks draw unknown features side by side, given latents, so that a city may come with the country of another one. Such a
row cannot occur, and models answer it with anything. So where one column determines another in all training rows, draws are
put right until they agree.
"""

from __future__ import annotations

from collections.abc import Collection
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


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchies:
    """Pairs of features of which one determines the other.

    Attributes
    ----------
    lower, upper : (h,) positions of what determines and of what is determined; those with most values first, so that a
        state follows from its city before a country follows from its state
    values : (h, L) values of the lower one in increasing order, NaN beyond them
    follows : (h, L) the upper one's value that goes with each
    """

    lower: Indices
    upper: Indices
    values: Floats
    follows: Floats

    @classmethod
    def find(cls, X: Rows, apart: Collection[int] = ()) -> Hierarchies | None:
        """Look for such pairs in training rows (N, M), those of columns at `apart` aside; None if there are none.

        Rows that are there twice count once.
        """
        _, first = np.unique(row_keys(X), return_index=True)
        columns = [_Column.of(column) for column in X[np.sort(first)].T]
        limit = log(_CHANCE / max(1, X.shape[1] * (X.shape[1] - 1)))
        pairs: list[tuple[int, int, Floats, Floats]] = []
        for a, lower in enumerate(columns):
            if a in apart or not lower.may_determine:
                continue
            for b, upper in enumerate(columns):
                follows = None if a == b or b in apart else lower.determines(upper, limit)
                if follows is not None:
                    known = ~np.isnan(follows)
                    pairs.append((a, b, lower.values[known], follows[known]))
        if not pairs:
            return None
        pairs.sort(key=lambda pair: -len(pair[2]))
        places, wide = np.array([pair[:2] for pair in pairs]), len(pairs[0][2])
        values, follows = np.full((2, len(pairs), wide), np.nan)
        for h, (_, _, mine, its) in enumerate(pairs):
            values[h, : len(mine)], follows[h, : len(mine)] = mine, its
        return cls(places[:, 0], places[:, 1], values, follows)

    def keep_to(self, drawn: Any, known: Masks) -> Any:
        """Put right, in place, draws (C, R, K, M), an array or a tensor, of features that are not known, (C, R, M).

        What follows from something known is settled. Then, from the top down, a lower feature that does not go with the
        upper one of its sample takes the value of another sample of the same pair that does. Where there is none, the upper
        one follows.
        """
        if not isinstance(drawn, np.ndarray):
            return self._keep_to_tensor(drawn, known)
        settled = known.copy()
        for h, (a, b) in enumerate(zip(self.lower, self.upper, strict=True)):
            at = ~settled[..., b] & settled[..., a]
            if at.any():
                settled[at, b] = self._lift(h, drawn, at)
        for h in reversed(range(len(self.lower))):
            at = ~settled[..., self.lower[h]]
            if at.any():
                self._choose(h, drawn, at, settled[at, self.upper[h]])
        for h, b in enumerate(self.upper):
            at = ~settled[..., b]
            if at.any():
                self._lift(h, drawn, at)
        return drawn

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

    def _choose(self, h: int, drawn: Rows, at: Masks, is_settled: Masks) -> None:
        """Let lower features go with upper ones: values of other samples, of training rows if the upper one is settled."""
        lower, upper = drawn[at, :, self.lower[h]], drawn[at, :, self.upper[h]]
        above = self._above(h, lower)
        wrong = ~np.isnan(above) & ~np.isnan(upper) & (above != upper)
        if not wrong.any():
            return
        pair, sample = np.nonzero(wrong)
        names, codes = np.unique(np.stack([above, upper]), return_inverse=True)
        own, wanted = codes.reshape(2, *lower.shape) + len(names) * np.arange(len(lower))[:, None]
        place = _in_turn(own.ravel(), wanted[pair, sample], sample)
        trained = _in_turn(self.follows[h].astype(lower.dtype), upper[pair, sample], sample)
        is_known = is_settled[pair] & (trained >= 0)
        own_values = np.where(is_known, self.values[h][trained], lower[pair, sample])
        lower[pair, sample] = np.where(place >= 0, lower.ravel()[place], own_values)
        drawn[at, :, self.lower[h]] = lower


def _in_turn(having: Any, wanted: Any, number: Indices) -> Indices:
    """Position of an entry that is as wanted (n,), by the number (n,) one or another of them; -1 where there is none."""
    order = np.argsort(having, kind="stable")
    low, high = (np.searchsorted(having[order], wanted, side=side) for side in ("left", "right"))
    return np.where(high > low, order[np.minimum(low + number % np.maximum(high - low, 1), len(order) - 1)], -1)


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """Codes (N,) of the values of a column, -1 where there is none, and the values (L,), in increasing order."""

    codes: Indices
    values: Floats

    @classmethod
    def of(cls, column: Floats) -> _Column:
        has_value = ~np.isnan(column)
        values, codes = np.unique(column[has_value], return_inverse=True)
        every = np.full(len(column), -1)
        every[has_value] = codes
        return cls(every, values)

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
