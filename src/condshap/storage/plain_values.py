"""Options and other values <-> arrays and JSON, without pickle.

What can be stored: None, booleans, numbers, text, lists, tuples and mappings of these, arrays of numbers, tables, and
estimators made of types that are known to hold numbers and no code (by skops, as bytes in an array).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from condshap.approaches.base import State
from condshap.exceptions import StorageError, listing
from condshap.storage.tables import pack_table, unpack_table
from condshap.trees.validating import check_trees

# Fitted parts of common models that skops leaves to its users to judge. They hold numbers, not code, and `check_trees` looks
# at those numbers before anything uses them. XGBoost and LightGBM read their models themselves, and end the process over a
# forged one, so they are not among these.
HARMLESS_TYPES = {
    "collections.OrderedDict",
    "functools.partial",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
}


def store_values(values: Mapping[str, Any], owner: str) -> State:
    """Take values apart; `owner` is whose they are, for messages.

    >>> store_values({"seed": 1, "mean": np.zeros(2)}, "a thing").facts
    {'seed': 1, 'mean': {'kind': 'array', 'key': 'mean/0'}}
    """
    arrays: dict[str, npt.NDArray[Any]] = {}
    facts = {name: _store(value, arrays, str(name), owner) for name, value in values.items()}
    return State(arrays, facts)


def restore_values(state: State) -> dict[str, Any]:
    """Inverse of `store_values`."""
    return {name: _restore(fact, state.arrays, name) for name, fact in state.facts.items()}


def stored_options(approach: Any, leave_out: Collection[str] = ()) -> State:
    """Options of an approach that is a scikit-learn estimator, as the beginning of its state."""
    options = {name: value for name, value in approach.get_params(deep=False).items() if name not in leave_out}
    return store_values(options, f"approach '{approach.name}'").named("options")


def restored_options(state: State) -> dict[str, Any]:
    """Options in a state that began with `stored_options`."""
    return restore_values(state.part("options"))


def _store(value: Any, arrays: dict[str, npt.NDArray[Any]], name: str, owner: str) -> Any:
    """Fact that stands for a value; what JSON cannot hold goes to `arrays`."""
    if value is None or type(value) in {bool, int, float}:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (pd.Index, pd.Series)):
        value = value.tolist()
    if type(value) in {list, tuple}:
        return {"kind": type(value).__name__, "items": [_store(item, arrays, name, owner) for item in value]}
    if isinstance(value, Mapping):
        pairs = [[_store(part, arrays, name, owner) for part in pair] for pair in value.items()]
        return {"kind": "mapping", "items": pairs}
    kind, array, about = _as_array(value, name, owner)
    key = f"{name}/{len(arrays)}"
    arrays[key] = array
    return {"kind": kind, "key": key, **({} if about is None else {"about": about})}


def _as_array(value: Any, name: str, owner: str) -> tuple[str, npt.NDArray[Any], dict[str, Any] | None]:
    """Kind of a value that JSON cannot hold, the array that can, and facts beside it."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biuf":
        return ("array" if isinstance(value, np.ndarray) else "scalar"), np.asarray(value), None
    if isinstance(value, (np.ndarray, pd.DataFrame)) or hasattr(value, "__arrow_c_stream__"):
        return ("table", *pack_table(value, f"'{name}' of {owner}"))
    if hasattr(value, "fit") and not isinstance(value, type):
        return "estimator", pack_estimator(value, f"'{name}' of {owner}"), None
    raise StorageError(
        f"'{name}' of {owner} must be plain (a number, text, an array, a table, an estimator, or lists of these) to be "
        f"saved, got {type(value).__name__}. Give it in one of these forms and fit again."
    )


def _restore(fact: Any, arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Any:
    if not isinstance(fact, dict):
        return fact
    kind = fact["kind"]
    if kind in {"list", "tuple"}:
        items = [_restore(item, arrays, name) for item in fact["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "mapping":
        return dict([_restore(part, arrays, name) for part in pair] for pair in fact["items"])
    array = arrays[fact["key"]]
    if kind == "table":
        return unpack_table(array, fact["about"])
    if kind == "estimator":
        return unpack_estimator(array, f"'{name}'")
    if kind not in {"array", "scalar"}:
        raise ValueError(f"'{name}' is of the unknown kind {kind!r}")
    return array if kind == "array" else array[()]


def pack_estimator(estimator: Any, what: str) -> npt.NDArray[np.uint8]:
    """Estimator, or a tuple of them, fitted or not -> bytes of a skops file, shape (n,)."""
    import skops.io

    try:
        packed = skops.io.dumps(estimator)
        unknown = _unknown_types(packed)
    except Exception as error:  # skops fails in many ways
        raise StorageError(
            f"{what} must be an estimator that skops can store, got {type(estimator).__name__}, which failed with "
            f"{type(error).__name__}: {error}. Use one of scikit-learn's."
        ) from error
    if unknown:
        raise StorageError(
            f"{what} must be made of types that hold numbers and no code to be saved, got also {listing(unknown)}. "
            "Use one of scikit-learn's estimators, or fit again instead of saving."
        )
    return np.frombuffer(packed, dtype=np.uint8)


def unpack_estimator(packed: npt.NDArray[np.uint8], what: str) -> Any:
    """Inverse of `pack_estimator`; types that may run code are refused."""
    import skops.io

    content = packed.tobytes()
    try:
        unknown = _unknown_types(content)
        if not unknown:
            estimator = skops.io.loads(content, trusted=sorted(HARMLESS_TYPES))
            check_trees(estimator)
            return estimator
    except Exception as error:  # a damaged file can fail in any way
        raise StorageError(
            f"{what} must be an estimator whose packages are installed, but loading failed: {type(error).__name__}: "
            f"{error}. Save it again, or install the versions that it was saved with."
        ) from error
    raise StorageError(
        f"{what} must be made of types that hold numbers and no code, got also {listing(unknown)}. Fit again instead."
    )


def _unknown_types(content: bytes) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(data=content)) - HARMLESS_TYPES)
