"""A drop-in for a fitted tree ensemble that predicts the same numbers in less time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import ModelError, listing
from condshap.trees.cuda import DeviceTrees, predict_device, predict_from_host
from condshap.trees.flat import FlatTrees, find_unfit
from condshap.trees.packed import PackedTrees
from condshap.trees.pipelines import encoder_of
from condshap.trees.reading import read_trees
from condshap.types import Model, Outputs, Table

if TYPE_CHECKING:
    import torch


def _has_classes(model: Any) -> bool:
    return hasattr(model, "classes_")


class FastTrees:
    """A tree ensemble that behaves like the model it was made from, but is evaluated by condshap.

    Parameters
    ----------
    model : fitted tree ensemble of scikit-learn, XGBoost or LightGBM
    device : "cpu" for a compiled loop, a torch device such as "cuda" for a kernel there

    Attributes
    ----------
    trees : the model as flat arrays
    n_features_in_, feature_names_in_, classes_ : as those of the model, if it has them

    Notes
    -----
    Columns are taken by position: a table must have them in the order used in training. Models of scikit-learn may have
    categorical features, but not on a device.
    """

    classes_: npt.NDArray[Any]
    feature_names_in_: npt.NDArray[Any]

    def __init__(self, model: Model, device: str = "cpu") -> None:
        trees = read_trees(model)
        if trees is None:
            raise ModelError(
                f"FastTrees needs a fitted tree ensemble that it understands exactly, got {type(model).__name__} "
                "of an unknown kind or with settings that are not covered. Use the model itself."
            )
        self.trees = trees
        self.device = device
        self.n_features_in_ = trees.n_features
        for name in ("feature_names_in_", "classes_"):
            if getattr(model, name, None) is not None:
                setattr(self, name, getattr(model, name))
        self._even_odds_are_positive = type(model).__name__ == "GradientBoostingClassifier" and trees.link == "sigmoid"
        self._encoder = encoder_of(model)
        self._packed = _pack(trees, device)

    @property
    def _estimator_type(self) -> str:  # what scikit-learn before 1.6 asks for
        return "classifier" if _has_classes(self) else "regressor"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=self._estimator_type, target_tags=TargetTags(required=True))

    def predict(self, X: Table) -> npt.NDArray[Any]:
        """Predictions (n,), or (n, O) for several responses; labels (n,) of a classifier, the most probable ones."""
        outputs = self._outputs(X)
        if not _has_classes(self):
            return outputs[:, 0] if outputs.shape[1] == 1 else outputs
        if self._even_odds_are_positive:
            return np.asarray(self.classes_.take(outputs[:, 1] >= outputs[:, 0]))
        return np.asarray(self.classes_.take(outputs.argmax(axis=1)))

    @property
    def predict_proba(self) -> Callable[[Table], Outputs]:
        """Function from a table to the probabilities (n, classes) of a classifier; regressors do not have it."""
        if not _has_classes(self):
            raise AttributeError("a regressor has no predict_proba")
        return self._outputs

    def predict_tensor(self, X: torch.Tensor) -> torch.Tensor:
        """Predictions or probabilities (n, O) for rows (n, M) that are on the device, where they stay."""
        assert isinstance(self._packed, DeviceTrees)
        return predict_device(self._packed, X)

    def _outputs(self, X: Table) -> Outputs:
        rows = self._checked(X)
        if self.device == "cpu":
            from condshap.trees.cpu import predict_cpu  # numba takes a while to load

            return predict_cpu(self._packed, rows)
        return predict_from_host(self._packed, rows)

    def _checked(self, X: Table) -> npt.NDArray[Any]:
        """Rows (n, M) in the type of the thresholds, if they are what the model itself would take."""
        names, trained = getattr(X, "columns", None), getattr(self, "feature_names_in_", None)
        if trained is not None and names is not None and list(names) != list(trained):
            raise ModelError(f"a table must have the columns {listing(trained)} in this order, got {listing(names)}.")
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.n_features_in_:
            raise ModelError(f"rows must have {self.n_features_in_} features, got shape {shape}.")
        numbers = X if self._encoder is None else self._encoder.transform(X)
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(numbers, dtype=self.trees.threshold.dtype)
        _check_numbers(rows, self.trees)
        return rows


def _check_numbers(rows: npt.NDArray[Any], trees: FlatTrees) -> None:
    """Refuse NaN or infinity in rows (n, M) if the model does."""
    unfit = find_unfit(rows, trees.accepts)
    if unfit is not None:
        allowed = "finite numbers or NaN" if trees.accepts == "missing" else "finite numbers"
        row, column = np.argwhere(unfit)[0]
        raise ModelError(
            f"the model takes {allowed} that fit into {rows.dtype}, got others in {unfit.any(axis=1).sum()} rows, the first "
            f"in row {row}, column {column}. Clip or impute them."
        )


def _pack(trees: FlatTrees, device: str) -> Any:
    """Layout for the evaluator."""
    return PackedTrees.of(trees) if device == "cpu" else DeviceTrees.of(trees, device)
