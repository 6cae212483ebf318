"""Draws, predictions and moments on an accelerator are those of the CPU up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor

import condshap as cs
from condshap.approaches import Copula, Gaussian
from condshap.approaches.vaeac import VAEAC
from condshap.coalitions import all_coalitions
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys

pytestmark = pytest.mark.gpu

MODELS = ["forest", "classifier", "module", "function"]
APPROACHES = {
    "gaussian": "gaussian",
    "copula": "copula",
    "copula, kde": Copula(margins="kde"),
    "vaeac": VAEAC(epochs=3, device="cpu"),  # the same networks for both; their draws meet the model on the device
    "independence": "independence",
}
MEMBERS = VAEAC(epochs=8, width=8, depth=1, latent=2, patience=None, companions=False, shrink=False, device="cpu")


def smooth(rows):
    return np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2] + rows[:, 3]


@pytest.fixture(scope="module")
def models(X, y):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    return {
        "forest": RandomForestRegressor(n_estimators=20, random_state=0).fit(X, y),
        "classifier": GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, np.digitize(y, [-1, 1])),
        "module": module.to("cuda" if torch.cuda.is_available() else "cpu"),
        "function": smooth,
    }


def fitted(model, approach, X, device, **options):
    return cs.Explainer(model, approach=approach, device=device, progress=False, **options).fit(X)


@pytest.mark.parametrize("approach", [Gaussian(), Copula(), Copula(margins="kde")], ids=["gaussian", "copula", "kde"])
def test_draws_on_the_device_are_those_of_the_cpu(accelerator, X, approach):
    plan = all_coalitions(4)
    approach.fit(X, FeatureSchema.learn(X), plan=plan, seed=0)
    where = {"keys": row_keys(X[:5]), "seed": 3}
    there = approach.sample_on(X[:5], plan.masks[plan.interior], 24, device=accelerator, **where)
    here = approach.sample(X[:5], plan.masks[plan.interior], 24, **where)
    assert there.rows.device.type == torch.device(accelerator).type
    np.testing.assert_allclose(there.rows.cpu().numpy(), here.rows, rtol=0, atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("approach", APPROACHES)
def test_values_and_their_errors_are_those_of_the_cpu(accelerator, X, models, approach, model):
    there, here = (
        fitted(models[model], APPROACHES[approach], X, device, n_samples=24).explain(X[:7])
        for device in (accelerator, "cpu")
    )
    np.testing.assert_allclose(there.values, here.values, rtol=0, atol=1e-6)
    np.testing.assert_allclose(there.std_errors, here.std_errors, rtol=0, atol=1e-6)
    assert there.value_table.n_evaluations == here.value_table.n_evaluations


@pytest.mark.parametrize("n_samples", [1, 2, 9, 100])
def test_variances_by_blocks_of_samples_are_those_of_the_cpu(accelerator, X, n_samples):
    there, here = (
        fitted(smooth, "gaussian", X, device, n_samples=n_samples).explain(X[:7]).value_table
        for device in (accelerator, "cpu")
    )
    np.testing.assert_allclose(there.std_errors, here.std_errors, rtol=1e-6, atol=1e-9)


def test_what_members_say_about_errors_is_what_they_say_on_the_cpu(accelerator, X, models):
    found, wanted = (fitted(models["forest"], MEMBERS, X, device).explain(X[:7]) for device in (accelerator, "cpu"))
    assert found.provenance.model_errors_from == "members"
    assert (wanted.model_errors > 0).all()
    np.testing.assert_allclose(found.model_errors, wanted.model_errors, rtol=0, atol=1e-6)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "vaeac"])
def test_other_rows_do_not_change_a_bit(accelerator, X, models, approach):
    explainer = fitted(models["forest"], APPROACHES[approach], X, accelerator)
    whole, alone = explainer.explain(X[:7]), explainer.explain(X[4:5])
    np.testing.assert_array_equal(alone.value_table.values[:, 0], whole.value_table.values[:, 4])
    np.testing.assert_array_equal(alone.std_errors[0], whole.std_errors[4])
