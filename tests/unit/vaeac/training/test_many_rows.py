"""Training on more rows than an epoch goes through."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.training import steps

TINY = VAEACConfig(epochs=4, width=8, latent=2, depth=1, scales=("standard", "standard"), patience=None, kl_warmup=1)
ROWS = np.random.default_rng(0).normal(size=(3000, 3)) @ np.tri(3)


@pytest.fixture
def short_epochs(monkeypatch):
    """Epochs of 512 rows, so that few rows are many."""
    monkeypatch.setattr(steps, "ROWS_OF_EPOCH", 512)


def n_steps(networks):
    return int(networks.training_[0].progress[1])


def test_an_epoch_has_no_more_steps_than_its_rows_fill(short_epochs):
    assert n_steps(Networks(TINY).fit(ROWS, [0] * 3)) == 4 * 512 // 128


def test_every_epoch_goes_through_other_rows_of_the_training_part_only(short_epochs, monkeypatch):
    seen = []
    usual = steps.Run._batch

    def noted(run, rows):
        seen.append(rows.clone())
        return usual(run, rows)

    monkeypatch.setattr(steps.Run, "_batch", noted)
    networks = Networks(TINY).fit(ROWS, [0] * 3)
    held = networks.held_out_
    epochs = [rows for rows in seen if rows.ndim == 3]  # (steps, models, batch)
    assert len(epochs) == 4
    for model in range(2):
        taken = [set(epoch[:, model].ravel().tolist()) for epoch in epochs]
        assert not set().union(*taken) & set(held[model].tolist())
        assert len(taken[0] & taken[1]) < len(taken[0]) / 2  # 0.2 by chance


def test_training_goes_on_as_if_there_had_been_no_break(short_epochs):
    whole = Networks(TINY).fit(ROWS, [0] * 3)
    half = Networks(VAEACConfig(**{**vars(TINY), "epochs": 2})).fit(ROWS, [0] * 3).continue_training(ROWS, 2)
    np.testing.assert_array_equal(half.training_[0].weights, whole.training_[0].weights)


def test_up_to_its_rows_an_epoch_is_a_shuffle():
    config = VAEACConfig(**{**vars(TINY), "epochs": 1, "batch_size": 100})
    torch.manual_seed(0)
    assert n_steps(Networks(config).fit(ROWS, [0] * 3)) == 23  # 2250 rows
