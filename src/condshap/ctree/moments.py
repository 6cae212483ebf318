"""Rows of a node -> means and cross-products of its responses and predictors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import kernel, reordering_kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


CONSTANT = 1e-14
"""A column that stays this close to its mean, relatively, is constant: what is left of it is rounding."""


class Problem(NamedTuple):
    """One regression problem on a training table: q response columns given p predictors with P columns in all.

    Attributes
    ----------
    columns, codes, order, position, means, scatter : as in `TrainingTable`
    responses : (q,) rows of `columns` that make up the influence function h
    whole : (q,) the response column holds whole numbers: sums are exact in any order
    predictors : (p,) features
    n_levels : (p,) levels of the predictors, 0 for numeric
    source : (p,) first row of the predictor in `columns`
    first : (p + 1,) the predictor's rows in `Moments.cross`
    """

    columns: Floats
    codes: Positions
    order: Positions
    position: Positions
    means: Floats
    scatter: Floats
    responses: Integers
    whole: Flags
    predictors: Integers
    n_levels: Integers
    source: Integers
    first: Integers


class Moments(NamedTuple):
    """First and second moments of one node with n rows, overwritten from node to node.

    Attributes
    ----------
    mean : (q,) E, mean of the response columns
    scatter : (q, q) n V, sum over rows of (h_i - E)(h_i - E)'
    cross : (P, q) sum over rows of (g_i - mean)(h_i - E)'; for a level that is the sum of h_i - E over its rows
    spread : (p,) sum over rows of (x_i - mean)^2 for numeric predictors
    sizes : (P,) rows in every level of the nominal predictors
    """

    mean: Floats
    scatter: Floats
    cross: Floats
    spread: Floats
    sizes: Floats


@reordering_kernel
def dot(a: Floats, b: Floats, n: int) -> float:
    """Inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@kernel
def empty_moments(problem: Problem) -> Moments:
    """Room for the moments of any node of this problem."""
    q, p, n_columns = len(problem.responses), len(problem.predictors), problem.first[-1]
    return Moments(np.empty(q), np.empty((q, q)), np.empty((n_columns, q)), np.empty(p), np.empty(n_columns))


@kernel
def read_root(problem: Problem, moments: Moments) -> None:
    """Pick the moments of the root from the cross-products that all trees share."""
    n_rows = problem.columns.shape[1]
    for j, column in enumerate(problem.responses):
        moments.mean[j] = problem.means[column]
        for k, other in enumerate(problem.responses):
            moments.scatter[j, k] = problem.scatter[column, other]
    for m, source in enumerate(problem.source):
        moments.spread[m] = problem.scatter[source, source]
        for k in range(problem.first[m + 1] - problem.first[m]):
            row = problem.first[m] + k
            moments.sizes[row] = np.round(problem.means[source + k] * n_rows)
            for j, column in enumerate(problem.responses):
                moments.cross[row, j] = problem.scatter[source + k, column]


@kernel
def centre(column: Floats, rows: Positions, centred: Floats) -> float:
    """Write ``column[rows]`` minus its mean to `centred` and return the mean, summed in the order of `rows`.

    A column that is constant, up to rounding, becomes exactly zero.
    """
    n = len(rows)
    total = 0.0
    for row in rows:
        total += column[row]
    mean, widest = total / n, 0.0
    for i, row in enumerate(rows):
        centred[i] = column[row] - mean
        widest = max(widest, abs(centred[i]))
    if widest <= CONSTANT * abs(mean):
        for i in range(n):
            centred[i] = 0.0
    return mean


@kernel
def measure_node(problem: Problem, rows: Positions, moments: Moments, responses: Floats, predictor: Floats) -> None:
    """Compute the moments of the node with these `rows`; `responses` (q, N) and `predictor` (N,) are scratch space."""
    n = len(rows)
    for j, column in enumerate(problem.responses):
        moments.mean[j] = centre(problem.columns[column], rows, responses[j])
        for k in range(j + 1):
            moments.scatter[j, k] = moments.scatter[k, j] = dot(responses[j], responses[k], n)
    for m, source in enumerate(problem.source):
        if problem.n_levels[m] == 0:
            centre(problem.columns[source], rows, predictor)
            moments.spread[m] = dot(predictor, predictor, n)
            for j in range(len(responses)):
                moments.cross[problem.first[m], j] = dot(predictor, responses[j], n)
        else:
            sum_levels(
                problem.codes[problem.predictors[m]], rows, responses, moments, problem.first[m], problem.first[m + 1]
            )


@kernel
def sum_levels(codes: Positions, rows: Positions, responses: Floats, moments: Moments, first: int, last: int) -> None:
    """Count the rows of every level and sum their centred responses into ``moments.cross[first:last]``."""
    for level in range(first, last):
        moments.sizes[level] = 0.0
        for j in range(len(responses)):
            moments.cross[level, j] = 0.0
    for i, row in enumerate(rows):
        level = first + codes[row]
        moments.sizes[level] += 1.0
        for j in range(len(responses)):
            moments.cross[level, j] += responses[j, i]
