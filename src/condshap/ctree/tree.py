"""A grown tree: flat arrays, the way of new rows to a leaf and the training rows found there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import entry_kernel

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class NodeTests:
    """What was computed on the way; rows follow the nodes of the tree, columns the predictors.

    Attributes
    ----------
    statistics : (K, p) quadratic test statistics, NaN in nodes too small to be tested
    dfs : (K, p) degrees of freedom, 0 where a predictor says nothing
    p_values : (K, p) unadjusted p-values, NaN in nodes too small to be tested
    split_statistics : (K,) maximally selected statistic of the split, NaN in leaves
    """

    statistics: Floats
    dfs: Integers
    p_values: Floats
    split_statistics: Floats

    @property
    def criteria(self) -> Floats:
        """(K, p) one minus the Bonferroni-adjusted p-value, (1 - p)^(number of predictors)."""
        return np.asarray((1.0 - self.p_values) ** float(self.p_values.shape[1]))


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree of K nodes in pre-order (the root is 0, left before right) over N training rows.

    Attributes
    ----------
    feature : (K,) feature that splits the node, -1 in leaves
    threshold : (K,) rows with ``x <= threshold`` go left; NaN in leaves and at nominal splits
    left, right : (K,) child nodes, -1 in leaves
    goes_left, first_side : level k goes left if ``goes_left[first_side[node] + k]``; an empty range if not nominal
    leaf : (K,) leaf number, counted from left to right, -1 in inner nodes
    leaf_rows, first_row : training rows of leaf l are ``leaf_rows[first_row[l]:first_row[l + 1]]``, in increasing order
    tests : statistics of the nodes, if they were kept
    """

    feature: Positions
    threshold: Floats
    left: Positions
    right: Positions
    goes_left: Flags
    first_side: Positions
    leaf: Positions
    leaf_rows: Positions
    first_row: Positions
    tests: NodeTests | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes K, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.first_row) - 1

    @property
    def leaf_sizes(self) -> Positions:
        """(leaves,) training rows in every leaf."""
        return np.diff(self.first_row)

    def rows_of(self, leaf: int) -> Positions:
        """Training rows of a leaf, in increasing order; a view."""
        if not 0 <= leaf < self.n_leaves:
            raise IndexError(f"leaf must be from 0 to {self.n_leaves - 1}, got {leaf}.")
        return self.leaf_rows[self.first_row[leaf] : self.first_row[leaf + 1]]

    def sides_of(self, node: int) -> Flags:
        """Which levels go left at a nominal split, (levels,); empty for other nodes."""
        return self.goes_left[self.first_side[node] : self.first_side[node + 1]]

    def leaf_of(self, X: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Leaf number of every row of X (n, M); only the features that split the tree are read."""
        rows = np.ascontiguousarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] <= self.feature.max():
            raise ValueError(f"X must have the columns of the training table, got shape {rows.shape}.")
        nodes = descend(rows, self.feature, self.threshold, self.left, self.right, self.goes_left, self.first_side)
        leaves: npt.NDArray[np.intp] = self.leaf[nodes].astype(np.intp)
        if leaves.size and leaves.min() < 0:
            raise ValueError(f"X must hold numbers and known levels, but row {int(np.argmin(leaves))} does not.")
        return leaves


@entry_kernel
def descend(
    X: Floats,
    feature: Positions,
    threshold: Floats,
    left: Positions,
    right: Positions,
    goes_left: Flags,
    first_side: Positions,
) -> npt.NDArray[np.intp]:
    """Where every row of X (n, M) ends: in a leaf, or in an inner node where a number is missing or a level unknown."""
    nodes = np.empty(X.shape[0], np.intp)
    for i in range(X.shape[0]):
        node = 0
        while feature[node] >= 0:
            value = X[i, feature[node]]
            n_levels = first_side[node + 1] - first_side[node]
            if np.isnan(value) or (n_levels > 0 and not 0.0 <= value < n_levels):
                break
            goes = goes_left[first_side[node] + int(value)] if n_levels > 0 else value <= threshold[node]
            node = left[node] if goes else right[node]
        nodes[i] = node
    return nodes
