from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest, truncnorm

from condshap.exceptions import OptionError
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.sampling.heads import draw_gaussian, redraw_inside

LEVELS = [3, 0, 0, 2, 0, 0]
QUICK = VAEACConfig(epochs=4, width=16, latent=4)
DECLARED = np.array([[0, 0, -40, 0, 0, -np.inf], [2, np.inf, 40, 1, 1, np.inf]])


@pytest.fixture(scope="module")
def declared(mixed_rows):
    return Networks(QUICK).fit(mixed_rows(), LEVELS, support=DECLARED)


def raw_scale(sd):
    return torch.log(torch.expm1(torch.tensor(sd)))


@pytest.mark.parametrize(
    ("mean", "low", "high"), [(0.0, -1.0, 0.5), (-2.0, 0.0, np.inf), (0.3, -np.inf, 0.0), (4.0, -1.0, 1.0)]
)
def test_gaussian_heads_have_the_truncated_distribution(mean, low, high):
    noise = torch.randn(1, 100, 200, generator=torch.Generator().manual_seed(0))
    limits = torch.tensor([low, high]).view(2, 1, 1, 1)
    mean_, raw = torch.full_like(noise, mean), raw_scale(1.5).expand_as(noise).clone()
    drawn = draw_gaussian(mean_, raw, noise, torch.tensor(1e-3), limits).flatten().double().numpy()
    truth = truncnorm((low - mean) / 1.5, (high - mean) / 1.5, loc=mean, scale=1.5)
    assert kstest(drawn, truth.cdf).pvalue > 1e-4  # false alarms: 1 in 10^4
    assert len(np.unique(drawn)) > 0.9 * len(drawn)  # no atoms at the ends


def test_a_draw_inside_the_limits_stays_as_it_is():
    noise = torch.linspace(-3, 3, 61).view(1, 1, -1)
    limits = torch.tensor([-1.0, 2.0]).view(2, 1, 1, 1)
    drawn = draw_gaussian(
        torch.zeros_like(noise), raw_scale(1.0).expand_as(noise).clone(), noise, torch.tensor(0.1), limits
    )
    kept = (noise >= -1) & (noise <= 2)
    assert drawn[kept].numpy() == pytest.approx(noise[kept].numpy(), abs=1e-6)
    assert ((drawn >= -1) & (drawn <= 2)).all()


@pytest.mark.parametrize("distance", [1.0, 4.0, 12.0, 200.0, 1e20])
def test_heads_far_outside_the_support_give_finite_draws_inside_or_at_its_end(distance):
    low, high = torch.full((200,), distance), torch.full((200,), np.inf)
    found = redraw_inside(torch.linspace(-5, 5, 200).clamp(max=distance - 1e-3), low, high)
    assert torch.isfinite(found).all()
    assert (found >= low * (1 - 1e-6)).all()
    mirrored = redraw_inside(-torch.linspace(-5, 5, 200).clamp(max=distance - 1e-3), -high, -low)
    assert torch.equal(found, -mirrored)


@pytest.mark.parametrize("name", ["mixed", "declared"])
def test_ten_million_draws_stay_inside_the_support(request, name, mixed_rows):
    """Positive, bounded, integer and real columns and levels, on both scales; known features far outside included."""
    model = request.getfixturevalue(name)
    train = mixed_rows()
    low, high = (train.min(0), train.max(0)) if name == "mixed" else DECLARED
    X = mixed_rows(64, seed=9)
    X[0, 1:3] = [1e30, -1e12]
    masks = np.array([[False] * 6, [False, True, False, True, False, False]])
    n_drawn = 0
    for seed in range(5):
        drawn = model.sample(X, masks, 4096, seed=seed)
        for mask, some in zip(masks, drawn, strict=True):
            unknown = some.reshape(-1, 6)[:, ~mask]
            assert (unknown.min(0) >= low[~mask]).all()
            assert (unknown.max(0) <= high[~mask]).all()
            n_drawn += unknown.size
        codes = drawn[0][..., [0, 2, 3]]
        assert np.array_equal(codes, np.rint(codes))
        assert drawn[0, ..., 1].min() > 0
    assert n_drawn > 1e7


def test_a_positive_column_declared_from_0_stays_positive_and_may_exceed_its_range(declared, mixed_rows):
    drawn = declared.sample(mixed_rows(40), np.zeros((1, 6), bool), 1024)[0].reshape(-1, 6)
    assert drawn[:, 1].min() > 0
    assert drawn[:, 5].max() > mixed_rows()[:, 5].max()


def test_an_end_that_training_rows_hold_is_drawn_and_another_is_not():
    X = np.random.default_rng(0).exponential(size=(200, 2))
    X[:40, 0] = 0.0
    model = Networks(replace(QUICK, scales=("standard", "normal_scores"))).fit(
        X, [0, 0], support=np.array([[0.0, 0.0], [np.inf, np.inf]])
    )
    drawn = model.sample(X[:20], np.zeros((1, 2), bool), 2048)[0].reshape(-1, 2)
    assert drawn[:, 0].min() == 0
    assert drawn[:, 1].min() > 0


def test_the_papers_networks_know_no_support(mixed_rows):
    model = Networks.paper(epochs=6, n_restarts=1, width=8, latent=2).fit(mixed_rows(), LEVELS)
    drawn = model.sample(mixed_rows(40), np.zeros((1, 6), bool), 1024)[0]
    assert drawn[..., 1].min() < 0
    assert (drawn[..., 2] != np.rint(drawn[..., 2])).any()


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 6\)"),
        (np.stack([DECLARED[0], [2, 0.5, 40, 1, 1, np.inf]]), r"columns \[1\]"),
        (DECLARED[::-1], "least values first"),
    ],
)
def test_a_support_that_does_not_hold_the_rows_is_refused(support, message, mixed_rows):
    with pytest.raises(OptionError, match=message):
        Networks(QUICK).fit(mixed_rows(40), LEVELS, support=support)
