"""Tree ensemble, alone or at the end of a pipeline -> its trees, and their outputs in place of the model's own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.exceptions import CondShapWarning, ModelError
from condshap.trees import PackedTrees
from condshap.trees.cuda import DeviceTrees, predict_from_host
from condshap.trees.flat import FlatTrees, find_unfit, predict_plainly
from condshap.trees.pipelines import dense_numbers
from condshap.trees.threads import count_threads
from condshap.types import Model, Outputs


def find_numbers(trees: FlatTrees | PackedTrees, table: Any, model: Model) -> npt.NDArray[Any] | None:
    """Numbers (n, columns) of a table of n rows that the trees of a model compare; None for a table of anything else."""
    numbers = dense_numbers(table, model, trees.dtype)
    return None if numbers is None or numbers.shape[1] != trees.n_features else numbers


def meets_outputs(trees: FlatTrees, table: Any, model: Model, expected: Outputs) -> bool:
    """Whether trees that were read from a model give its own outputs (n, O) for a table of n rows, to the last bit."""
    numbers = find_numbers(trees, table, model)
    return numbers is not None and np.array_equal(predict_plainly(trees, numbers), expected)


def copy_to_device(trees: FlatTrees, device: str | None) -> DeviceTrees | None:
    """Trees on a device, None without one, or, with a warning, where they do not fit its layout."""
    if device is None:
        return None
    try:
        return DeviceTrees.of(trees, device)
    except ModelError as error:
        warnings.warn(f"the model is evaluated on the CPU: {error}", CondShapWarning, stacklevel=2)
        return None


def evaluate_trees(
    trees: PackedTrees, table: Any, model: Model, device_trees: DeviceTrees | None = None
) -> Outputs | None:
    """Outputs (n, O) of a model's trees for a table of n rows, on the device that has a copy of them, else on the host.

    None if the table is not one of numbers, or has some that the model refuses.
    """
    return evaluate_numbers(trees, find_numbers(trees, table, model), model, device_trees)


def evaluate_numbers(
    trees: PackedTrees, numbers: npt.NDArray[Any] | None, model: Model, device_trees: DeviceTrees | None = None
) -> Outputs | None:
    """The same for numbers (n, columns) that the trees compare, None if there are none."""
    if numbers is None or find_unfit(numbers, trees.accepts) is not None:
        return None
    return predict_numbers(trees, numbers, model) if device_trees is None else predict_from_host(device_trees, numbers)


def predict_numbers(trees: PackedTrees, numbers: npt.NDArray[Any], model: Model) -> Outputs:
    """Outputs (n, O) of a model's trees for numbers (n, columns) that it takes, on the host, by its number of threads."""
    from condshap.trees.cpu import predict_cpu  # numba takes a while to load

    return predict_cpu(trees, numbers, count_threads(model))
