"""Small models that several tests share."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.vaeac import Networks, VAEACConfig

QUICK = VAEACConfig(epochs=4, width=16, latent=4)


def _mixed_rows(n=200, seed=0, gaps=0.0):
    """Columns: categorical (3), positive, integer, categorical (2), bounded, real."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 6)) + rng.normal(size=(n, 1))
    X = np.column_stack(
        [
            np.digitize(z[:, 0], [-1, 1]), np.exp(z[:, 1]), np.rint(3 * z[:, 2]), z[:, 3] > 0,
            1 / (1 + np.exp(-z[:, 4])), 1e6 + z[:, 5],
        ]
    ).astype(float)  # fmt: skip
    X[rng.random(X.shape) < gaps] = np.nan
    return X


LEVELS = [3, 0, 0, 2, 0, 0]


@pytest.fixture(scope="session")
def mixed_rows():
    return _mixed_rows


@pytest.fixture(scope="session")
def mixed():
    return Networks(QUICK).fit(_mixed_rows(), LEVELS)


@pytest.fixture(scope="session")
def mixed_with_gaps():
    return Networks(QUICK).fit(_mixed_rows(gaps=0.2), LEVELS)


@pytest.fixture(scope="session")
def gaussian_model():
    """The default recipe, for fewer epochs, on correlated normal rows (correlation 0.7)."""
    covariance = 0.3 * np.eye(4) + 0.7
    X = np.random.default_rng(1).multivariate_normal(np.zeros(4), covariance, size=1000)
    return Networks(VAEACConfig(epochs=120)).fit(X, [0] * 4)
