"""Rows of a node in order -> the best cut by the maximally selected two-sample statistic.

For w rows on one side, with sum t_j of response column j there, the statistic of column j is

    z_j = |t_j - w E_j| / sqrt(f1 w V_jj - f2 w w V_jj),    f1 = n / (n - 1),    f2 = 1 / (n - 1),

zero where the column is constant. A split scores the largest z_j over the response columns, and the split with the
largest score wins. All sums here run in a prescribed order and nothing is rearranged: dummy columns of a nominal response
give mirror-image splits whose scores differ in the last bit at most, and that bit decides which side is called left.
Scores of cuts are equal if they differ by rounding: else the units of a column would decide between them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.ctree.moments import Moments, Problem
from condshap.numerics.jit import kernel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

TOLERANCE = 1e-10
"""Scores closer than this, relatively, may be tied."""

MIN_SHARE = 0.01
"""Each side must hold more than this share of the node's rows."""


class Scratch(NamedTuple):
    """Space for the split search, reused from node to node.

    Attributes
    ----------
    variance : (q,) V_jj, summed in row order
    rows : (N + 1,) rows of the node, sorted
    keys : (N + 1,) what they are sorted by
    sums : (N,) running sums of a response column
    scores : (N,) score of every cut
    inside : (N,) True for the rows of the node
    """

    variance: Floats
    rows: Positions
    keys: Floats
    sums: Floats
    scores: Floats
    inside: Flags


class Node(NamedTuple):
    """What the cuts of one node are judged by.

    Attributes
    ----------
    mean, variance : (q,) of the response columns, the latter as in `Scratch`
    n : its rows
    minbucket : least number of rows on either side
    """

    mean: Floats
    variance: Floats
    n: int
    minbucket: int


@kernel
def empty_scratch(q: int, n_rows: int) -> Scratch:
    """Space for nodes of up to `n_rows` rows."""
    return Scratch(
        np.empty(q),
        np.empty(n_rows + 1, np.int32),
        np.empty(n_rows + 1),
        np.empty(n_rows),
        np.empty(n_rows),
        np.zeros(n_rows, np.bool_),
    )


@kernel
def fill_variance(problem: Problem, rows: Positions, moments: Moments, variance: Floats) -> None:
    """V_jj = sum over the node's rows of (h_ij - E_j)^2 / n, in row order, and exactly 0 for constants."""
    for j, column in enumerate(problem.responses):
        values = problem.columns[column]
        total = 0.0
        for row in rows:
            deviation = values[row] - moments.mean[j]
            total += deviation * deviation
        variance[j] = total / len(rows) if moments.scatter[j, j] > 0.0 else 0.0


@kernel
def admissible_sizes(n: int, minbucket: int) -> tuple[int, int]:
    """Fewest and most rows that may go to the side of the small values."""
    low = max(float(minbucket), MIN_SHARE * n + 1.0)
    high = min(float(n - minbucket), (1.0 - MIN_SHARE) * n - 1.0)
    return math.ceil(low), math.floor(high)


@kernel
def two_sample(total: float, w: float, n: int, mean: float, variance: float) -> float:
    """The statistic z of one response column for w of n rows that sum to `total`."""
    spread = n / (n - 1.0) * w * variance - 1.0 / (n - 1.0) * w * w * variance
    return abs(total - w * mean) / math.sqrt(spread) if spread > 0.0 else 0.0


@kernel
def best_cut(problem: Problem, node: Node, scratch: Scratch, voters: Flags) -> tuple[float, float]:
    """Best cut "key <= c" of the node's sorted `scratch.rows`, `scratch.keys`: its score and c; score 0 if there is none.

    Only the response columns with ``voters[j]`` are looked at.
    Cuts lie between different keys. Of cuts with equal scores, up to rounding, the one wins whose block of equal keys
    ends, in the order given, in the row with the smallest number (party scans its scores in row order).
    """
    n = node.n
    fewest, most = admissible_sizes(n, node.minbucket)
    best, cut, best_row = 0.0, 0.0, len(scratch.rows)
    rows, keys, sums, scores = scratch.rows, scratch.keys, scratch.sums, scratch.scores
    for i in range(n):
        scores[i] = 0.0
    for j, column in enumerate(problem.responses):
        if not voters[j]:
            continue
        values, variance, centre = problem.columns[column], node.variance[j], node.mean[j]
        total = 0.0
        for i in range(most):
            total += values[rows[i]]
            sums[i] = total
        for i in range(fewest - 1, most):
            scores[i] = max(scores[i], two_sample(sums[i], i + 1.0, n, centre, variance))
    for i in range(fewest - 1, most):
        if keys[i] < keys[i + 1]:
            best = max(best, scores[i])
    limit = best * (1.0 - TOLERANCE)
    for i in range(fewest - 1, most):
        if scores[i] > limit and rows[i] < best_row and keys[i] < keys[i + 1]:
            cut, best_row = keys[i], rows[i]
    return best, cut


@kernel
def split_numeric(problem: Problem, values: Floats, node: Node, scratch: Scratch) -> tuple[float, float]:
    """Best split "value <= c" of the node's sorted rows: score, 0 if there is none, and c."""
    for i in range(node.n):
        scratch.keys[i] = values[scratch.rows[i]]
    return best_cut(problem, node, scratch, np.ones(len(node.mean), np.bool_))
