"""Encoded rows <-> what a network reads and writes: one-hot levels, scaled numbers, zeros for gaps.

Inside the package features are ordered by their number of levels: continuous ones first, then categorical ones, those with
equally many levels side by side. Inputs are the continuous columns followed by the one-hot blocks; outputs are the means,
the raw scales and then the logits, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from condshap.exceptions import SchemaError
from condshap.types import Floats, Indices, Rows
from condshap.vaeac.columns.supports import log_stretch_slopes, stretch

Bools: TypeAlias = npt.NDArray[np.bool_]

_MAX_KNOTS = 2048
_BEYOND = 3.0  # standard deviations outside the training range at which inputs are cut off


@dataclass(frozen=True, slots=True)
class LevelGroup:
    """Categorical features with equally many levels: positions `first` to `first + n` and one-hot columns from `start`."""

    n_levels: int
    first: int
    n: int
    start: int

    @property
    def columns(self) -> slice:
        """Their columns among all one-hot columns."""
        return slice(self.start, self.start + self.n * self.n_levels)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where M features are found in inputs and outputs of a network.

    Attributes
    ----------
    n_levels : per feature as given, 0 for continuous
    order : (M,) the internal order, as positions in the given one
    n_continuous : how many of them, the first ones in the internal order, are continuous
    groups : the categorical features behind them
    """

    n_levels: tuple[int, ...]
    order: tuple[int, ...]
    n_continuous: int
    groups: tuple[LevelGroup, ...]

    @classmethod
    def of(cls, n_levels: npt.ArrayLike) -> Layout:
        """Lay out features with `n_levels` (M,) levels, 0 for continuous.

        >>> Layout.of([0, 3, 0, 2]).order
        (0, 2, 3, 1)
        """
        counts = np.asarray(n_levels, dtype=np.intp)
        order = np.argsort(counts, kind="stable")
        n_continuous = int((counts == 0).sum())
        groups: list[LevelGroup] = []
        start = 0
        for L in np.unique(counts[counts > 0]).tolist():
            n = int((counts == L).sum())
            groups.append(LevelGroup(L, n_continuous + sum(g.n for g in groups), n, start))
            start += n * L
        return cls(tuple(counts.tolist()), tuple(order.tolist()), n_continuous, tuple(groups))

    @property
    def n_features(self) -> int:
        """M."""
        return len(self.n_levels)

    @property
    def n_onehot(self) -> int:
        """Number of one-hot columns, and of logits."""
        return sum(g.n * g.n_levels for g in self.groups)

    @property
    def n_inputs(self) -> int:
        """Width of encoded rows, D1."""
        return self.n_continuous + self.n_onehot

    @property
    def n_outputs(self) -> int:
        """Width of the decoder's output, D2: mean and raw scale of continuous features, logits of levels."""
        return 2 * self.n_continuous + self.n_onehot

    @property
    def column_features(self) -> Indices:
        """Internal position of the feature behind each input column, shape (D1,)."""
        counts = [1] * self.n_continuous + [g.n_levels for g in self.groups for _ in range(g.n)]
        return np.repeat(np.arange(self.n_features), counts)

    def places(self, features: Indices) -> Indices:
        """Internal positions of some features, in the order in which a layout of them alone would have them."""
        return np.sort(np.argsort(self.order)[features])

    def input_columns(self, features: Indices) -> Indices:
        """Input columns of some features, as `places` orders them."""
        wanted = np.zeros(self.n_features, dtype=bool)
        wanted[self.places(features)] = True
        return np.flatnonzero(wanted[self.column_features])

    def output_columns(self, features: Indices) -> Indices:
        """Columns of the decoder's output for some features: means, raw scales and logits as `places` orders them."""
        columns, Mc = self.input_columns(features), self.n_continuous
        numbers = columns[columns < Mc]
        return np.concatenate([numbers, numbers + Mc, columns[columns >= Mc] + Mc])

    def one_hot(self, codes: Indices, present: Bools) -> npt.NDArray[np.float32]:
        """One-hot blocks (n, D1 - Mc) of codes (n, M - Mc); a missing or masked feature is all zero."""
        out = np.zeros((len(codes), self.n_onehot), dtype=np.float32)
        starts = [g.start + i * g.n_levels for g in self.groups for i in range(g.n)]
        for i, start in enumerate(starts):
            rows = np.flatnonzero(present[:, i])
            out[rows, start + codes[rows, i]] = 1.0
        return out


