"""Columns that another one determines -> draws that keep to it: the country of a city, the make of a model.

Networks draw unknown features side by side, given latents, so that a city may come with the country of another one. Such a
row cannot occur, and models answer it with anything. So a column that another one determines in all training rows follows
from that one wherever it is unknown, be the other known or drawn itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from condshap.seeding import row_keys
from condshap.types import Floats, Indices, Masks, Rows

_CHANCE = 1e-6  # of as much agreement among all pairs of columns that have nothing to do with each other
_ROWS_PER_VALUE = 5  # of what determines others, on average: a number that is another one in every row determines nothing


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
    def find(cls, X: Rows, apart: Sequence[int] = ()) -> Hierarchies | None:
        """Look for such pairs in training rows (N, M), those of columns at `apart` aside; None if there are none.

        Rows that are there twice count once.
        """
        _, first = np.unique(row_keys(X), return_index=True)
        columns = [_Column.of(column) for column in X[np.sort(first)].T]
        limit = log(_CHANCE / max(1, X.shape[1] * (X.shape[1] - 1)))
        pairs = []
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
        width = len(pairs[0][2])
        values, follows = (np.array([_padded(pair[i], width) for pair in pairs]) for i in (2, 3))
        return cls(np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs]), values, follows)

    def keep_to(self, drawn: Any, known: Masks) -> Any:
        """Put right what draws (C, R, K, M), an array or a tensor, say of features that are not known, (C, R, M); in place.

        What is known comes first: a country follows from a known city, not from a state that was drawn.
        """
        settled = known.copy()
        for by_settled in (True, False):
            for h, (a, b) in enumerate(zip(self.lower, self.upper, strict=True)):
                at = ~settled[..., b] & settled[..., a] if by_settled else ~settled[..., b]
                if at.any():
                    is_found = self._put_right(h, drawn[..., a], drawn[..., b], at)
                    if by_settled:
                        settled[at, b] = is_found
        return drawn

    def _put_right(self, h: int, lower: Any, upper: Any, at: Masks) -> Masks:
        """Write into columns (C, R, K) at some pairs of coalition and row; for which of them, (n,), all values were known."""
        if isinstance(lower, np.ndarray):
            values, follows = self.values[h].astype(lower.dtype), self.follows[h].astype(upper.dtype)
            place = np.minimum(np.searchsorted(values, lower[at]), len(values) - 1)
            is_found = values[place] == lower[at]
            upper[at] = np.where(is_found, follows[place], upper[at])
            return np.asarray(is_found.all(axis=-1))
        import torch

        where = torch.as_tensor(at, device=lower.device)
        values, follows = (torch.as_tensor(a[h]).to(lower) for a in (self.values, self.follows))
        asked = lower[where].contiguous()
        place = torch.searchsorted(values, asked).clamp_(max=len(values) - 1)
        found = values[place] == asked
        upper[where] = torch.where(found, follows[place], upper[where])
        return np.asarray(found.all(dim=-1).cpu().numpy())


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
        return 2 <= len(self.values) <= (self.codes >= 0).sum() / _ROWS_PER_VALUE

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


def _padded(values: Floats, width: int) -> Floats:
    return np.concatenate([values, np.full(width - len(values), np.nan)])
