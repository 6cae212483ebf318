"""How far learned dependence is believed."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.coalitions import all_coalitions
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.trust import learn_trust

PLAN = all_coalitions(4).mask_distribution()


def rows(rho, n=400, seed=3, gaps=0.0):
    """Two normals and two cut into three levels, equicorrelated."""
    rng = np.random.default_rng(seed)
    z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, 4))
    X = np.column_stack([z[:, :2], np.digitize(z[:, 2:], [-0.5, 0.5])])
    X[rng.random(X.shape) < gaps] = np.nan
    return X


def trained(X, **options):
    return Networks(VAEACConfig(**{"epochs": 60, "validate_every": 4, **options})).fit(X, [0, 0, 3, 3], seed=1)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_strong_dependence_is_believed(gaps):
    X = rows(0.8, gaps=gaps)
    assert learn_trust(trained(X), X, *PLAN, seed=0) > 0.9


def test_noise_is_not_believed():
    """Over seeds 0 to 9 of the rows the mean was 0.3; with all trust it would be 1."""
    found = []
    for seed in range(4):
        X = rows(0.0, seed=seed)
        networks = trained(X, patience=None, ema=None, zero_init=False)  # no care taken: it learns noise
        found.append(learn_trust(networks, X, *PLAN, seed=0))
    assert np.mean(found) < 0.5


def test_networks_that_have_seen_all_rows_are_believed():
    X = rows(0.0, n=60)
    assert learn_trust(trained(X, epochs=2, refit=True), X, *PLAN, seed=0) == 1.0


def test_trust_does_not_change_with_the_order_of_calls():
    X = rows(0.3, n=100)
    networks = trained(X, epochs=4)
    assert learn_trust(networks, X, *PLAN, seed=5) == learn_trust(networks, X, *PLAN, seed=5)