@dataclass(frozen=True, slots=True)
class StandardScale:
    """z-scores of the continuous columns, mean and sd (Mc,); a constant column has sd 0 and is encoded as 0."""

    mean: Floats
    sd: Floats
    limits: Floats  # (2, Mc) where inputs are cut off

    @classmethod
    def learn(cls, X: Rows, *, cut: bool) -> StandardScale:
        """Mean and unbiased sd of columns (N, Mc) without their gaps; `cut` limits inputs to just outside the range."""
        n = (~np.isnan(X)).sum(axis=0)
        largest = np.nanmax(np.abs(X), axis=0, initial=1e-300)
        scaled = X / largest  # so that values near 1e200 do not overflow when squared
        centre = np.nansum(scaled, axis=0) / n
        spread = np.sqrt(np.nansum((scaled - centre) ** 2, axis=0) / np.maximum(n - 1, 1))
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        sd = np.where(low == high, 0.0, spread * largest)
        mean = np.where(low == high, low, centre * largest)
        divisor = np.where(sd > 0, sd, 1.0)
        limits = np.stack([(low - mean) / divisor - _BEYOND, (high - mean) / divisor + _BEYOND])
        return cls(mean, sd, limits if cut else np.array([[-1e6], [1e6]]) * np.ones(X.shape[1]))

    def some(self, columns: Indices) -> StandardScale:
        """Return the scale of some of the columns."""
        return StandardScale(self.mean[columns], self.sd[columns], self.limits[:, columns])

    def encode(self, X: Rows) -> Floats:
        """Columns (n, Mc) -> z-scores."""
        return np.clip((X - self.mean) / np.where(self.sd > 0, self.sd, 1.0), self.limits[0], self.limits[1])

    def place(self, ends: Floats) -> Floats:
        """Ends of a support (2, Mc) as z-scores; a constant column, which cannot leave it, has none."""
        with np.errstate(over="ignore", invalid="ignore"):
            placed = (ends - self.mean) / np.where(self.sd > 0, self.sd, 1.0)
        return np.where(self.sd > 0, placed, np.array([[-np.inf], [np.inf]]))

    def log_slopes(self, X: Rows) -> Floats:
        """Logarithm of d scaled / d value at columns (n, Mc): turns densities of z-scores into those of values."""
        return np.zeros(X.shape) - np.log(np.where(self.sd > 0, self.sd, 1.0))


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """Normal scores: an increasing broken line per column through (value, score of its mid-rank over N + 1).

    Both arrays are (Mc, G), padded with NaN. The line stays inside the training range, whatever the score.
    """

    values: Floats
    scores: Floats

    @classmethod
    def learn(cls, X: Rows) -> ScoreScale:
        """Knots at the distinct values of columns (N, Mc), thinned to at most 2048 per column."""
        knots = [_score_knots(column[~np.isnan(column)]) for column in X.T]
        width = max((len(values) for values, _ in knots), default=1)
        padded = np.full((2, len(knots), width), np.nan)
        for j, pair in enumerate(knots):
            padded[:, j, : len(pair[0])] = pair
        return cls(padded[0], padded[1])

    def some(self, columns: Indices) -> ScoreScale:
        """Return the scale of some of the columns."""
        return ScoreScale(self.values[columns], self.scores[columns])

    def encode(self, X: Rows) -> Floats:
        """Columns (n, Mc) -> scores, NaN for gaps."""
        out = np.empty(X.shape)
        for j, (values, scores) in enumerate(self._lines()):
            out[:, j] = np.where(np.isnan(X[:, j]), np.nan, np.interp(X[:, j], values, scores))
        return out

    def table(self, grid: Floats) -> Floats:
        """Values at the scores in `grid` (G,), shape (Mc, G)."""
        lines = [np.interp(grid, scores, values) for values, scores in self._lines()]
        return np.stack(lines) if lines else np.zeros((0, len(grid)))

    def log_slopes(self, X: Rows) -> Floats:
        """Logarithm of d score / d value at columns (n, Mc).

        Slopes between neighbouring knots would be as noisy as gaps between order statistics, and biased by Euler's
        constant in the logarithm; each is taken over about sqrt(G) knots instead.
        """
        out = np.zeros(X.shape)
        for j, (values, scores) in enumerate(self._lines()):
            G, reach = len(values), max(1, round(sqrt(len(values)) / 2))
            if G > 1:
                at = np.clip(np.searchsorted(values, X[:, j]), 1, G - 1)
                low, high = np.maximum(at - reach, 0), np.minimum(at + reach - 1, G - 1)
                out[:, j] = np.log((scores[high] - scores[low]) / (values[high] - values[low]))
        return out

    def _lines(self) -> list[tuple[Floats, Floats]]:
        used = ~np.isnan(self.scores)
        return [(self.values[j, row], self.scores[j, row]) for j, row in enumerate(used)]


