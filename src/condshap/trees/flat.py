"""Any tree ensemble as flat arrays: every node of every tree, one after another, and how the trees combine.

The readers of the libraries fill these arrays; the evaluators turn them into layouts of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from condshap.trees.links import Exponential, Link, finish
from condshap.types import Outputs

Integers: TypeAlias = npt.NDArray[np.int32]
Accepts: TypeAlias = Literal["finite", "missing", "anything"]

N_CODES = 256
"""Codes of categories are whole numbers below the last of these, which stands for everything else: gaps, unknown ones."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatTrees:
    """T trees with N nodes in all, for rows of M features; V values in a leaf, O sums.

    Attributes
    ----------
    feature : (N,) column that a node looks at, 0 for leaves
    threshold : (N,) float32 or float64: rows go left if x <= threshold, with x cast to the same type
    left, right : (N,) positions of the children; a leaf is its own child
    default_left : (N,) where NaN goes
    code_sets : (N,) positions in `left_codes` for nodes that split on categories, whatever their threshold, else -1
    left_codes : (S, N_CODES) which codes of categories go left
    values : (N, V) what a leaf adds, in the type of the base, 0 for inner nodes; V is O, or 1 if a tree adds to one sum only
    roots : (T,) positions of the roots
    outputs : (T,) first sum that a tree adds to
    base : (O,) what the sums start from, in the type in which they are added: float64, or float32 for XGBoost
    divisor : what the sums are divided by: T for a mean, else 1
    link : what turns sums into predictions; a sigmoid gives two columns, the probabilities of both classes
    exponential : whose exp the link takes
    n_features : M
    accepts : whether rows may have NaN ("missing"), NaN and infinity ("anything"), or neither ("finite")
    """

    feature: Integers
    threshold: npt.NDArray[Any]
    left: Integers
    right: Integers
    default_left: npt.NDArray[np.bool_]
    code_sets: Integers
    left_codes: npt.NDArray[np.bool_]
    values: npt.NDArray[Any]
    roots: Integers
    outputs: Integers
    base: npt.NDArray[Any]
    divisor: float
    link: Link
    exponential: Exponential
    n_features: int
    accepts: Accepts

    @property
    def n_trees(self) -> int:
        """T."""
        return len(self.roots)

    @property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """(N,) nodes without children."""
        return np.asarray(self.left == np.arange(len(self.left)))

    @property
    def depth(self) -> int:
        """Steps from a root to the deepest leaf."""
        return int(sibling_order(self)[1].max())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which rows are compared with thresholds: float32 or float64."""
        return self.threshold.dtype


@dataclass(frozen=True, slots=True)
class TreeNodes:
    """One tree as its library keeps it, with n nodes; the first one is the root.

    Attributes
    ----------
    feature : (n,) column, anything for leaves
    threshold : (n,) rows go left if x <= threshold, anything for leaves
    left, right : (n,) positions within the tree, -1 for leaves
    default_left : (n,) where NaN goes
    values : (n, V) what a leaf adds, anything for inner nodes
    output : first sum that it adds to
    by_code : (n,) which inner nodes split on categories, None if no node does
    left_codes : (s, N_CODES) which codes go left, for those nodes one after the other
    """

    feature: npt.NDArray[Any]
    threshold: npt.NDArray[Any]
    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    default_left: npt.NDArray[Any]
    values: npt.NDArray[Any]
    output: int = 0
    by_code: npt.NDArray[np.bool_] | None = None
    left_codes: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty((0, N_CODES), dtype=bool))


def join_trees(
    trees: list[TreeNodes],
    *,
    dtype: type[np.float32] | type[np.float64],
    base: npt.ArrayLike,
    n_features: int,
    accepts: Accepts,
    link: Link = "identity",
    exponential: Exponential = "numpy",
) -> FlatTrees:
    """Put trees one after another, whose values are added up.

    Thresholds are rounded down, which changes no comparison with numbers of `dtype`.
    """
    base = np.atleast_1d(np.asarray(base))
    sizes = np.array([len(tree.left) for tree in trees])
    roots = np.concatenate([[0], sizes.cumsum()[:-1]])
    left = _joined(tree.left for tree in trees)
    leaf, own, first = left < 0, np.arange(len(left)), np.repeat(roots, sizes)
    threshold = round_down(_joined(tree.threshold for tree in trees), dtype)
    values = np.where(leaf[:, None], _joined(tree.values for tree in trees), 0.0)
    by_code = _joined(np.zeros(len(tree.left), dtype=bool) if tree.by_code is None else tree.by_code for tree in trees)
    return FlatTrees(
        feature=np.where(leaf, 0, _joined(tree.feature for tree in trees)).astype(np.int32),
        threshold=np.where(leaf | by_code, dtype(np.inf), threshold),
        left=np.where(leaf, own, left + first).astype(np.int32),
        right=np.where(leaf, own, _joined(tree.right for tree in trees) + first).astype(np.int32),
        default_left=leaf | _joined(tree.default_left for tree in trees).astype(bool),
        code_sets=np.where(by_code, by_code.cumsum() - 1, -1).astype(np.int32),
        left_codes=_joined(tree.left_codes for tree in trees),
        values=values.astype(base.dtype),
        roots=roots.astype(np.int32),
        outputs=np.array([tree.output for tree in trees], dtype=np.int32),
        base=base,
        divisor=1.0,
        link=link,
        exponential=exponential,
        n_features=n_features,
        accepts=accepts,
    )


def _joined(parts: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.asarray(part) for part in parts])


def round_down(values: npt.NDArray[Any], dtype: type[np.float32] | type[np.float64]) -> npt.NDArray[Any]:
    """Largest numbers of `dtype` that are not above `values`, of the same shape.

    >>> float(round_down(np.array([0.1]), np.float32)[0]) <= 0.1 < float(np.float32(0.1))
    True
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype)
    return np.where(rounded > values, np.nextafter(rounded, dtype(-np.inf)), rounded)


