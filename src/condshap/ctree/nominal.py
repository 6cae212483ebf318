"""Rows of a node, nominal predictor -> the best division of its levels.

For every response column the levels are ranked by its standardised statistic, and the ranks are cut like a number. Cuts of
different rankings often make the same division, seen from either side; their scores then differ by rounding at most.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.ctree.moments import Problem
from condshap.ctree.sorting import shell_sort
from condshap.ctree.splits import TOLERANCE, Node, Scratch, admissible_sizes, best_cut, two_sample
from condshap.numerics.jit import kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


class Rankings(NamedTuple):
    """Levels ranked by each of the q response columns, and the best cut of each ranking.

    Attributes
    ----------
    ranks : (q, levels)
    scores : (q,) score of the best cut
    cuts : (q,) levels with ranks above this go left
    tied : (q,) another cut of the same ranking comes within rounding of the best
    peaks : (q, q) largest statistic over the cuts of ranking j, by response column
    """

    ranks: Positions
    scores: Floats
    cuts: Integers
    tied: Flags
    peaks: Floats


@kernel
def level_sums(problem: Problem, codes: Positions, rows: Positions, n_levels: int) -> tuple[Floats, Floats]:
    """Sums of the response columns (levels, q) and numbers of rows (levels,) by level, in row order."""
    totals, counts = np.zeros((n_levels, len(problem.responses))), np.zeros(n_levels)
    for row in rows:
        counts[codes[row]] += 1.0
    for j, column in enumerate(problem.responses):
        values = problem.columns[column]
        for row in rows:
            totals[codes[row], j] += values[row]
    return totals, counts


@kernel
def rank_levels(totals: Floats, counts: Floats, n: int, mean: float, variance: float, ranks: Positions) -> None:
    """Fill the rank of every level by the standardised statistic of one response column: 1 + number of levels below it.

    z_k = (T_k - n_k E) / sqrt(f1 V n_k - f2 V n_k n_k), 0 where the column is constant or the level absent.
    """
    n_levels = len(counts)
    z = np.zeros(n_levels)
    for k in range(n_levels):
        scaled = variance * counts[k]
        spread = n / (n - 1.0) * scaled - 1.0 / (n - 1.0) * (scaled * counts[k])
        if spread > 0.0 and counts[k] < n:
            z[k] = (totals[k] - counts[k] * mean) / math.sqrt(spread)
    for k in range(n_levels):
        ranks[k] = 1
        for l in range(n_levels):
            if z[l] < z[k]:
                ranks[k] += 1


@kernel
def scan_ranks(totals: Floats, counts: Floats, node: Node, rankings: Rankings, j: int) -> None:
    """Find the best cut of the levels ranked by response column j from their sums alone, and note it in `rankings`."""
    n, mean = node.n, node.mean
    fewest, most = admissible_sizes(n, node.minbucket)
    ranks, peaks, running = rankings.ranks[j], rankings.peaks[j], np.zeros(len(mean))
    peaks[:] = 0.0
    w, best, second, cut = 0.0, 0.0, 0.0, 0
    for rank in range(1, len(ranks) + 1):
        found = 0.0
        for k in range(len(ranks)):
            if ranks[k] == rank and counts[k] > 0.0:
                found += counts[k]
                for i in range(len(mean)):
                    running[i] += totals[k, i]
        w += found
        if found > 0.0 and fewest <= w <= most:
            score = 0.0
            for i in range(len(mean)):
                z = two_sample(running[i], w, n, mean[i], node.variance[i])
                peaks[i] = max(peaks[i], z)
                score = max(score, z)
            if score > best:
                best, second, cut = score, best, rank
            else:
                second = max(second, score)
    rankings.scores[j], rankings.cuts[j] = best, cut
    rankings.tied[j] = second > best * (1.0 - TOLERANCE)


@kernel
def equal_ranks(ranks: Positions, other: Positions) -> bool:
    """All levels have the same rank."""
    equal = True
    for k in range(len(ranks)):
        equal = equal and ranks[k] == other[k]
    return equal


@kernel
def equal_sides(ranks: Positions, cut: int, other_ranks: Positions, other_cut: int) -> bool:
    """Two cuts send the same levels left."""
    equal = True
    for k in range(len(ranks)):
        equal = equal and (ranks[k] > cut) == (other_ranks[k] > other_cut)
    return equal


@kernel
def sort_by_rank(codes: Positions, ranks: Positions, scratch: Scratch) -> None:
    """Sort the node's rows by the rank of their levels, in party's way: among all rows, where others have rank 0."""
    n_rows = len(codes)
    keys, rows = np.zeros(n_rows, np.int32), np.empty(n_rows, np.int32)
    for i in range(n_rows):
        rows[i] = i
        if scratch.inside[i]:
            keys[i] = ranks[codes[i]]
    shell_sort(keys, rows, n_rows)
    filled = 0
    for i in range(n_rows):
        scratch.rows[filled], scratch.keys[filled] = rows[i], keys[i]
        filled += scratch.inside[rows[i]]


@kernel
def is_ambiguous(rankings: Rankings, winner: int) -> bool:
    """Cuts that send other levels left than the winner come within rounding of its score."""
    limit, ambiguous = rankings.scores[winner] * (1.0 - TOLERANCE), False
    for j in range(len(rankings.scores)):
        if rankings.scores[j] > limit:
            same = equal_sides(rankings.ranks[j], rankings.cuts[j], rankings.ranks[winner], rankings.cuts[winner])
            ambiguous = ambiguous or rankings.tied[j] or not same
    return ambiguous


@kernel
def sum_again(problem: Problem, codes: Positions, node: Node, scratch: Scratch, rankings: Rankings, j: int) -> None:
    """Find the best cut of ranking j in party's order of summation, so that the last bit of its score is right.

    Only columns that reach the score matter. If these are whole numbers all orders of summation give the same, and there
    is nothing to do unless two cuts of this very ranking are tied.
    """
    limit = rankings.scores[j] * (1.0 - TOLERANCE)
    q, whole = len(node.mean), True
    voters = np.zeros(q, np.bool_)
    for i in range(q):
        voters[i] = rankings.peaks[j, i] > limit
        whole = whole and (problem.whole[i] or not voters[i])
    if rankings.tied[j] or not whole:
        sort_by_rank(codes, rankings.ranks[j], scratch)
        score, key = best_cut(problem, node, scratch, voters)
        rankings.scores[j], rankings.cuts[j] = score, int(key)


@kernel
def break_ties(
    problem: Problem, codes: Positions, node: Node, scratch: Scratch, rankings: Rankings, best: float
) -> int:
    """Compare all rankings within rounding of the `best` score anew, bit by bit: number of the winner.

    A later ranking must be strictly better. One that equals an earlier one cannot be.
    """
    limit, winner, top = best * (1.0 - TOLERANCE), 0, 0.0
    for j in range(len(node.mean)):
        skip = not rankings.scores[j] > limit
        for i in range(j):
            skip = skip or equal_ranks(rankings.ranks[i], rankings.ranks[j])
        if not skip:
            sum_again(problem, codes, node, scratch, rankings, j)
            if rankings.scores[j] > top:
                winner, top = j, rankings.scores[j]
    return winner


@kernel
def split_nominal(
    problem: Problem, codes: Positions, rows: Positions, node: Node, scratch: Scratch, goes_left: Flags
) -> float:
    """Best division of the levels; those above the cut go left.

    Sums by level find the best score. Only if other divisions come within rounding of it they are compared in party's
    order of summation, so that ties fall as they do there.

    Returns
    -------
    The score, 0 if there is no admissible split; `goes_left` (levels,) is filled.
    """
    q, n_levels = len(node.mean), len(goes_left)
    totals, counts = level_sums(problem, codes, rows, n_levels)
    rankings = Rankings(
        np.empty((q, n_levels), np.int32), np.empty(q), np.empty(q, np.int64), np.empty(q, np.bool_), np.empty((q, q))
    )
    winner = 0
    for j in range(q):
        rank_levels(totals[:, j], counts, node.n, node.mean[j], node.variance[j], rankings.ranks[j])
        scan_ranks(totals, counts, node, rankings, j)
        if rankings.scores[j] > rankings.scores[winner]:
            winner = j
    best = rankings.scores[winner]
    if best > 0.0 and is_ambiguous(rankings, winner):
        winner = break_ties(problem, codes, node, scratch, rankings, best)
    for k in range(n_levels):
        goes_left[k] = rankings.ranks[winner, k] > rankings.cuts[winner]
    return float(rankings.scores[winner])
