"""Rows that lend their values, on the CPU and on a device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condshap.vaeac.sampling import neighbours as module
from condshap.vaeac.sampling.neighbours import Neighbours
from condshap.vaeac.sampling.tiles import Asked

IS_LEVEL = np.array([False, False, False, True, True])
MASKS = np.array([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], dtype=bool)


def lenders(n=200):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.integers(0, 4, n)])
    rows[50:60] = rows[40:50]  # ties
    return rows


def asking():
    """Rows (30, 5): some that lend, others near, one with a gap among numbers, one among levels."""
    X = lenders()[35:65].copy()
    X[:10, :3] += 0.2
    X[3, 1], X[7, 4] = np.nan, np.nan
    return X


@pytest.mark.parametrize("fill_missing", [False, True])
@pytest.mark.parametrize("at_once", [2**25, 2**12])  # all together, and a few rows and coalitions at a time
def test_a_device_draws_what_the_cpu_draws(fill_missing, at_once, monkeypatch):
    monkeypatch.setattr(module, "_ON_DEVICE", at_once)
    near = Neighbours.of(lenders(), IS_LEVEL)
    for k, n_samples in ((5, 16), (25, 7), (1000, 3)):
        asked = Asked(asking(), MASKS, n_samples, None, 1, fill_missing)
        found = near.sample_on(k, asked, torch.device("cpu"))
        np.testing.assert_array_equal(found, near.sample(k, asked))


def test_every_draw_is_a_row_among_the_nearest():
    near, X = Neighbours.of(lenders(), IS_LEVEL), asking()[10:]
    drawn = near.sample_on(5, Asked(X, MASKS[1:2], 40, None, 0), torch.device("cpu")).numpy()[0]
    apart = np.abs(lenders()[:, 0] - X[:, [0]])
    radius = np.sort(apart, axis=1)[:, 4]
    for i in range(len(X)):
        allowed = lenders()[apart[i] <= radius[i] * (1 + 1e-6)][:, 1]
        assert set(drawn[i, :, 1]) == set(allowed)
        assert (drawn[i, :, 0] == X[i, 0]).all()
