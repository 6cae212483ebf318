"""Nodes one after the other: test the predictors, choose one, split, divide the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.ctree.association import assess_predictors, empty_whitening
from condshap.ctree.moments import Moments, Problem, empty_moments, measure_node, read_root
from condshap.ctree.nominal import split_nominal
from condshap.ctree.sorting import sort_rows
from condshap.ctree.splits import TOLERANCE, Node, Scratch, empty_scratch, fill_variance, split_numeric
from condshap.numerics.jit import entry_kernel, kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

N_TRIES = 2
"""If the best predictor has no admissible split the second best is tried, and no other."""


ROUNDING = 1e-14
"""Criteria, which are at most 1, closer than this are equal."""

FEATURE, LEFT, RIGHT, START, STOP = 0, 1, 2, 3, 4
"""Columns of `Draft.nodes`."""

THRESHOLD, SCORE = 0, 1
"""Columns of `Draft.splits`."""

STATISTIC, DF, P_VALUE = 0, 1, 2
"""Rows of every node in `Draft.tests`."""


class Draft(NamedTuple):
    """A tree under construction: K nodes in pre-order, with room for as many as there can be.

    Attributes
    ----------
    nodes : (K, 5) feature, left and right child, first and last (exclusive) position in `rows`
    splits : (K, 2) threshold and score of the split
    goes_left : (K, longest list of levels) sides of the levels, in use at nominal splits
    tests : (K, 3, p) statistics, degrees of freedom and p-values of all predictors; (1, 3, p) if they are not kept
    rows : (N,) training rows, those of every node together and in increasing order
    """

    nodes: Integers
    splits: Floats
    goes_left: Flags
    tests: Floats
    rows: Positions


class Controls(NamedTuple):
    """When to stop: see `grow_tree`."""

    mincriterion: float
    minsplit: int
    minbucket: int


@kernel
def choose_predictor(criteria: Floats, statistics: Floats) -> int:
    """Predictor with the largest criterion; equal ones by the larger statistic, then the first.

    What differs by rounding is equal: else the units would decide between two copies of a predictor.
    """
    best = 0
    for m in range(1, len(criteria)):
        apart = criteria[m] - criteria[best]
        is_larger = statistics[m] > statistics[best] * (1.0 + TOLERANCE)
        if apart > ROUNDING or (abs(apart) <= ROUNDING and is_larger):
            best = m
    return best


@kernel
def split_node(
    problem: Problem, controls: Controls, draft: Draft, node: int, test: int, moments: Moments, scratch: Scratch
) -> int:
    """Note the split of a tested node in the draft and return its predictor, -1 if the node is a leaf.

    ``draft.tests[test]`` holds the tests of this node.
    """
    rows = draft.rows[draft.nodes[node, START] : draft.nodes[node, STOP]]
    here = Node(moments.mean, scratch.variance, len(rows), controls.minbucket)
    p = len(problem.predictors)
    criteria = np.empty(p)
    for m in range(p):
        criteria[m] = (1.0 - draft.tests[test, P_VALUE, m]) ** float(p)
    chosen = -1
    for attempt in range(min(N_TRIES, p)):
        m = choose_predictor(criteria, draft.tests[test, STATISTIC])
        if not criteria[m] > controls.mincriterion:
            break
        if attempt == 0:
            fill_variance(problem, rows, moments, scratch.variance)
            for row in rows:
                scratch.inside[row] = True
        feature, score, threshold = problem.predictors[m], 0.0, np.nan
        if problem.n_levels[m] > 0:
            sides = draft.goes_left[node, : problem.n_levels[m]]
            score = split_nominal(problem, problem.codes[feature], rows, here, scratch, sides)
        else:
            sort_rows(problem.order[feature], problem.position[feature], rows, scratch.inside, scratch.rows)
            values = problem.columns[problem.source[m]]
            score, threshold = split_numeric(problem, values, here, scratch)
        if score > 0.0:
            chosen = m
            draft.nodes[node, FEATURE] = feature
            draft.splits[node, THRESHOLD], draft.splits[node, SCORE] = threshold, score
            break
        criteria[m] = -np.inf
    for row in rows:
        scratch.inside[row] = False
    return chosen


@kernel
def divide_rows(problem: Problem, draft: Draft, node: int, m: int, moved: Positions) -> int:
    """Bring the rows that go left to the front, both sides in increasing order; returns where the right side starts."""
    values, codes = problem.columns[problem.source[m]], problem.codes[problem.predictors[m]]
    nominal, threshold = problem.n_levels[m] > 0, draft.splits[node, THRESHOLD]
    start, stop = draft.nodes[node, START], draft.nodes[node, STOP]
    end, n_moved = start, 0
    for i in range(start, stop):
        row = draft.rows[i]
        goes_left = draft.goes_left[node, codes[row]] if nominal else values[row] <= threshold
        draft.rows[end], moved[n_moved] = row, row
        end += goes_left
        n_moved += not goes_left
    for i in range(n_moved):
        draft.rows[end + i] = moved[i]
    return int(end)


@kernel
def add_node(nodes: Integers, node: int, start: int, stop: int, parent: int, child: int) -> None:
    """Write a new node with its range of rows; it becomes the `child` (LEFT or RIGHT) of its parent, the root has none."""
    nodes[node, START], nodes[node, STOP] = start, stop
    if parent >= 0:
        nodes[parent, child] = node


@entry_kernel
def grow(problem: Problem, controls: Controls, draft: Draft, keep_tests: bool) -> int:
    """Grow the tree into `draft`, left before right, and return the number of nodes."""
    n_rows, q = problem.columns.shape[1], len(problem.responses)
    moments, whitening, scratch = empty_moments(problem), empty_whitening(q), empty_scratch(q, n_rows)
    responses, predictor, moved = np.empty((q, n_rows)), np.empty(n_rows), np.empty(n_rows + 1, np.int32)
    waiting = np.empty((len(draft.nodes) + 1, 4), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, n_rows, -1, LEFT
    n_waiting, n_nodes = 1, int(np.int64(0))  # no literal zero: the kernels below would be compiled for it as well
    while n_waiting > 0:
        n_waiting -= 1
        start, stop, parent = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        node, n, test = n_nodes, stop - start, n_nodes if keep_tests else n_nodes * 0
        add_node(draft.nodes, node, start, stop, parent, waiting[n_waiting, 3])
        n_nodes += 1
        if n < max(controls.minsplit, 2):
            continue
        if parent < 0 and problem.scatter.size > 0:
            read_root(problem, moments)
        else:
            measure_node(problem, draft.rows[start:stop], moments, responses, predictor)
        assess_predictors(problem, moments, n, whitening, draft.tests[test])
        m = split_node(problem, controls, draft, node, test, moments, scratch)
        if m >= 0:
            middle = divide_rows(problem, draft, node, m, moved)
            waiting[n_waiting, 0], waiting[n_waiting, 1] = middle, stop
            waiting[n_waiting, 2], waiting[n_waiting, 3] = node, RIGHT
            waiting[n_waiting + 1, 0], waiting[n_waiting + 1, 1] = start, middle
            waiting[n_waiting + 1, 2], waiting[n_waiting + 1, 3] = node, LEFT
            n_waiting += 2
    return n_nodes
