from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.amortised import network, training


def curved(x):
    """Model of a few operations, with interactions and a feature that it never reads."""
    x = np.asarray(x, dtype=np.float64)
    return np.sin(x[:, 0]) * x[:, 1] + 0.3 * x[:, 2] ** 2 + x[:, 3]


def mixed_table(n, seed):
    """Two numbers, one of them with gaps, and a factor, all dependent."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) + rng.normal(size=(n, 1))
    gappy = np.where(rng.random(n) < 0.15, np.nan, z[:, 1])
    levels = pd.Categorical(np.array(["low", "middle", "high"])[np.digitize(z[:, 2], [-0.7, 0.7])])
    return pd.DataFrame({"a": z[:, 0], "b": gappy, "c": levels})


def mixed_model(X):
    """Two outputs of a mixed table."""
    b = np.nan_to_num(X["b"].to_numpy(), nan=-1.0)
    a = np.nan_to_num(X["a"].to_numpy())
    first = a * (1 + (X["c"] == "high")) + b
    return np.column_stack([first, np.tanh(b) * a])


@pytest.fixture(scope="session")
def quick_training():
    """Small networks that train for a second, for tests that ask for whatever else than precision."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "WIDTH", 64)
        patch.setattr(training, "_MIN_STEPS", 200)
        patch.setattr(training, "_MAX_STEPS", 400)
        yield


@pytest.fixture(scope="session")
def normals():
    """Rows (2100, 4) of dependent normals: 300 to fit, 1500 as a pool, 300 that nobody has seen."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(2100, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5).T


@pytest.fixture(scope="session")
def explainer(normals):
    made = cs.Explainer(curved, approach="gaussian", progress=False, check_draws=False)
    return made.fit(normals[:300])


@pytest.fixture(scope="session")
def fast(explainer, normals, quick_training):
    return explainer.amortise(normals[300:1800], budget="1200 rows", calibration_rows=300)


@pytest.fixture(scope="session")
def new_rows(normals):
    return normals[1800:]


@pytest.fixture(scope="session")
def mixed_fast(quick_training):
    made = cs.Explainer(mixed_model, approach="independence", n_samples=16, progress=False, check_draws=False)
    made.fit(mixed_table(200, 1))
    return made.amortise(mixed_table(700, 2), budget="600 rows", calibration_rows=100)
