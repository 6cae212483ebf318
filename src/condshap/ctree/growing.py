"""Training table, predictors, responses -> tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from condshap.ctree.moments import Problem
from condshap.ctree.nodes import (
    DF,
    FEATURE,
    LEFT,
    P_VALUE,
    RIGHT,
    SCORE,
    START,
    STATISTIC,
    THRESHOLD,
    Controls,
    Draft,
    grow,
)
from condshap.ctree.table import TrainingTable
from condshap.ctree.tree import NodeTests, Tree

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def grow_tree(
    table: TrainingTable,
    predictors: Sequence[int] | npt.NDArray[np.integer],
    responses: Sequence[int] | npt.NDArray[np.integer],
    *,
    mincriterion: float = 0.95,
    minsplit: int = 20,
    minbucket: int = 7,
    keep_tests: bool = False,
) -> Tree:
    """Grow a conditional inference tree for several mixed responses given mixed predictors.

    Parameters
    ----------
    table : training rows
    predictors, responses : features, without overlap; their order matters for ties only
    mincriterion : a node is split if (1 - p)^(number of predictors) of the best predictor exceeds this
    minsplit : smallest node that is tested at all
    minbucket : smallest number of rows on either side of a split
    keep_tests : keep the statistics of all tested nodes in ``tree.tests``

    Notes
    -----
    The result does not depend on anything but the arguments. The work is done without the interpreter lock.
    """
    _check_controls(mincriterion, minsplit, minbucket)
    x, y = _check_features(table, predictors, "predictors"), _check_features(table, responses, "responses")
    if np.intersect1d(x, y).size:
        raise ValueError(f"predictors and responses must not overlap, got {x.tolist()} and {y.tolist()}.")
    problem = pose_problem(table, x, y)
    draft = _empty_draft(problem, minbucket, keep_tests)
    n_nodes = grow(problem, Controls(float(mincriterion), int(minsplit), int(minbucket)), draft, keep_tests)
    return _finish(table, draft, n_nodes, keep_tests)


def _check_controls(mincriterion: float, minsplit: int, minbucket: int) -> None:
    """Refuse controls out of range."""
    if not 0.0 <= mincriterion < 1.0:
        raise ValueError(f"mincriterion must be at least 0 and below 1, got {mincriterion}.")
    if minsplit < 1 or minbucket < 1:
        raise ValueError(f"minsplit and minbucket must be at least 1, got {minsplit} and {minbucket}.")


def _check_features(table: TrainingTable, features: Sequence[int] | npt.NDArray[np.integer], what: str) -> Integers:
    """Check a list of features and return it as an array."""
    chosen = np.asarray(features, dtype=np.int64)
    if chosen.ndim != 1 or chosen.size == 0:
        raise ValueError(f"{what} must be a list of at least one feature, got {features!r}.")
    if chosen.min() < 0 or chosen.max() >= table.n_features or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"{what} must be different features from 0 to {table.n_features - 1}, got {chosen.tolist()}.")
    return chosen


def pose_problem(table: TrainingTable, predictors: Integers, responses: Integers) -> Problem:
    """Find the columns that the tree reads; the table's arrays are shared, not copied."""
    first, levels = table.first_column, table.n_levels
    widths = np.maximum(levels, 1)
    columns = np.concatenate([np.arange(first[f], first[f + 1]) for f in responses])
    starts = np.concatenate([[0], np.cumsum(widths[predictors])])
    return Problem(
        table.columns, table.codes, table.order, table.position, table.means, table.scatter,
        columns, table.whole[columns], predictors, levels[predictors], first[predictors], starts,
    )  # fmt: skip


def _empty_draft(problem: Problem, minbucket: int, keep_tests: bool) -> Draft:
    """Room for the largest tree that `minbucket` allows."""
    n_rows, p = problem.columns.shape[1], len(problem.predictors)
    size = 2 * max(n_rows // minbucket, 1) - 1
    return Draft(
        nodes=np.full((size, 5), -1, np.int64),
        splits=np.full((size, 2), np.nan),
        goes_left=np.zeros((size, max(int(problem.n_levels.max()), 1)), np.bool_),
        tests=np.full((size if keep_tests else 1, 3, p), np.nan),
        rows=np.arange(n_rows, dtype=np.int32),
    )


def _finish(table: TrainingTable, draft: Draft, n_nodes: int, keep_tests: bool) -> Tree:
    """Cut the draft to size and number the leaves from left to right."""
    nodes, splits = draft.nodes[:n_nodes], draft.splits[:n_nodes]
    feature = nodes[:, FEATURE].astype(np.int32)
    leaves = np.flatnonzero(feature < 0)
    leaf = np.full(n_nodes, -1, np.int32)
    leaf[leaves] = np.arange(len(leaves))
    n_sides = np.where(feature >= 0, table.n_levels[feature], 0)
    used = np.arange(draft.goes_left.shape[1]) < n_sides[:, None]
    return Tree(
        feature=feature,
        threshold=np.ldexp(splits[:, THRESHOLD], np.where(feature >= 0, table.exponents[feature], 0)),
        left=nodes[:, LEFT].astype(np.int32),
        right=nodes[:, RIGHT].astype(np.int32),
        goes_left=draft.goes_left[:n_nodes][used],
        first_side=np.concatenate([[0], np.cumsum(n_sides)]).astype(np.int32),
        leaf=leaf,
        leaf_rows=draft.rows,
        first_row=np.append(nodes[leaves, START], table.n_rows).astype(np.int32),
        tests=_node_tests(draft.tests[:n_nodes], splits[:, SCORE]) if keep_tests else None,
    )


def _node_tests(tests: Floats, scores: Floats) -> NodeTests:
    """Take the kept tests (K, 3, p) and split scores (K,) apart."""
    dfs = np.nan_to_num(tests[:, DF]).astype(np.int64)
    return NodeTests(tests[:, STATISTIC].copy(), dfs, tests[:, P_VALUE].copy(), scores.copy())
