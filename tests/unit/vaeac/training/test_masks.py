from __future__ import annotations

import numpy as np
import pytest
import torch

from condshap.exceptions import CoalitionError
from condshap.vaeac.training.masks import make_scheme

N = 40_000


def draw(scheme):
    return scheme.draw(N, torch.Generator().manual_seed(5)).numpy()


def shares(masks):
    """Share of each of the 2^M masks."""
    codes = masks.astype(int) @ (1 << np.arange(masks.shape[1]))
    return np.bincount(codes, minlength=2 ** masks.shape[1]) / len(masks)


def test_uniform_masks_are_all_alike():
    assert np.abs(shares(draw(make_scheme("uniform", 4))) - 1 / 16).max() < 0.006


def test_masks_by_size_have_the_sizes_asked_for_and_are_uniform_within():
    masks = draw(make_scheme("by_size", 3, size_probabilities=[0.1, 0.6, 0.3, 0.0]))
    assert np.abs(np.bincount(masks.sum(1).astype(int), minlength=4) / N - [0.1, 0.6, 0.3, 0.0]).max() < 0.01
    assert np.abs(masks[masks.sum(1) == 1].mean(0) - 1 / 3).max() < 0.015


def test_coalitions_are_complemented():
    known = np.array([[True, False, False], [True, True, False]])
    found = shares(draw(make_scheme("coalitions", 3, known=known, probabilities=np.array([3.0, 1.0]))))
    assert found[0b110] == pytest.approx(0.75, abs=0.01)  # S = {0}: features 1 and 2 are masked
    assert found[0b100] == pytest.approx(0.25, abs=0.01)


def test_floor_keeps_full_support():
    known = np.array([[True, False, False]])
    found = shares(draw(make_scheme("coalitions", 3, known=known, floor=0.2)))
    assert found[0b110] == pytest.approx(0.8 + 0.2 / 8, abs=0.01)
    assert np.abs(np.delete(found, 0b110) - 0.2 / 8).max() < 0.005


def test_groups_are_masked_together():
    masks = draw(make_scheme("uniform", 4, membership=[0, 1, 0, 1]))
    assert (masks[:, 0] == masks[:, 2]).all()
    assert (masks[:, 1] == masks[:, 3]).all()
    assert np.abs(shares(masks[:, :2]) - 0.25).max() < 0.01


@pytest.mark.parametrize(
    "options",
    [
        {"masking": "by_size", "size_probabilities": [1.0, 1.0]},
        {"masking": "coalitions", "known": np.ones((2, 4), bool)},
        {"masking": "coalitions", "known": np.ones((2, 3), bool), "probabilities": np.array([-1.0, 2.0])},
        {"masking": "coalitions", "known": np.ones((2, 3), bool), "probabilities": np.array([1.0])},
    ],
)
def test_masks_that_make_no_sense_are_refused(options):
    with pytest.raises(CoalitionError):
        make_scheme(n_features=3, **options)
