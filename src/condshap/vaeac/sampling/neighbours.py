"""Training rows near x_S that lend their hidden values: a member for tables whose rows lie along lines and in clumps.

Near means close in the known columns, in units of their spread; levels that differ are as far apart as two random ones are
on average. The k nearest rows count alike, with all that are as near as the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from condshap.seeding import hash_words, row_keys, stream_words
from condshap.types import Floats, Indices, Masks, Rows
from condshap.vaeac.sampling.tiles import Asked

NEAREST = (5, 25)
_MOST = 4096  # rows that lend
_AT_ONCE, _ON_DEVICE = 2**21, 2**25  # distances, here and on an accelerator
_TIED = 1e-9  # neighbours whose distances differ by less are equally near


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Rows that lend their values, and how far apart values are.

    Attributes
    ----------
    rows, positions : (n, M) complete training rows, and (n,) which of all they are
    units : (M,) one over the spread of a column, such that two random rows are as far apart in every column
    is_level : (M,) columns of levels
    """

    rows: Rows
    positions: Indices
    units: Floats
    is_level: Masks

    @classmethod
    def of(cls, rows: Rows, is_level: Masks, positions: Indices | None = None) -> Neighbours:
        """Learn how far apart values of complete rows (n, M) are."""
        places = np.arange(len(rows)) if positions is None else positions
        return cls(rows, places, _units(rows, is_level), is_level)

    def without(self, held: Indices) -> Neighbours:
        """Leave out training rows at positions `held`; others that equal them stay, as they would for a new row."""
        kept = ~np.isin(self.positions, held)
        return replace(self, rows=self.rows[kept], positions=self.positions[kept])

    def sample(self, k: int, asked: Asked) -> Floats:
        """Draw x_unknown | x_known from the k nearest rows, (C, R, K, M), known columns unchanged.

        The draws of a pair go evenly through its neighbours, from a random start.
        """
        if asked.points is not None:
            return self._sample_each(k, asked)
        X, masks, K, start = asked.X, asked.masks, asked.n_samples, _starts(k, asked)
        out = np.empty((len(masks), len(X), K, X.shape[1]))
        at_once = max(1, _AT_ONCE // self.rows.size)
        distinct, which = np.unique(
            X, axis=0, return_inverse=True
        )  # whoever asks twice wants other draws, not neighbours
        which = which.ravel()
        for first in range(0, len(distinct), at_once):
            some = np.flatnonzero((which >= first) & (which < first + at_once))
            squares = self._squares(distinct[first : first + at_once])
            for c, mask in enumerate(masks):
                donors = self._choose(squares, mask, k, K, start[c, some], which[some] - first)
                keep = mask & ~(asked.fill_missing & np.isnan(X[some]))  # (r, M)
                out[c, some] = np.where(keep[:, None], X[some, None], self.rows[donors])
        return out

    def sample_on(self, k: int, asked: Asked, device: torch.device) -> Tensor:
        """Draw as `sample` does, up to rows whose distances differ by rounding alone, and leave the draws on the device."""
        X, known, rows = (torch.tensor(part, device=device) for part in (asked.X, asked.masks, self.rows))
        start = torch.from_numpy(_starts(k, asked)).to(device)
        out = torch.empty((len(known), len(X), asked.n_samples, X.shape[1]), dtype=torch.float64, device=device)
        at_once = max(1, _ON_DEVICE // rows.numel())
        for first in range(0, len(X), at_once):
            some = slice(first, first + at_once)
            squares = self._squares_on(X[some], rows)  # (M, r, n)
            of_set = max(1, _ON_DEVICE // squares[0].numel())
            for c in range(0, len(known), of_set):
                sets = slice(c, c + of_set)
                total = torch.tensordot(known[sets].double(), squares, dims=1)  # (c, r, n)
                donors = rows[_choose_on(total, min(k, len(rows)), asked.n_samples, start[sets, some])]
                keep = known[sets].unsqueeze(1) & ~(X[some].isnan() & asked.fill_missing)
                out[sets, some] = torch.where(keep.unsqueeze(2), X[some].unsqueeze(1), donors)
        return out

    def _squares_on(self, X: Tensor, rows: Tensor) -> Tensor:
        """Do what `_squares` does, by torch."""
        apart = X.T.unsqueeze(2) - rows.T.unsqueeze(1)
        units = torch.from_numpy(self.units).to(X.device)[:, None, None]
        is_level = torch.from_numpy(self.is_level).to(X.device)[:, None, None]
        squares = torch.where(is_level, (apart != 0).double() * units**2, (apart * units) ** 2)
        return torch.where(X.T.isnan().unsqueeze(2), torch.zeros_like(squares), squares)

    def _sample_each(self, k: int, asked: Asked) -> Floats:
        """One draw for rows that are each asked about once, of one coalition: (1, R, 1, M)."""
        from condshap.numerics.nearest import pick_nearest  # numba takes a while to load

        X, mask = asked.X, asked.masks[0]
        assert asked.keys is not None
        assert asked.points is not None
        names = hash_words(asked.keys, asked.points)  # rows of a pair go their own ways
        start = stream_words(asked.seed, f"neighbours {k}", asked.masks, names)[0].astype(np.float64) / 2.0**64
        near = pick_nearest(
            np.ascontiguousarray(self._coordinates(self.rows, mask).T),
            self._coordinates(X, mask),
            min(k, len(self.rows)),
            start,
        )
        keep = mask & ~(asked.fill_missing & np.isnan(X))
        return np.where(keep, X, self.rows[near])[None, :, None]

    def _coordinates(self, X: Rows, mask: Masks) -> Floats:
        """Rows (R, M) as points (R, m) at the same distances in the known columns: levels are corners of a simplex."""
        columns = []
        for j in np.flatnonzero(mask):
            if self.is_level[j]:
                for level in np.unique(self.rows[:, j]):
                    corner = np.where(np.isnan(X[:, j]), np.nan, X[:, j] == level)
                    columns.append(corner * self.units[j] * np.sqrt(0.5))
            else:
                columns.append(X[:, j] * self.units[j])
        return np.column_stack(columns) if columns else np.zeros((len(X), 0))

    def _squares(self, X: Rows) -> Floats:
        """Squared distances (M, R, n) in every column; a gap is as near to all."""
        squares = np.empty((X.shape[1], len(X), len(self.rows)))
        for j, (unit, levels) in enumerate(zip(self.units, self.is_level, strict=True)):
            apart = X[:, j, None] - self.rows[None, :, j]
            squares[j] = (apart != 0) * unit**2 if levels else (apart * unit) ** 2
        squares[np.isnan(X.T)] = 0.0
        return squares

    def _choose(self, squares: Floats, mask: Masks, k: int, n_samples: int, start: Floats, which: Indices) -> Indices:
        """Positions (R, K) of rows that lend; `which` (R,) are places of the asking rows in `squares` (M, r, n)."""
        total = np.zeros(squares.shape[1:])
        for j in np.flatnonzero(mask):  # one by one: sums of a row have the same bits whatever other rows there are
            total += squares[j]
        k = min(k, len(self.rows))
        radius = np.partition(total, k - 1, axis=1)[:, k - 1]
        row, near = np.nonzero(total <= (radius * (1 + _TIED))[:, None])
        counts = np.bincount(row, minlength=len(total))
        first, counts = (np.cumsum(counts) - counts)[which, None], counts[which, None]
        share = (np.arange(n_samples) + start[:, None]) / n_samples
        places = np.minimum((share * counts).astype(np.intp), counts - 1)
        return np.asarray(near[first + places])


def _starts(k: int, asked: Asked) -> Floats:
    """Where each pair of C coalitions and R rows begins among its neighbours, from 0 to 1, (C, R)."""
    keys = row_keys(asked.X) if asked.keys is None else asked.keys
    return stream_words(asked.seed, f"neighbours {k}", asked.masks, keys).astype(np.float64) / 2.0**64


def _choose_on(total: Tensor, k: int, n_samples: int, start: Tensor) -> Tensor:
    """Do what `Neighbours._choose` does, for distances (c, r, n) and starts (c, r), by torch: (c, r, K)."""
    radius = total.topk(k, dim=2, largest=False).values[..., -1:]
    near = total <= radius * (1 + _TIED)
    counts = near.sum(dim=2, keepdim=True)
    first = (counts.reshape(-1).cumsum(0) - counts.reshape(-1)).view(counts.shape)
    share = (torch.arange(n_samples, device=total.device) + start.unsqueeze(2)) / n_samples
    places = torch.minimum((share * counts).long(), counts - 1)
    return near.nonzero()[:, 2][first + places]


def complete_rows(X: Rows, rng: np.random.Generator) -> Indices:
    """Positions of rows of X (N, M) without gaps, at most 4096 of them."""
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    if len(complete) > _MOST:
        complete = np.sort(rng.choice(complete, _MOST, replace=False))
    return np.asarray(complete)


def _units(rows: Rows, is_level: Masks) -> Floats:
    units = np.zeros(rows.shape[1])
    for j, levels in enumerate(is_level):
        if levels:
            shares = np.unique(rows[:, j], return_counts=True)[1] / len(rows)
            apart = 1.0 - float((shares**2).sum())
        else:
            apart = 2.0 * float(np.var(rows[:, j]))
        units[j] = 1 / np.sqrt(apart) if apart > 0 else 0.0
    return units