def _score_knots(column: Floats) -> Floats:
    values, counts = np.unique(column, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2  # mid-ranks 1, ..., N
    scores = ndtri(middle / (len(column) + 1))
    if len(values) > _MAX_KNOTS:
        chosen = np.unique(np.round(np.linspace(0, len(values) - 1, _MAX_KNOTS)).astype(np.intp))
        values, scores = values[chosen], scores[chosen]
    return np.stack([values, scores])


@dataclass(frozen=True, slots=True)
class SupportScale:
    """z-scores of logarithms and logits, for columns with an end or two; of the values themselves for the others.

    `poles` (2, Mc) are where values are stretched to infinity, see `supports`; the others are those of the z-scores.
    """

    poles: Floats
    mean: Floats
    sd: Floats
    limits: Floats

    @classmethod
    def learn(cls, X: Rows, poles: Floats) -> SupportScale:
        """Learn from columns (N, Mc) that lie between the poles."""
        scores = StandardScale.learn(stretch(X, poles), cut=True)
        return cls(poles, scores.mean, scores.sd, scores.limits)

    def some(self, columns: Indices) -> SupportScale:
        """Return the scale of some of the columns."""
        return SupportScale(self.poles[:, columns], self.mean[columns], self.sd[columns], self.limits[:, columns])

    @property
    def scores(self) -> StandardScale:
        """z-scores of what the columns are stretched to."""
        return StandardScale(self.mean, self.sd, self.limits)

    def encode(self, X: Rows) -> Floats:
        """Columns (n, Mc) -> z-scores; cut off where `limits` say, which values beyond a pole are, too."""
        return self.scores.encode(stretch(X, self.poles))

    def place(self, ends: Floats) -> Floats:
        """Ends of a support (2, Mc) as z-scores.

        A column with a pole has finite ones: draws go no further than inputs do, so that no exponential gets out of hand.
        """
        placed = self.scores.place(stretch(ends, self.poles))
        return np.where(np.isfinite(self.poles).any(axis=0), np.clip(placed, self.limits[0], self.limits[1]), placed)

    def log_slopes(self, X: Rows) -> Floats:
        """Logarithm of d scaled / d value at columns (n, Mc), where they are cut off as `encode` cuts them."""
        cut = self.mean + self.sd * self.encode(X)
        return log_stretch_slopes(cut, self.poles) + self.scores.log_slopes(X)


Scale: TypeAlias = StandardScale | ScoreScale | SupportScale


def learn_scale(name: str, X: Rows, *, cut: bool, poles: Floats | None = None) -> Scale:
    """Learn the scale of continuous columns (N, Mc) by its name; "support" needs `poles` (2, Mc)."""
    if name == "support":
        assert poles is not None
        return SupportScale.learn(X, poles)
    return StandardScale.learn(X, cut=cut) if name == "standard" else ScoreScale.learn(X)


def scale_floors(encoded: Floats, least: float, *, by_resolution: bool) -> Floats:
    """Least standard deviations of Gaussian heads (Mc,).

    A column that takes few values cannot be known better than the steps between them: a head must be at least as wide as
    a uniform distribution over the typical (median) step, step / sqrt(12); otherwise the likelihood of a tied value grows
    without bound and drowns all others. A constant column gets 1.
    """
    floors = np.full(encoded.shape[1], least)
    if not by_resolution:
        return floors
    for j, column in enumerate(encoded.T):
        steps = np.diff(np.unique(column[~np.isnan(column)]))
        floors[j] = max(least, min(1.0, float(np.median(steps)) / np.sqrt(12))) if len(steps) else 1.0
    return floors


def check_rows(X: Rows, n_levels: npt.ArrayLike, *, training: bool) -> Rows:
    """Refuse rows (n, M) that do not fit: wrong width, infinite numbers, codes that name no level, nothing but gaps."""
    X, counts = np.asarray(X, dtype=np.float64), np.asarray(n_levels)
    if X.ndim != 2 or X.shape[1] != len(counts) or len(X) == 0:
        raise SchemaError(f"rows must have shape (n, {len(counts)}) with n >= 1, got {X.shape}.")
    if np.isinf(X).any():
        raise SchemaError(f"rows must be finite or NaN, got infinite values in columns {_columns(np.isinf(X))}.")
    codes = np.where(np.isnan(X), 0.0, X)
    bad = (counts > 0) & ((codes != np.rint(codes)) | (codes < 0) | (codes >= np.maximum(counts, 1)))
    if bad.any():
        raise SchemaError(f"levels must be codes 0, 1, ..., n_levels - 1, got others in columns {_columns(bad)}.")
    if training and np.isnan(X).all(axis=0).any():
        empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
        raise SchemaError(f"every column must have a value, all are missing in columns {empty[:5]}. Drop them.")
    return X


def _columns(where: Bools) -> list[int]:
    found: list[int] = np.flatnonzero(where.any(axis=0)).tolist()
    return found[:5]
