"""Tests on an accelerator, against the numbers of the CPU; ``pytest -m gpu tests/gpu`` runs them, and without one they skip.

tests/unit/values/test_device.py runs the same code on the CPU. What differs here is kernels, streams and recorded steps.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch


@pytest.fixture
def accelerator() -> str:
    """Name of the device; skips where there is none."""
    if not torch.cuda.is_available():
        pytest.skip("needs an accelerator")
    return "cuda"


@pytest.fixture(scope="session")
def X():
    """Correlated rows (300, 4)."""
    mix = np.array([[1, 0.6, 0, 0.3], [0, 1, 0.5, 0], [0, 0, 1, 0.4], [0, 0, 0, 1]])
    return np.random.default_rng(0).normal(size=(300, 4)) @ mix


@pytest.fixture(scope="session")
def y(X):
    return X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3]
