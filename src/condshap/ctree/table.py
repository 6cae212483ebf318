"""Encoded rows -> what all trees on these rows share: column transforms, sort orders, cross-products at the root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from condshap.ctree.moments import CONSTANT, dot
from condshap.numerics.jit import entry_kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

MAX_SHARED_COLUMNS = 1024
"""With more transformed columns than this the cross-products at the root are left to the single trees."""


@dataclass(frozen=True, slots=True)
class TrainingTable:
    """Training rows, prepared once for any number of trees; read-only and safe to share between threads.

    A numeric feature has one transformed column, itself in units of a power of two, so that nothing overflows. A nominal
    feature with L levels has L dummy columns, one per level, none left out. The same columns serve as influence function h
    (responses) and transformation g (predictors).

    Attributes
    ----------
    columns : (Q, N) transformed columns of all features, one after the other
    first_column : (M + 1,) columns ``first_column[m]:first_column[m + 1]`` belong to feature m
    exponents : (M,) powers of two in whose units the columns of numeric features are, 0 for nominal ones
    n_levels : (M,) number of levels, 0 for numeric (and ordered: pass their scores) features
    codes : (M, N) level of every row; zeros for numeric features
    order : (M, N) rows in increasing order of the feature, ties in row order
    position : (M, N) inverse of `order`
    means : (Q,) column means, summed in row order
    whole : (Q,) the feature's own numbers are whole and sum without rounding
    scatter : (Q, Q) sum over rows of (z_i - mean)(z_i - mean)' for the transformed columns z; (0, 0) if Q > 1024.
        It holds every root statistic of every tree: V, the linear statistics and the spread of the predictors.
    """

    columns: Floats
    first_column: Integers
    exponents: Integers
    n_levels: Integers
    codes: Positions
    order: Positions
    position: Positions
    means: Floats
    whole: Flags
    scatter: Floats

    @property
    def n_rows(self) -> int:
        """Number of training rows N."""
        return int(self.columns.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features M."""
        return len(self.n_levels)

    @classmethod
    def build(cls, X: npt.ArrayLike, n_levels: Sequence[int] | npt.NDArray[np.integer]) -> TrainingTable:
        """Prepare encoded rows.

        Parameters
        ----------
        X : (N, M) finite numbers; levels as codes 0, 1, ..., L - 1
        n_levels : (M,) number of levels L of every feature, 0 for numeric ones
        """
        rows = np.asarray(X, dtype=np.float64)
        levels = np.asarray(n_levels, dtype=np.int64)
        _check_rows(rows, levels)
        features = np.ascontiguousarray(rows.T)
        first_column = np.concatenate([[0], np.cumsum(np.maximum(levels, 1))]).astype(np.int64)
        codes = np.where(levels[:, None] > 0, features, 0.0).astype(np.int32)
        order = np.argsort(features, axis=1, kind="stable").astype(np.int32)
        position = np.empty_like(order)
        np.put_along_axis(position, order, np.arange(rows.shape[0], dtype=np.int32)[None, :], axis=1)
        exponents = np.where(levels > 0, 0, np.frexp(np.abs(features).max(axis=1))[1]).astype(np.int64)
        columns = _transform(features, levels, codes, first_column)
        whole = (columns == np.floor(columns)).all(axis=1) & (np.abs(columns).sum(axis=1) < 2.0**53)
        columns = np.ldexp(columns, -np.repeat(exponents, np.maximum(levels, 1))[:, None])
        means = column_means(columns)
        shared = len(columns) <= MAX_SHARED_COLUMNS
        scatter = cross_products(_centre(columns, means)) if shared else np.empty((0, 0))
        return cls(columns, first_column, exponents, levels, codes, order, position, means, whole, scatter)


def _check_rows(rows: Floats, levels: Integers) -> None:
    """Refuse what the kernels cannot read: wrong shapes, missing or infinite numbers, codes that are no levels."""
    if rows.ndim != 2 or levels.shape != (rows.shape[1],):
        raise ValueError(
            f"X must be (N, M) with one entry of n_levels per column, got {rows.shape} and {levels.shape}."
        )
    if rows.size == 0:
        raise ValueError(f"X must have rows and columns, got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(f"X must be finite, got {rows[row, column]} in row {row}, column {column}. Impute or drop it.")
    nominal = levels > 0
    codes = rows[:, nominal]
    bad = (codes != np.floor(codes)) | (codes < 0) | (codes >= levels[nominal])
    if bad.any():
        row, place = np.argwhere(bad)[0]
        column = np.flatnonzero(nominal)[place]
        raise ValueError(
            f"Levels must be codes 0..{levels[column] - 1}, got {codes[row, place]} in row {row}, column {column}."
        )


def _transform(features: Floats, levels: Integers, codes: Positions, first_column: Integers) -> Floats:
    """Write numeric features as they are and nominal ones as dummies; (Q, N)."""
    n_rows = features.shape[1]
    columns = np.zeros((int(first_column[-1]), n_rows))
    for feature, n_levels in enumerate(levels):
        start = int(first_column[feature])
        if n_levels == 0:
            columns[start] = features[feature]
        else:
            columns[start + codes[feature], np.arange(n_rows)] = 1.0
    return columns


def _centre(columns: Floats, means: Floats) -> Floats:
    """Subtract the means (Q,) from the columns (Q, N); columns that are constant, up to rounding, become exactly zero."""
    centred = columns - means[:, None]
    centred[np.abs(centred).max(axis=1) <= CONSTANT * np.abs(means)] = 0.0
    return centred


@entry_kernel
def column_means(columns: Floats) -> Floats:
    """Means of the rows of `columns` (Q, N), summed from first to last; (Q,)."""
    means = np.empty(columns.shape[0])
    for j in range(columns.shape[0]):
        total = 0.0
        for i in range(columns.shape[1]):
            total += columns[j, i]
        means[j] = total / columns.shape[1]
    return means


@entry_kernel
def cross_products(centred: Floats) -> Floats:
    """``centred @ centred.T`` such that equal columns give bitwise equal entries, which blocked products do not."""
    size, n = centred.shape
    products = np.empty((size, size))
    for j in range(size):
        for k in range(j + 1):
            products[j, k] = products[k, j] = dot(centred[j], centred[k], n)
    return products
