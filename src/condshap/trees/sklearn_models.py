"""scikit-learn's trees -> flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from condshap.trees.flat import Accepts, FlatTrees, TreeNodes, join_trees
from condshap.trees.links import Link


def read_tree(model: Any) -> FlatTrees | None:
    """Read a DecisionTree or ExtraTree."""
    return _read_mean([model], model)


def read_forest(model: Any) -> FlatTrees | None:
    """Read a RandomForest or ExtraTrees."""
    return _read_mean(list(model.estimators_), model)


def _read_mean(estimators: list[Any], model: Any) -> FlatTrees | None:
    classes = getattr(model, "classes_", None)
    if classes is not None and model.n_outputs_ > 1:  # one table of probabilities for each of several responses
        return None
    nodes = [_nodes(e, e.tree_.value[:, :, 0] if classes is None else e.tree_.value[:, 0]) for e in estimators]
    added = join_trees(
        nodes,
        dtype=np.float32,
        base=np.zeros(nodes[0].values.shape[1]),
        n_features=model.n_features_in_,
        accepts=_accepts(estimators[0]),
    )
    return replace(added, divisor=float(len(nodes)))


def _accepts(estimator: Any) -> Accepts:
    takes_missing = estimator._support_missing_values(np.zeros((1, 1)))
    return "missing" if takes_missing else "finite"


def _nodes(estimator: Any, values: Any, output: int = 0) -> TreeNodes:
    """Nodes of a fitted decision tree, with values (n, V) of its leaves."""
    tree = estimator.tree_
    default_left = tree.missing_go_to_left
    return TreeNodes(
        tree.feature, tree.threshold, tree.children_left, tree.children_right, default_left, values, output
    )


def read_gradient_boosting(model: Any) -> FlatTrees | None:
    """Read a GradientBoosting model that starts from a constant."""
    link = _boosting_link(model)
    if type(model.init_).__name__ not in {"DummyRegressor", "DummyClassifier", "str"} or link is None:
        return None
    nodes = [
        _nodes(estimator, model.learning_rate * estimator.tree_.value[:, :, 0], output)
        for stage in model.estimators_
        for output, estimator in enumerate(stage)
    ]
    return join_trees(
        nodes,
        dtype=np.float32,
        base=model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0],
        n_features=model.n_features_in_,
        accepts="finite",
        link=link,
    )


def _boosting_link(model: Any) -> Link | None:
    if not hasattr(model, "classes_"):
        return "identity"
    if model.loss != "log_loss":
        return None
    return "sigmoid" if len(model.classes_) == 2 else "softmax"


def read_hist_gradient_boosting(model: Any) -> FlatTrees | None:
    """Read a HistGradientBoosting model; its trees see a table as `condshap.trees.pipelines.encoder_of` transforms it."""
    link = _hist_link(model)
    if link is None:
        return None
    nodes = [_hist_nodes(predictor, output) for stage in model._predictors for output, predictor in enumerate(stage)]
    return join_trees(
        nodes,
        dtype=np.float64,
        base=model._baseline_prediction[0],
        n_features=model.n_features_in_,
        accepts="anything",
        link=link,
    )


def _hist_link(model: Any) -> Link | None:
    if hasattr(model, "classes_"):
        return _boosting_link(model)
    links: dict[str, Link] = {"IdentityLink": "identity", "LogLink": "exp"}
    return links.get(type(model._loss.link).__name__)


def _hist_nodes(predictor: Any, output: int) -> TreeNodes:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    by_code = ~leaf & nodes["is_categorical"].astype(bool)
    words = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][by_code]].astype("<u4")
    left_codes = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
    left_codes[:, -1] = nodes["missing_go_to_left"][by_code]  # no code: at most 255 categories are allowed
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    feature, threshold, default_left = (nodes[key] for key in ("feature_idx", "num_threshold", "missing_go_to_left"))
    return TreeNodes(
        feature, threshold, left, right, default_left, nodes["value"][:, None], output, by_code, left_codes
    )


READERS: dict[str, Callable[[Any], FlatTrees | None]] = {
    "sklearn.tree._classes.DecisionTreeRegressor": read_tree,
    "sklearn.tree._classes.DecisionTreeClassifier": read_tree,
    "sklearn.tree._classes.ExtraTreeRegressor": read_tree,
    "sklearn.tree._classes.ExtraTreeClassifier": read_tree,
    "sklearn.ensemble._forest.RandomForestRegressor": read_forest,
    "sklearn.ensemble._forest.RandomForestClassifier": read_forest,
    "sklearn.ensemble._forest.ExtraTreesRegressor": read_forest,
    "sklearn.ensemble._forest.ExtraTreesClassifier": read_forest,
    "sklearn.ensemble._gb.GradientBoostingRegressor": read_gradient_boosting,
    "sklearn.ensemble._gb.GradientBoostingClassifier": read_gradient_boosting,
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingRegressor": read_hist_gradient_boosting,
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier": read_hist_gradient_boosting,
}
