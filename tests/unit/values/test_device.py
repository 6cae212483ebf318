"""The value engine on a device, run on the CPU: the same code as on an accelerator but for its kernels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import condshap as cs
from condshap.approaches.vaeac import VAEAC
from condshap.exceptions import ModelError
from condshap.models.on_device import HostModel, ModuleOnDevice, TreesOnDevice, on_device
from condshap.numerics.device_draws import from_scores
from condshap.numerics.margins import EmpiricalMargin, KernelMargin
from condshap.runtime.devices import find_accelerator
from condshap.values import device as engine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) @ np.array([[1, 0.6, 0, 0.3], [0, 1, 0.5, 0], [0, 0, 1, 0.4], [0, 0, 0, 1]])
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3]
FOREST = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y)
CLASSIFIER = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, np.digitize(y, [-1, 1]))
MODULE = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()


def smooth(rows):
    return np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + rows[:, 3]


APPROACHES = {
    "gaussian": "gaussian",
    "copula": "copula",
    "copula, kde": cs.approaches.Copula(margins="kde"),
    "vaeac": VAEAC(epochs=3),
    "vaeac, plain": VAEAC.paper(epochs=3, n_restarts=1),
    "independence": "independence",
}
MODELS = {"forest": FOREST, "classifier": CLASSIFIER, "module": MODULE, "function": smooth}


@pytest.fixture
def on_cpu(monkeypatch):
    """Let the engine believe that the CPU is an accelerator."""
    monkeypatch.setattr("condshap.learning.find_accelerator", lambda device: "cpu" if device == "auto" else None)


def explained(model, approach, rows=X[:7], device="auto", **options):
    explainer = cs.Explainer(model, approach=approach, device=device, progress=False, **options).fit(X)
    return explainer.explain(rows)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("approach", APPROACHES)
def test_the_device_gives_the_numbers_of_numpy_up_to_rounding(on_cpu, approach, model):
    from_device = explained(MODELS[model], APPROACHES[approach], n_samples=24)
    from_host = explained(MODELS[model], APPROACHES[approach], n_samples=24, device="cpu")
    np.testing.assert_allclose(from_device.values, from_host.values, rtol=0, atol=1e-9)
    np.testing.assert_allclose(from_device.std_errors, from_host.std_errors, rtol=0, atol=1e-9)
    assert from_device.value_table.n_evaluations == from_host.value_table.n_evaluations


@pytest.mark.parametrize("n_samples", [1, 2, 9, 100])
def test_standard_errors_of_any_number_of_samples_are_those_of_numpy(on_cpu, n_samples):
    from_device = explained(smooth, "gaussian", n_samples=n_samples)
    from_host = explained(smooth, "gaussian", n_samples=n_samples, device="cpu")
    np.testing.assert_allclose(
        from_device.value_table.std_errors, from_host.value_table.std_errors, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("approach", ["gaussian", "copula", "vaeac"])
def test_neither_blocks_nor_other_rows_change_a_bit(on_cpu, monkeypatch, approach):
    explainer = cs.Explainer(FOREST, approach=APPROACHES[approach], progress=False).fit(X)
    whole = explainer.explain(X[:7])
    monkeypatch.setattr(engine, "rows_at_once", lambda n_features, device: 100)
    blocks, alone = explainer.explain(X[:7]), explainer.explain(X[4:5])
    np.testing.assert_array_equal(blocks.value_table.values, whole.value_table.values)
    np.testing.assert_array_equal(blocks.std_errors, whole.std_errors)
    np.testing.assert_array_equal(alone.value_table.values[:, 0], whole.value_table.values[:, 4])


def test_rows_wait_for_the_model_in_a_buffer_of_their_own(on_cpu, monkeypatch):
    explainer = cs.Explainer(smooth, approach="gaussian", progress=False).fit(X)
    monkeypatch.setattr(engine, "rows_at_once", lambda n_features, device: 100)  # many blocks, the next drawn before
    from_device = explainer.explain(X[:7])
    explainer.device = "cpu"
    np.testing.assert_allclose(from_device.values, explainer.explain(X[:7]).values, rtol=0, atol=1e-9)


def test_trees_and_modules_stay_on_the_device_and_all_else_goes_through_the_host(on_cpu):
    def way(model, table=X, **options):
        explainer = cs.Explainer(model, approach="gaussian", progress=False, **options).fit(table)
        return type(on_device(explainer.predictor_))

    assert way(FOREST) is TreesOnDevice
    assert way(CLASSIFIER) is TreesOnDevice
    assert way(MODULE) is ModuleOnDevice
    assert way(smooth) is HostModel
    assert way(FOREST, fast_trees=False) is HostModel
    assert way(make_pipeline(StandardScaler(), FOREST).fit(X, y)) is HostModel


def test_columns_in_another_order_and_one_output_of_several(on_cpu):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(frame, np.digitize(y, [-1, 1]))
    turned = frame[["d", "b", "a", "c"]]
    from_device, from_host = (
        cs.Explainer(model, approach="gaussian", output=1, device=device, progress=False)
        .fit(turned)
        .explain(turned[:5])
        for device in ("auto", "cpu")
    )
    np.testing.assert_allclose(from_device.values, from_host.values, rtol=0, atol=1e-9)


def test_rows_that_the_model_refuses_reach_the_model(on_cpu):
    rows = X.copy()
    rows[3, 1] = np.nan
    explainer = cs.Explainer(FOREST, approach=VAEAC(epochs=2, fill_missing=False), progress=False).fit(rows)
    from_device = explainer.explain(rows[3:4])  # scikit-learn's forests accept NaN
    assert np.isfinite(from_device.values).all()

    class Refusing(torch.nn.Module):
        def forward(self, inputs):
            return torch.where(inputs[:, :1] > 1e3, torch.nan, inputs[:, :1])

    explainer = cs.Explainer(Refusing(), approach="gaussian", progress=False).fit(X)
    far = X[:2].copy()
    far[0, 1] = 1e7
    with pytest.raises(ModelError, match="must return finite numbers"):
        explainer.explain(far)


def test_trees_on_a_device_never_guess_where_missing_values_go(on_cpu):
    rows = X.copy()
    rows[:40, 1] = np.nan
    refuses = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y > 0)
    explainer = cs.Explainer(refuses, approach=VAEAC(epochs=2, fill_missing=False), base_value=0.5, progress=False)
    explainer.fit(X)
    begun = on_device(explainer.predictor_).begin(torch.as_tensor(rows))
    with pytest.raises(ModelError, match="NaN"):
        on_device(explainer.predictor_).finish(begun)


def test_trees_that_do_not_fit_the_device_are_announced(on_cpu, monkeypatch):
    monkeypatch.setattr("condshap.trees.cuda.FEATURE_BITS", 1)
    with pytest.warns(cs.CondShapWarning, match=r"evaluated on the CPU: trees on a device must have at most"):
        explainer = cs.Explainer(FOREST, approach="gaussian", progress=False).fit(X)
    assert explainer.predictor_.device_trees is None


@pytest.mark.parametrize("K", [1, 2, 7, 24, 250])
def test_sums_by_halves_are_sums(K):
    values = torch.randn(3, 5, K, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(K))
    np.testing.assert_allclose(engine.add_up(values), values.sum(dim=2), atol=1e-12)


@pytest.mark.parametrize("kind", [EmpiricalMargin, KernelMargin])
def test_margins_on_a_device_are_those_of_numpy(kind):
    margin = kind.learn(RNG.gamma(2.0, size=200).round(1))
    scores = np.concatenate([RNG.normal(size=(4, 50)).ravel(), [-9.0, 9.0, 0.0]])
    np.testing.assert_allclose(from_scores(margin, torch.as_tensor(scores)), margin.from_scores(scores), atol=1e-12)


def test_the_cpu_is_no_accelerator():
    assert find_accelerator("cpu") is None
    if not torch.cuda.is_available():
        assert find_accelerator("auto") is None
