r"""Known columns -> what a linear model expects of the hidden ones, as further inputs of the encoders.

A network that has to find linear dependence by itself needs many rows for it, and where columns nearly repeat each other it
may never get there. So it is told: for every set of known features the conditional means of all hidden input columns,

.. math::

    E[x_u \mid x_k] = \mu_u + \Sigma_{uk} \Sigma_{kk}^{-1} (x_k - \mu_k),

by the covariance of the encoded columns, one-hot ones included (theirs are linear probabilities), shrunk towards its
diagonal. It comes as a deviation from the column means, and is zero for known columns. A missing value counts as hidden.
What is learned from training rows is here; `adviser` tells it row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.seeding import generator
from condshap.types import Floats, Indices, Masks

_SHARES = (0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0)
_RIDGE = 1e-5  # of the mean variance: one-hot columns of a feature are linearly dependent
_FOLDS, _MASKS, _ROWS = 5, 16, 2000
_SETS = 128
_MANY_LEVELS = 12
_MOST_COLUMNS, _MOST_WIDE, _MOST_SETS = 512, 128, 4096  # columns of all features, and if some of them are wide
LARGEST = 2**29  # bytes of tables that are kept
WIDE_FEATURE, WIDE = 40, 96  # columns of a feature, and of all, beyond which rows are mostly zeros
_LEFT = 2**24  # numbers in the matrices whose determinants are taken at once


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """What a linear model knows of encoded columns, on each of S scales.

    Attributes
    ----------
    means, covariances : (S, D) and (S, D, D), for D of the encoded columns
    columns, features : (D,) positions of these columns, and the feature behind each
    shares : (S,) of the diagonal in the covariances; (S, 2) where some features have many levels, the second one for these
    """

    means: Floats
    covariances: Floats
    columns: Indices
    features: Indices
    shares: Floats

    @classmethod
    def learn(
        cls,
        inputs: npt.NDArray[Any],
        missing: Masks,
        features: Indices,
        columns: Indices | None = None,
        shares: Floats | None = None,
    ) -> LinearModel:
        """Learn from encoded rows (S, N, D1), zero where `missing` (N, M) says so; `features` (D1,) are behind columns.

        The share of the diagonal is the one that predicts held-out rows best, over random sets of known features.
        """
        columns = few_columns(features) if columns is None else columns
        features = features[columns]
        hidden, scales = missing[:, features], inputs[..., columns].astype(np.float64)
        if shares is None:
            shares = np.array([_best_shares(x, hidden, features) for x in scales])
        moments = [_moments(x, hidden) for x in scales]
        covariances = [_shrunk(covariance, own, features) for (_, covariance), own in zip(moments, shares, strict=True)]
        return cls(np.stack([mean for mean, _ in moments]), np.stack(covariances), columns, features, shares)

    def tables(self, known: Masks, scale: int) -> Floats:
        """Coefficients (n, D, D) of sets of known features (n, M) on one scale, of hidden columns on known ones."""
        return coefficients(self.covariances[scale], known[:, self.features])

    def without_many_levels(self) -> LinearModel | None:
        """Return the same without features of many levels; None if there are none, or no others."""
        few = ~_has_many_levels(self.features)
        if few.all() or not few.any():
            return None
        own = self.covariances[:, few][:, :, few]
        return LinearModel(self.means[:, few], own, self.columns[few], self.features[few], self.shares)

    def shared_information(self, *, known: bool = True) -> float:
        """What hidden features tell about each other that known ones do not, in nats a hidden feature.

        The mean of (sum_f log det C_ff - log det C) / 2 over sets of known features, C the covariance of the hidden columns
        given those and C_ff that of the columns of one feature; the largest over scales. It is what latents have to carry.
        All sets count alike; from eight features on some are drawn. Without `known` ones everything is hidden.
        """
        M = int(self.features.max()) + 1
        sets = generator(0, "shared information").random((_SETS, M)) < 0.5
        if 2**M <= _SETS:
            sets = (np.arange(2**M)[:, None] >> np.arange(M)) % 2 == 1
        if not known:
            sets = np.zeros((1, M), dtype=bool)
        at_once = max(1, _LEFT // self.covariances.size)
        shared = sum(self._shared(sets[i : i + at_once]) for i in range(0, len(sets), at_once)) / 2
        return float(np.max(shared) / max((~sets[:, np.unique(self.features)]).sum(), 1))

    def _shared(self, sets: Masks) -> Floats:
        """Sums over sets (k, M) of twice the information, on each scale (S,)."""
        found = []
        for scale in range(len(self.means)):
            left = self._left(sets, self.tables(sets, scale), scale, len(self.columns))
            alone = np.where(self.features[:, None] == self.features, left, 0.0)
            found.append((np.linalg.slogdet(alone)[1] - np.linalg.slogdet(left)[1]).sum())
        return np.array(found)

    def factors(self, known: Masks, tables: Floats, scale: int, n_numbers: int) -> Floats:
        """Lower factors (n, Mc, Mc) of the hidden numbers' covariance given what is known; zero for known ones."""
        hidden = ~known[:, self.features][:, :n_numbers]
        both = hidden[:, :, None] & hidden[:, None, :]
        return np.asarray(np.linalg.cholesky(self._left(known, tables, scale, n_numbers)) * both)

    def least_left(self, scale: int) -> Floats:
        """Variance (D,) that a hidden column has at least, given whatever is known."""
        return np.asarray(_RIDGE * np.maximum(np.diagonal(self.covariances[scale]), 1e-12) * 1e-3)

    def _left(self, known: Masks, tables: Floats, scale: int, n: int) -> Floats:
        """Covariances (k, n, n) of the first n columns given sets of known features (k, M); 1 and 0 for known ones."""
        hidden = ~known[:, self.features][:, :n]
        covariance = self.covariances[scale]
        left = covariance[:n, :n] - tables[:, :n] @ covariance[:, :n]
        left = np.where(hidden[:, :, None] & hidden[:, None, :], (left + left.swapaxes(1, 2)) / 2, 0.0)
        left[..., range(n), range(n)] += np.where(hidden, self.least_left(scale)[:n], 1.0)
        return np.asarray(left)


