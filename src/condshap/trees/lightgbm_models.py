"""LightGBM's models -> flat arrays, from their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.trees.flat import FlatTrees, TreeNodes, join_trees
from condshap.trees.links import Link

LINKS: dict[str, Link] = {
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), "identity"),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), "exp"),
    "binary sigmoid:1": "sigmoid",
    "multiclass": "softmax",
}
CATEGORICAL, DEFAULT_LEFT, MISSING_ZERO, MISSING_NAN = 1, 2, 4, 8
"""Bits of a decision type."""

ZERO = float(np.float32(1e-35))
"""LightGBM takes numbers up to here for zero."""


def read_lightgbm(model: Any) -> FlatTrees | None:
    """Read a model with numeric splits and constant leaves."""
    text = model.booster_.model_to_string(num_iteration=None)  # up to the best iteration if training stopped early
    parts = text.split("\nend of trees")[0].split("\nTree=")
    header, blocks = _entries(parts[0]), [_entries(part) for part in parts[1:]]
    link = _link(header["objective"])
    if link is None or "average_output" in parts[0].split() or not all(_is_plain(block) for block in blocks):
        return None
    if not text.rstrip().endswith(("pandas_categorical:null", "pandas_categorical:[]")):
        return None
    n_outputs = int(header["num_tree_per_iteration"])
    return join_trees(
        [_nodes(block, i % n_outputs) for i, block in enumerate(blocks)],
        dtype=np.float64,
        base=np.zeros(n_outputs),
        n_features=int(header["max_feature_idx"]) + 1,
        accepts="missing",
        link=link,
        exponential="c",
    )


def _entries(block: str) -> dict[str, str]:
    """Lines of the form key=value."""
    return {key: value for key, sign, value in (line.partition("=") for line in block.splitlines()) if sign}


def _link(objective: str) -> Link | None:
    """Link of an objective such as "regression" or "multiclass num_class:3"; options such as "sqrt" are not covered."""
    name, *options = objective.split()
    return LINKS.get(name if not options or options[0].startswith("num_class:") else objective)


def _is_plain(block: dict[str, str]) -> bool:
    """Whether a tree has no categorical splits, linear leaves or zeros that mean missing."""
    kinds = np.bitwise_or.reduce(_numbers(block, "decision_type").astype(int), initial=0)
    return block["num_cat"] == "0" and block.get("is_linear", "0") == "0" and not kinds & (CATEGORICAL | MISSING_ZERO)


def _nodes(block: dict[str, str], output: int) -> TreeNodes:
    """Nodes of one tree: inner ones first, leaf k after them; the text calls it -(k + 1)."""
    threshold, kinds = _numbers(block, "threshold"), _numbers(block, "decision_type").astype(int)
    values, n_inner = _numbers(block, "leaf_value"), len(threshold)
    own = np.where(kinds & MISSING_NAN, kinds & DEFAULT_LEFT, threshold >= 0)  # else NaN counts as zero
    leaves = np.zeros(len(values))
    sides = [_numbers(block, f"{side}_child").astype(int) for side in ("left", "right")]
    left, right = (np.append(np.where(side < 0, n_inner + ~side, side), leaves - 1).astype(int) for side in sides)
    return TreeNodes(
        np.append(_numbers(block, "split_feature"), leaves).astype(int),
        np.append(_with_zeros(threshold), leaves),
        left,
        right,
        np.append(own, leaves),
        np.append(np.zeros(n_inner), values)[:, None],
        output,
    )


def _with_zeros(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Thresholds that send all numbers that count as zero where zero goes."""
    below = np.nextafter(-ZERO, -np.inf)
    return np.where(threshold >= 0, np.maximum(threshold, ZERO), np.minimum(threshold, below))


def _numbers(block: dict[str, str], key: str) -> npt.NDArray[np.float64]:
    return np.array(block.get(key, "").split(), dtype=np.float64)


READERS: dict[str, Callable[[Any], FlatTrees | None]] = {
    "lightgbm.sklearn.LGBMRegressor": read_lightgbm,
    "lightgbm.sklearn.LGBMClassifier": read_lightgbm,
}
