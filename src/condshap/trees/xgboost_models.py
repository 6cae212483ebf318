"""XGBoost's models -> flat arrays, from their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.trees.flat import FlatTrees, TreeNodes, join_trees
from condshap.trees.links import Link

LINKS: dict[str, Link] = {
    "reg:squarederror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "binary:logistic": "sigmoid",
    "multi:softprob": "softmax",
}
"""Objectives whose predictions are understood; a vector of 'reg:logistic', for one, is none of these."""


def read_xgboost(model: Any) -> FlatTrees | None:
    """Read an XGBRegressor or XGBClassifier with numeric splits and scalar leaves."""
    learner = json.loads(model.get_booster().save_raw("json"))["learner"]
    booster, link = learner["gradient_booster"], LINKS.get(learner["objective"]["name"])
    if booster["name"] != "gbtree" or link is None or not np.isnan(model.missing):
        return None
    if booster["model"].get("weight_drop"):  # DART is no booster of its own from XGBoost 3.4 on
        return None
    trees = booster["model"]["trees"][: _n_trees(model, booster["model"])]
    has_other_splits = any(any(tree["split_type"]) or tree["tree_param"]["size_leaf_vector"] != "1" for tree in trees)
    base = _base(learner["learner_model_param"], link)
    if has_other_splits or booster["model"].get("cats", {}).get("enc") or (link == "sigmoid" and len(base) > 1):
        return None
    return join_trees(
        [_nodes(tree, output) for tree, output in zip(trees, booster["model"]["tree_info"], strict=False)],
        dtype=np.float32,
        base=base,
        n_features=model.n_features_in_,
        accepts="missing",
        link=link,
        exponential="c",
    )


def _n_trees(model: Any, booster: dict[str, Any]) -> int:
    """Trees up to the best iteration if training stopped early, otherwise all."""
    try:
        best = model.best_iteration
    except AttributeError:
        return len(booster["trees"])
    return int(booster["iteration_indptr"][best + 1])


def _base(parameters: dict[str, str], link: Link) -> npt.NDArray[np.float32]:
    """What the sums (O,) start from; it is stored as a prediction, but for several classes as sums."""
    base = np.array(parameters["base_score"].strip("[]").split(","), dtype=np.float32)
    base = np.resize(base, max(int(parameters["num_class"]), int(parameters["num_target"]), 1))
    if link == "exp":
        return _log(base)
    return -_log(np.float32(1) / base - np.float32(1)) if link == "sigmoid" else base


def _log(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Logarithms rounded once, as those of C; NumPy's own for float32 are often one bit off."""
    return np.log(values.astype(np.float64)).astype(np.float32)


def _nodes(tree: dict[str, Any], output: int) -> TreeNodes:
    """Nodes of one tree: rows go left if x < condition, which is x <= the float32 number before it."""
    condition = np.array(tree["split_conditions"], dtype=np.float32)
    left, right = (np.array(tree[f"{side}_children"]) for side in ("left", "right"))
    below = np.nextafter(condition, np.float32(-np.inf))
    return TreeNodes(
        np.array(tree["split_indices"]), below, left, right, np.array(tree["default_left"]), condition[:, None], output
    )


READERS: dict[str, Callable[[Any], FlatTrees | None]] = {
    f"xgboost.sklearn.{name}": read_xgboost
    for name in ("XGBRegressor", "XGBClassifier", "XGBRFRegressor", "XGBRFClassifier")
}
