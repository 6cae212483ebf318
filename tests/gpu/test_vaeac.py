"""Networks on an accelerator: recorded training steps give the numbers of plain ones, and draws are those of the CPU."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

import condshap as cs
from condshap.vaeac.companions import Companions
from condshap.vaeac.ensemble import Networks
from condshap.vaeac.sampling.tiles import Asked

pytestmark = pytest.mark.gpu

QUICK = {"epochs": 6, "width": 16, "latent": 4}
MASKS = np.array([[True, False, False, False], [True, True, False, True], [False, True, True, False]])


def trained(X, device, **options):
    return cs.VAEACNetworks(**QUICK, **options, device=device).fit(X, seed=0, progress=False)


def test_recorded_steps_train_as_steps_kernel_by_kernel_do(accelerator, X, monkeypatch, caplog):
    recorded, make = [], torch.cuda.CUDAGraph

    def noted(*args, **options):
        recorded.append(make(*args, **options))
        return recorded[-1]

    monkeypatch.setattr(torch.cuda, "CUDAGraph", noted)
    with caplog.at_level(logging.WARNING):
        usual = trained(X, accelerator)
    assert recorded
    assert "kernel by kernel" not in caplog.text

    def refused(*args, **options):
        raise RuntimeError("no recording today")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", refused)
    with caplog.at_level(logging.WARNING):
        plain = trained(X, accelerator)
    assert "kernel by kernel" in caplog.text
    np.testing.assert_allclose(usual.history.vlb, plain.history.vlb, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(usual.history.iwae, plain.history.iwae, rtol=1e-3, atol=1e-3)


def test_training_learns_what_it_learns_on_the_cpu(accelerator, X):
    """Random numbers of devices differ, so do the networks. Over seeds, the mean has a standard deviation of 0.006."""
    there, here = (
        cs.VAEACNetworks(epochs=60, device=device).fit(X, seed=0, progress=False) for device in (accelerator, "cpu")
    )
    found, wanted = (np.mean(one.log_likelihood(X[:100], MASKS)) for one in (there, here))
    assert abs(found - wanted) < 0.05


def test_draws_and_likelihoods_of_one_network_are_those_of_the_cpu(accelerator, X, tmp_path):
    trained(X, "cpu").save(tmp_path / "networks.safetensors")
    there, here = (
        cs.VAEACNetworks.load(tmp_path / "networks.safetensors", device=device) for device in (accelerator, "cpu")
    )
    apart = np.abs(there.sample(X[:20], MASKS, 32, seed=1) - here.sample(X[:20], MASKS, 32, seed=1))
    assert np.quantile(apart, 0.99) < 1e-3  # a draw that is moved to a value of training may be moved to its neighbour
    found, wanted = (one.log_likelihood(X[:20], MASKS, seed=1) for one in (there, here))
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_companions_draw_there_what_they_draw_on_the_cpu(accelerator, X):
    """Linear members up to rounding, and neighbours the same rows."""
    here = cs.VAEACNetworks(**QUICK, device="cpu").fit(X, seed=0, progress=False).networks_
    there = Networks.from_state(*here.to_state(), device=accelerator)
    asked = Asked(X[:20], MASKS, 16, None, 1)
    mine, theirs = (Companions.learn(one, X, seed=0) for one in (here, there))
    assert len(mine) == 4
    for i in range(len(mine)):
        np.testing.assert_allclose(theirs.draw(i, asked).cpu(), mine.draw(i, asked), rtol=1e-6, atol=1e-6)
