"""Trees on an accelerator, by the Triton kernel and by torch operations, predict what they predict on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestRegressor

from condshap.trees import FastTrees
from condshap.trees.cuda import DeviceTrees, predict_device
from condshap.trees.reading import read_trees
from condshap.trees.triton_kernel import sum_trees

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def holes(X):
    """The rows with a tenth of the cells missing."""
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)


@pytest.fixture(params=["forest", "boosted classes", "histograms with gaps"])
def case(request, X, y, holes):
    """A model and rows (300, 4) for it: thresholds of float32 and of float64, one output and three, gaps."""
    classes = np.digitize(y, [-1, 1])
    if request.param == "forest":
        return RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y), X
    if request.param == "boosted classes":
        return GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, classes), X
    return HistGradientBoostingClassifier(max_iter=8, random_state=0).fit(holes, classes), holes


@pytest.mark.parametrize("triton", [True, False], ids=["triton", "torch"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_kernels_give_the_numbers_of_the_cpu(accelerator, case, dtype, triton):
    if triton and sum_trees is None:
        pytest.skip("needs Triton")
    model, rows = case
    trees = read_trees(model)
    rows = torch.as_tensor(rows).to(dtype)
    there = predict_device(DeviceTrees.of(trees, accelerator), rows.to(accelerator), triton=triton)
    here = predict_device(DeviceTrees.of(trees), rows)  # torch operations on the CPU, tested against the definition
    np.testing.assert_allclose(there.cpu().numpy(), here.numpy(), rtol=1e-12)


def test_models_on_the_device_predict_as_their_library_does(accelerator, case):
    model, rows = case
    name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    there = getattr(FastTrees(model, device=accelerator), name)(rows)
    np.testing.assert_allclose(there, getattr(model, name)(rows), rtol=1e-6)


def test_no_rows_give_no_predictions(accelerator, case):
    packed = DeviceTrees.of(read_trees(case[0]), accelerator)
    assert len(predict_device(packed, torch.empty((0, 4), device=accelerator))) == 0