def few_columns(features: Indices, n_sets: int = 1) -> Indices:
    """Columns (D,) of features that have few enough of them for matrices of all columns, those with the fewest first.

    A feature with thousands of levels would make a matrix of millions; it goes without advice. So do features that would
    make the tables of `n_sets` sets of known features too large to be kept: to make them again and again takes hours. Those
    of many levels must leave room for sets that nobody asked about, which are a part of the training masks.
    """
    most = min(_MOST_COLUMNS, isqrt(LARGEST // (2 * 4 * min(n_sets, _MOST_SETS))))  # two scales in single precision
    counts = np.bincount(features)
    order = np.argsort(counts, kind="stable")
    limits = np.where(counts[order] <= WIDE_FEATURE, most, min(most, _MOST_WIDE))
    kept = order[np.cumsum(counts[order]) <= limits]
    return np.flatnonzero(np.isin(features, kept))


def coefficients(covariance: Floats, known: Masks) -> Floats:
    """Coefficients (n, D, D) of hidden columns on known ones (n, D), by one covariance (D, D); zero elsewhere."""
    D = len(covariance)
    if D > WIDE:
        return np.array([_coefficients_of_one(covariance, columns) for columns in known]).reshape(-1, D, D)
    both = known[:, :, None] & known[:, None, :]
    matrix = np.where(both, covariance, np.eye(D))
    solved = np.linalg.solve(matrix, np.where(known[:, :, None] & ~known[:, None, :], covariance, 0.0))
    return np.ascontiguousarray(solved.transpose(0, 2, 1))


def _coefficients_of_one(covariance: Floats, known: Masks) -> Floats:
    """The same (D, D) for one set (D,): a matrix of the known columns alone is quicker to solve where there are many."""
    table, seen, hidden = np.zeros(covariance.shape), np.flatnonzero(known), np.flatnonzero(~known)
    if len(seen) and len(hidden):
        solved = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, hidden)])
        table[np.ix_(hidden, seen)] = solved.T
    return table


