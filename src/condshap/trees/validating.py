"""Model from a file -> the same model, once its trees are known to be trees.

scikit-learn's compiled code believes the positions of children, columns and categories that a file gives, and a wrong one
reads memory that is not the model's. So nothing of a model that was just loaded is called before all of it was looked at:
positions within bounds, children after their parents, which also rules out circles, and sizes that agree with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import ModelError

_TREE = "sklearn.tree._tree.Tree"
_OWNERS = "sklearn.tree._classes."
_HIST = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting."
_PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
_BITS = 8  # words of 32 bits that hold a set of up to 256 categories


def check_trees(model: Any) -> None:
    """Refuse a model with trees, or neighbours and support vectors, whose numbers do not belong together.

    Parameters
    ----------
    model : just loaded, and of types that run no code
    """
    try:
        parts = list(_parts_of(model))
        for checks in (_CHECKS, _CHECKS_OF_WHOLES, _CHECKS_WITH_CALLS):
            for part in parts:
                checks.get(_kind(part), _pass)(part)
    except ModelError:
        raise
    except Exception as error:  # a forged model can fail in any way
        raise _refusal(f"{type(error).__name__}: {error}") from error


def _pass(part: Any) -> None:
    """Nothing to look at."""


def _refusal(why: str) -> ModelError:
    return ModelError(
        f"a model from a file must be intact, but its numbers do not belong together: {why}. Save it again with the package "
        "versions that are installed here."
    )


def _need(holds: Any, why: str) -> None:
    if not bool(holds):
        raise _refusal(why)


def _kind(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"


def _parts_of(model: Any) -> Iterator[Any]:
    """Everything that a model is made of, itself included, each part once."""
    waiting, seen = [model], {id(model): model}
    while waiting:
        part = waiting.pop()
        yield part
        for inner in _inside(part):
            if id(inner) not in seen:
                seen[id(inner)] = inner  # kept alive, so that no other part gets its address
                waiting.append(inner)


def _inside(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, (list, tuple, set, frozenset)):
        return list(part)
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype == object else []
    return list(vars(part).values()) if hasattr(part, "__dict__") and not isinstance(part, type) else []


def _check_nodes(left: npt.NDArray[Any], right: npt.NDArray[Any], feature: npt.NDArray[Any], n_features: int) -> None:
    """Children (n,) come after their parents, -1 and -1 for a leaf, and inner nodes look at a column that there is."""
    n, own = len(left), np.arange(len(left))
    leaf = left == -1
    inside = (left > own) & (right > own) & (left < n) & (right < n)
    _need(((leaf & (right == -1)) | inside).all(), "children of a tree are not nodes below their parent")
    _need(((feature >= 0) & (feature < n_features))[~leaf].all(), "a tree splits on a column that does not exist")
    children = np.concatenate([left[~leaf], right[~leaf]])
    _need(len(np.unique(children)) == len(children), "a node of a tree has two parents")


def _check_tree(tree: Any) -> None:
    # before any other attribute: those are views of so many nodes, whether there are as many or not
    _need(1 <= tree.node_count == tree.capacity, f"a tree has {tree.capacity} nodes and says {tree.node_count}")
    _check_nodes(tree.children_left, tree.children_right, tree.feature, tree.n_features)


def _check_owner(owner: Any) -> None:
    """Check a decision tree: predictions are for as many columns as its nodes know."""
    if "tree_" not in vars(owner):
        return
    tree = owner.tree_
    _need(_kind(tree) == _TREE, f"a decision tree has {type(tree).__name__} in place of nodes")
    columns = vars(owner).get("n_features_in_")
    _need(_is_count(columns) and columns == tree.n_features, f"a tree of {tree.n_features} columns takes {columns!r}")
    outputs = vars(owner).get("n_outputs_")
    _need(_is_count(outputs) and outputs == tree.n_outputs, f"a tree of {tree.n_outputs} outputs has {outputs!r}")


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 1)


def _check_forest(forest: Any) -> None:
    members = vars(forest).get("estimators_", [])
    _need(isinstance(members, list), "a forest has no list of trees")
    _need(all(_kind(one).startswith(_OWNERS) for one in members), "a forest has something other than trees")


def _check_boosting(model: Any) -> None:
    """Stages of gradient boosting: compiled code takes their trees without asking them."""
    stages = vars(model).get("estimators_")
    if stages is None:
        return
    _need(
        isinstance(stages, np.ndarray) and stages.dtype == object and stages.ndim == 2, "boosted trees are not a table"
    )
    wanted, columns = vars(model).get("n_trees_per_iteration_"), vars(model).get("n_features_in_")
    _need(
        _is_count(wanted) and _is_count(columns) and stages.shape[1] == wanted, "stages have different numbers of trees"
    )
    for one in stages.ravel():
        _need(_kind(one).startswith(_OWNERS) and "tree_" in vars(one), "boosted trees are something else than trees")
        tree = one.tree_
        _need((tree.n_features, tree.n_outputs, tree.max_n_classes) == (columns, 1, 1), "boosted trees differ in shape")
    if _kind(own_start := vars(model)["init_"]) in _CHECKS_WITH_CALLS:
        _check_boosting(own_start)
    start = model._raw_predict_init(np.zeros((1, columns), dtype=np.float32))
    _need(start.shape == (1, wanted) and start.dtype == np.float64, f"sums of {wanted} trees start as {start.shape}")


def _check_predictor(predictor: Any) -> None:
    """One tree of histogram gradient boosting; what its columns are is known to the model only."""
    nodes, sets = predictor.nodes, predictor.raw_left_cat_bitsets
    _need(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and len(nodes) >= 1, "a boosted tree has no nodes")
    leaf = nodes["is_leaf"] != 0
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    _check_nodes(left, right, nodes["feature_idx"], np.iinfo(np.int64).max)
    _need(set(np.unique(nodes["is_leaf"])) <= {0, 1}, "a boosted tree has nodes that are neither leaves nor inner ones")
    by_level = nodes["is_categorical"] != 0
    _need(
        isinstance(sets, np.ndarray) and sets.ndim == 2 and sets.shape[1] == _BITS, "sets of categories have no shape"
    )
    _need(
        (nodes["bitset_idx"][by_level & ~leaf] < len(sets)).all(), "a node has a set of categories that does not exist"
    )


def _check_hist(model: Any) -> None:
    """Columns and categories of histogram gradient boosting, and what goes before its trees."""
    own = vars(model)
    if "_predictors" not in own:
        return
    columns = own.get("n_features_in_")
    _need(_is_count(columns) and columns == own.get("_n_features"), f"a boosted model takes {columns!r} columns")
    predictors = [one for stage in own["_predictors"] for one in stage]
    _need(all(_kind(one) == _PREDICTOR for one in predictors), "boosted trees are something else than trees")
    by_level = _check_bins(own["_bin_mapper"], columns)
    for one in predictors:
        inner = one.nodes[one.nodes["is_leaf"] == 0]
        _need((inner["feature_idx"] < columns).all(), "a boosted tree splits on a column that does not exist")
        asked = inner["feature_idx"][inner["is_categorical"] != 0]
        _need(by_level[asked].all(), "a boosted tree looks for categories in a column of numbers")
    if own.get("_preprocessor") is not None:
        _need(_width(own["_preprocessor"]) == columns, "what goes before boosted trees gives other columns")


def _check_bins(bins: Any, columns: int) -> npt.NDArray[np.bool_]:
    """Which columns hold categories (M,); those must be numbers of a bit in their set."""
    by_level = np.asarray(bins.is_categorical_)
    _need(by_level.shape == (columns,) and by_level.dtype.kind in "biu", "categories are declared for other columns")
    found: npt.NDArray[np.bool_] = by_level != 0
    _need(len(bins.bin_thresholds_) == columns, "bins are those of other columns")
    for j in np.flatnonzero(found):
        known = np.asarray(bins.bin_thresholds_[j], dtype=np.float64)
        _need(((known >= 0) & (known < 32 * _BITS)).all(), f"categories of column {j} are not small numbers")
    return found


def _width(preprocessor: Any) -> int:
    """Columns that come out of the encoder of categories, which is made of parts whose columns are known."""
    from sklearn.utils.validation import check_array

    _need(
        _kind(preprocessor) == "sklearn.compose._column_transformer.ColumnTransformer", "an encoder is of another type"
    )
    width = 0
    for name, step, chosen in preprocessor.transformers_:
        n = int(np.sum(chosen))
        if isinstance(step, str):
            _need(step == "drop", "an encoder has an unknown step")
            continue
        _need(
            len(preprocessor._transformer_to_input_indices[name]) == n, "an encoder takes other columns than declared"
        )
        if _kind(step) == "sklearn.preprocessing._encoders.OrdinalEncoder":
            _need(len(step.categories_) == n == step.n_features_in_, "levels are those of other columns")
        else:
            _need(_kind(step) == "sklearn.preprocessing._function_transformer.FunctionTransformer", "an encoder is odd")
            _need(getattr(step.func, "func", None) is check_array, "an encoder changes numbers")
        width += n
    return width


def _check_search_tree(tree: Any) -> None:
    """Neighbours: a tree over the same points must come out the same."""
    data, *_, metric, weights = found = tree.__getstate__()
    again = type(tree)(data, leaf_size=found[4], metric=metric, sample_weight=weights).__getstate__()
    same = (np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(found[:7], again[:7], strict=True))
    _need(all(same), "neighbours are filed in a tree that is not that of their points")


def _check_neighbours(model: Any) -> None:
    points = vars(model).get("_fit_X")
    if points is not None:
        _need(points.ndim == 2 and points.shape[1] == model.n_features_in_, "neighbours have other columns than rows")


def _check_support_vectors(model: Any) -> None:
    own = vars(model)
    if "support_vectors_" not in own:
        return
    vectors, support, counts = own["support_vectors_"], own["support_"], own["_n_support"]
    dense = all(isinstance(one, np.ndarray) for one in (vectors, own["_dual_coef_"], own["_intercept_"]))
    _need(dense and not own["_sparse"], "support vectors are not a dense table")
    n, is_classifier = len(vectors), "classes_" in own
    n_classes = len(own["classes_"]) if is_classifier else 2
    n_pairs = n_classes * (n_classes - 1) // 2
    _need(vectors.shape == (n, model.n_features_in_) and support.shape == (n,), "support vectors have other columns")
    _need(own["_dual_coef_"].shape == (n_classes - 1, n), "the numbers of weights and support vectors differ")
    _need(own["_intercept_"].shape == (n_pairs,), "the numbers of intercepts and pairs of classes differ")
    _need(len(counts) == n_classes and (counts >= 0).all(), "support vectors are counted for other classes")
    _need(
        counts.sum() == n if is_classifier else (counts == n).all() or counts.sum() == n,
        "there are other support vectors",
    )
    for name in ("_probA", "_probB"):
        _need(len(own[name]) in {0, n_pairs}, "probabilities are those of other pairs of classes")


def _named(front: str, names: str, check: Callable[[Any], None]) -> dict[str, Callable[[Any], None]]:
    return {front + name: check for name in names.split()}


_CHECKS: dict[str, Callable[[Any], None]] = {
    _TREE: _check_tree,
    _PREDICTOR: _check_predictor,
    **_named("sklearn.neighbors.", "_kd_tree.KDTree _ball_tree.BallTree", _check_search_tree),
}
_CHECKS_OF_WHOLES: dict[str, Callable[[Any], None]] = {
    **_named(
        _OWNERS, "DecisionTreeRegressor DecisionTreeClassifier ExtraTreeRegressor ExtraTreeClassifier", _check_owner
    ),
    **_named(
        "sklearn.ensemble._forest.",
        "RandomForestRegressor RandomForestClassifier ExtraTreesRegressor ExtraTreesClassifier RandomTreesEmbedding",
        _check_forest,
    ),
    **_named(_HIST, "HistGradientBoostingRegressor HistGradientBoostingClassifier", _check_hist),
    **_named(
        "sklearn.neighbors.",
        "_regression.KNeighborsRegressor _classification.KNeighborsClassifier _regression.RadiusNeighborsRegressor "
        "_classification.RadiusNeighborsClassifier _unsupervised.NearestNeighbors _lof.LocalOutlierFactor",
        _check_neighbours,
    ),
    **_named("sklearn.svm._classes.", "SVC SVR NuSVC NuSVR OneClassSVM", _check_support_vectors),
}
_CHECKS_WITH_CALLS = _named(
    "sklearn.ensemble._gb.", "GradientBoostingRegressor GradientBoostingClassifier", _check_boosting
)
