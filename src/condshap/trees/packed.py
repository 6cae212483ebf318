"""Flat trees -> the layout for the compiled loop; knows nothing about numba, which takes a while to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.trees.flat import Accepts, FlatTrees, Integers, sibling_order
from condshap.trees.links import Exponential, Link

NAN_LEFT, NAN_RIGHT = -2, -1
"""Rules of nodes that split on numbers: where NaN goes."""

SHARED = ("left_codes", "outputs", "base", "divisor", "link", "exponential", "n_features", "accepts")
"""What is taken over from the flat trees as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedTrees:
    """Inner nodes as records, leaves apart; I inner nodes and L leaves in all.

    Attributes
    ----------
    nodes : (I,) records (threshold, feature, rule, left, right); a rule is a position in `left_codes`, or, for a split on
        numbers, `NAN_LEFT` or `NAN_RIGHT`; children are positions of inner nodes, or ~k for the k-th leaf
    values : (L, V) what the leaves add
    roots : (T,) as children
    depth : steps to the deepest leaf
    left_codes, outputs, base, divisor, link, exponential, n_features, accepts : as those of the `FlatTrees`
    """

    nodes: npt.NDArray[Any]
    values: npt.NDArray[Any]
    roots: Integers
    depth: int
    left_codes: npt.NDArray[np.bool_]
    outputs: Integers
    base: npt.NDArray[Any]
    divisor: float
    link: Link
    exponential: Exponential
    n_features: int
    accepts: Accepts

    @classmethod
    def of(cls, trees: FlatTrees) -> PackedTrees:
        """Sort nodes by tree and level and take the leaves out."""
        order, depths = sibling_order(trees)
        leaf = trees.is_leaf[order]
        name = np.empty(len(order), dtype=np.int32)
        name[order] = np.where(leaf, ~(leaf.cumsum() - 1), (~leaf).cumsum() - 1)
        inner = order[~leaf]
        rule = np.where(trees.code_sets >= 0, trees.code_sets, np.where(trees.default_left, NAN_LEFT, NAN_RIGHT))
        fields = {"threshold": trees.threshold, "feature": trees.feature, "rule": rule.astype(np.int32)}
        fields |= {"left": name[trees.left], "right": name[trees.right]}
        nodes = np.empty(len(inner), dtype=np.dtype([(key, f.dtype) for key, f in fields.items()], align=True))
        for key, field in fields.items():
            nodes[key] = field[inner]
        return cls(
            nodes=nodes,
            values=trees.values[order[leaf]],
            roots=name[trees.roots],
            depth=int(depths.max()),
            **{key: getattr(trees, key) for key in SHARED},
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which rows are compared with thresholds: float32 or float64."""
        return np.dtype(self.nodes.dtype["threshold"])