def _moments(x: Floats, hidden: Masks) -> tuple[Floats, Floats]:
    """Mean (D,) and covariance (D, D) of columns (N, D) from the rows where both are present."""
    there = (~hidden).astype(np.float64)
    n = np.maximum(there.sum(axis=0), 1.0)
    mean = (x * there).sum(axis=0) / n
    centred = (x - mean) * there
    covariance = centred.T @ centred / np.maximum(there.T @ there, 1.0)
    if hidden.any():  # pairs of columns have rows of their own then, and the matrix may be indefinite
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return mean, covariance


def _has_many_levels(features: Indices) -> Masks:
    """Columns (D,) of features that have many of them, by the features behind columns."""
    return np.asarray(np.bincount(features)[features] > _MANY_LEVELS)


def _shrunk(covariance: Floats, shares: Any, features: Indices) -> Floats:
    """Covariance (D, D) drawn towards its diagonal, by one share for all or two: the second one for many levels.

    That is the larger one, so that no variance gets negative.
    """
    few, many = np.broadcast_to(shares, 2)
    is_many = _has_many_levels(features) & (few != many)
    share = np.where(is_many[:, None] | is_many, many, few)
    variances = np.diagonal(covariance)
    ridge = _RIDGE * max(float(variances.mean()), 1e-12)
    return np.asarray((1 - share) * covariance + np.diag(np.diagonal(share) * variances + ridge))


def _best_shares(x: Floats, hidden: Masks, features: Indices) -> Any:
    """One share for all columns, or two if some features have many levels: what these are to others is mostly noise.

    So the share of the others is found without them, and then theirs, with every feature counting alike.
    """
    many = _has_many_levels(features)
    if many.all() or not many.any():
        return _best_share(x, hidden, features, _SHARES)
    few = _best_share(x[:, ~many], hidden[:, ~many], features[~many], _SHARES)
    pairs = [(few, share) for share in _SHARES if share >= few]
    return _best_share(x, hidden, features, pairs, alike=True)


def _best_share(x: Floats, hidden: Masks, features: Indices, choices: Sequence[Any], *, alike: bool = False) -> Any:
    """Share of the diagonal with the least squared error of held-out hidden columns, in units of their variances.

    `alike`: of features, not of columns.
    """
    rng = generator(0, "advice")
    chosen = rng.permutation(len(x))[:_ROWS]
    x, hidden = x[chosen], hidden[chosen]
    M = int(features.max()) + 1
    sets = (
        np.array([rng.permutation(M) < rng.integers(1, M) for _ in range(_MASKS)]) if M > 1 else np.ones((1, 1), bool)
    )
    weights = 1 / np.sqrt(np.bincount(features)[features]) if alike else np.ones(len(features))
    losses = np.zeros(len(choices))
    n_folds = min(_FOLDS, len(x))
    for fold in range(n_folds):
        out = np.arange(len(x)) % n_folds == fold
        mean, covariance = _moments(x[~out], hidden[~out])
        scale = weights / np.sqrt(np.maximum(np.diagonal(covariance), 1e-12))
        deviations = np.where(hidden[out], 0.0, x[out] - mean)
        for i, shares in enumerate(choices):
            table = coefficients(_shrunk(covariance, shares, features), sets[:, features])
            errors = (deviations @ table.swapaxes(1, 2) - deviations) * scale
            counted = ~sets[:, None, features] & ~hidden[out]
            losses[i] += float((errors**2).sum(where=counted))
    return choices[int(np.argmin(losses))]