def sibling_order(trees: FlatTrees) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Order of the nodes by tree, then by level, with siblings side by side.

    Returns
    -------
    order : (N,) old positions
    depths : (T,) steps from the root to the deepest leaf
    """
    nodes, owner = trees.roots.astype(np.intp), np.arange(trees.n_trees)
    depths = np.zeros(trees.n_trees, dtype=np.intp)
    levels, owners = [nodes], [owner]
    while (inner := trees.left[nodes] != nodes).any():
        parents, owner = nodes[inner], owner[inner].repeat(2)
        nodes = np.stack([trees.left[parents], trees.right[parents]], axis=1).ravel().astype(np.intp)
        depths[owner] = len(levels)
        levels.append(nodes)
        owners.append(owner)
    by_level = np.concatenate(levels)
    return by_level[np.argsort(np.concatenate(owners), kind="stable")], depths


def predict_plainly(trees: FlatTrees, X: npt.NDArray[Any]) -> Outputs:
    """Predictions (n, O) of a few rows X (n, M), the slow way: the definition that the evaluators follow."""
    X = np.asarray(X, dtype=trees.threshold.dtype)
    at = np.broadcast_to(trees.roots, (len(X), trees.n_trees))
    for _ in range(trees.depth):
        x = np.take_along_axis(X, trees.feature[at], axis=1)
        goes_left = np.where(np.isnan(x), trees.default_left[at], x <= trees.threshold[at])
        by_code = trees.code_sets[at] >= 0
        code = np.where((x >= 0) & (x < N_CODES - 1), x, N_CODES - 1).astype(np.intp)
        goes_left[by_code] = trees.left_codes[trees.code_sets[at][by_code], code[by_code]]
        at = np.where(goes_left, trees.left[at], trees.right[at])
    sums = np.tile(trees.base, (len(X), 1))
    width = trees.values.shape[1]
    for tree, first in enumerate(trees.outputs):
        sums[:, first : first + width] += trees.values[at[:, tree]]
    return finish(sums, trees.divisor, trees.link, trees.exponential)


def find_unfit(rows: npt.NDArray[Any], accepts: Accepts) -> npt.NDArray[np.bool_] | None:
    """Which numbers of rows (n, M), in the type of the thresholds, a model refuses; None if it takes them all."""
    if accepts == "anything":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):  # proves that all are, without a temporary
            return None
    unfit = np.isinf(rows) if accepts == "missing" else ~np.isfinite(rows)
    return unfit if unfit.any() else None
