from __future__ import annotations

import numpy as np
import pytest
import torch

from condshap.vaeac.columns.encoding import Layout, StandardScale, learn_scale, scale_floors
from condshap.vaeac.sampling.heads import FromScores, FromStandard

CPU = torch.device("cpu")


def columns(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(5, 2, n), rng.exponential(size=n), rng.integers(0, 9, n), 1e6 + rng.random(n)])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("name", ["standard", "normal_scores"])
def test_decoding_undoes_encoding(name):
    X = columns()
    scale = learn_scale(name, X, cut=True)
    encoded = scale.encode(X)
    assert np.array_equal(np.isnan(encoded), np.isnan(X))
    scaled = torch.from_numpy(np.nan_to_num(encoded).T[:, None].astype(np.float32))
    back = torch.empty(scaled.shape, dtype=torch.float64)
    {"standard": FromStandard, "normal_scores": FromScores}[name].of(scale, CPU)(scaled, back)
    error = np.abs(back[:, 0].numpy().T - X)[~np.isnan(X)]
    assert error.max() < 0.02
    assert np.nanmax(np.abs(np.nanmean(encoded, 0))) < 0.05
    assert np.nanmax(np.abs(np.nanstd(encoded, 0) - 1)) < 0.1


def test_scores_stay_inside_the_training_range_and_rise():
    X = columns()
    scale = learn_scale("normal_scores", X, cut=True)
    scores = torch.linspace(-40, 40, 20001).expand(4, 1, -1)
    values = torch.empty(scores.shape, dtype=torch.float64)
    FromScores.of(scale, CPU)(scores, values)
    values = values[:, 0].numpy()
    assert values.min(1) == pytest.approx(np.nanmin(X, 0))
    assert values.max(1) == pytest.approx(np.nanmax(X, 0))
    assert (np.diff(values) >= -1e-9).all()


def test_standard_scale_has_mean_0_and_unbiased_sd_1_and_takes_huge_values():
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1e200, 1e-200]
    scale = StandardScale.learn(X, cut=False)
    encoded = scale.encode(X)
    assert encoded.mean(0) == pytest.approx([0, 0], abs=1e-12)
    assert encoded.std(0, ddof=1) == pytest.approx([1, 1])


def test_inputs_far_outside_are_cut_off_unless_told_otherwise():
    X = columns()[:, :1]
    far = np.array([[1e9]])
    assert learn_scale("standard", X, cut=True).encode(far) < 8
    assert learn_scale("standard", X, cut=False).encode(far) > 1e5


def test_floors_follow_the_resolution():
    encoded = learn_scale("standard", columns(), cut=True).encode(columns())
    floors = scale_floors(encoded, 1e-3, by_resolution=True)
    step = 1 / np.nanstd(columns()[:, 2], ddof=1)
    assert floors[2] == pytest.approx(step / np.sqrt(12))
    assert floors[0] < 0.01
    assert scale_floors(np.zeros((9, 1)), 1e-3, by_resolution=True) == [1.0]
    assert (scale_floors(encoded, 1e-4, by_resolution=False) == 1e-4).all()


def test_layout_puts_equal_level_counts_side_by_side():
    layout = Layout.of([3, 0, 2, 3, 0])
    assert layout.order == (1, 4, 2, 0, 3)
    assert (layout.n_inputs, layout.n_outputs) == (2 + 2 + 6, 4 + 2 + 6)
    assert layout.column_features.tolist() == [0, 1, 2, 2, 3, 3, 3, 4, 4, 4]
    one_hot = layout.one_hot(np.array([[1, 2, 0], [0, 1, 1]]), np.array([[True, True, False], [True, False, True]]))
    assert one_hot.tolist() == [[0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 1, 0]]
