"""Fast evaluation of tree ensembles; knows nothing about Shapley values."""

from __future__ import annotations

from condshap.trees.fast import FastTrees
from condshap.trees.flat import FlatTrees
from condshap.trees.packed import PackedTrees
from condshap.trees.reading import read_trees

__all__ = ["FastTrees", "FlatTrees", "PackedTrees", "read_trees"]
