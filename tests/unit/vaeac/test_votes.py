"""How much networks, companions and blind draws count."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.coalitions import all_coalitions
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.companions import Companions
from condshap.vaeac.mixture import share_out
from condshap.vaeac.votes import (
    Features,
    doubted,
    in_hundredths,
    judge_members,
    learn_votes,
    looks_normal,
    mostly_linear,
    simplex_least_squares,
)

PLAN = all_coalitions(4).mask_distribution()


def rows(rho, n=400, seed=3, gaps=0.0):
    """Two normals and two cut into three levels, equicorrelated."""
    rng = np.random.default_rng(seed)
    z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, 4))
    X = np.column_stack([z[:, :2], np.digitize(z[:, 2:], [-0.5, 0.5])])
    X[rng.random(X.shape) < gaps] = np.nan
    return X


def votes(X, seed=0, n_levels=(0, 0, 3, 3), plan=PLAN, **options):
    networks = Networks(VAEACConfig(**{"epochs": 60, "validate_every": 4, **options})).fit(X, n_levels, seed=1)
    return learn_votes(networks, Companions.learn(networks, X, seed=0), X, *plan, seed=seed)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_strong_dependence_is_believed(gaps):
    found = votes(rows(0.8, gaps=gaps))
    assert found.sum() == pytest.approx(1.0)
    assert found[-1] < 0.1


def test_noise_is_not_believed():
    """Networks that take no care learn noise; with all trust the mean blind vote would be 0. Seeds are fixed."""
    careless = {"patience": None, "ema": None, "zero_init": False, "advice": False, "companions": False}
    found = [votes(rows(0.0, seed=seed), **careless)[-1] for seed in range(4)]
    assert np.mean(found) > 0.4


def test_networks_that_have_seen_all_rows_are_believed():
    assert votes(rows(0.0, n=60), epochs=2, refit=True).tolist() == [1.0, 0, 0, 0, 0, 0]


def test_linear_members_win_on_few_normal_rows():
    rng = np.random.default_rng(0)
    X = np.sqrt(0.7) * rng.normal(size=(120, 1)) + np.sqrt(0.3) * rng.normal(size=(120, 4))
    found = votes(X, n_levels=[0] * 4, epochs=20)
    assert found[1:3].sum() > 0.5


def test_neighbours_win_on_a_curve():
    """Rows along a spiral: linear members know nothing of it, and networks cannot learn it in 20 epochs."""
    t = np.random.default_rng(0).uniform(0, 4 * np.pi, size=400)
    X = np.column_stack([np.sin(t), np.cos(t), np.sin(2 * t), np.cos(3 * t)])
    found = votes(X, n_levels=[0] * 4, epochs=20)
    assert found[3:5].sum() > 0.6


def test_votes_do_not_change_with_the_order_of_calls():
    X = rows(0.3, n=100)
    networks = Networks(VAEACConfig(epochs=4)).fit(X, [0, 0, 3, 3])
    companions = Companions.learn(networks, X, seed=0)
    first, second = (learn_votes(networks, companions, X, *PLAN, seed=5) for _ in range(2))
    assert np.array_equal(first, second)


def test_weights_on_the_simplex_are_the_best_ones():
    rng = np.random.default_rng(1)
    for _ in range(20):
        design, target = rng.normal(size=(50, 4)), rng.normal(size=50)
        target += design @ rng.dirichlet(np.ones(4)) * 3
        found = simplex_least_squares(design.T @ design, design.T @ target)
        assert found.sum() == pytest.approx(1.0)
        assert ((found == 0) | (found >= 0.04)).all()
        others = rng.dirichlet(np.ones(4), size=500)
        others = others[(others >= 0.04).all(axis=1)]
        losses = ((target[:, None] - design @ others.T) ** 2).sum(axis=0)
        assert ((target - design @ found) ** 2).sum() <= losses.min() + 1e-9


def judged(n, own, seed):
    """Products of two members that err alike, the second a little more, on n rows."""
    rng = np.random.default_rng(seed)
    truth, shared, more = (rng.normal(size=(n, 20)) for _ in range(3))
    members = np.stack([truth + shared, truth + shared + own * more], axis=1)
    return members @ members.swapaxes(1, 2), np.einsum("nif,nf->ni", members, truth)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_votes_are_shared_where_rows_cannot_tell_and_decide_where_they_can(seed):
    prior = mostly_linear(1, 0)[:2]
    gram, products = judged(10, own=0.1, seed=seed)
    assert simplex_least_squares(gram.sum(axis=0), products.sum(axis=0)).max() == pytest.approx(1.0)
    assert simplex_least_squares(*doubted(gram, products, prior)).max() < 0.95
    assert simplex_least_squares(*doubted(*judged(1000, own=1.0, seed=seed), prior))[0] > 0.95


def test_without_a_linear_member_there_is_nothing_to_share_with():
    gram, products = judged(20, own=1.0, seed=0)
    found = doubted(gram, products, mostly_linear(0, 0))
    for part, plain in zip(found, (gram, products), strict=True):
        assert np.array_equal(part, plain.sum(axis=0))


NORMAL = np.random.default_rng(3).multivariate_normal(np.zeros(4), 0.5 + 0.5 * np.eye(4), size=100)


@pytest.mark.parametrize(
    ("X", "n_levels", "is_shared"),
    [
        (NORMAL, (0, 0, 0, 0), True),
        (np.exp(NORMAL), (0, 0, 0, 0), False),
        (np.column_stack([NORMAL[:, :3], NORMAL[:, 3] > 0]), (0, 0, 0, 2), False),
    ],
)
def test_only_normal_numbers_share_votes(X, n_levels, is_shared):
    networks = Networks(VAEACConfig(epochs=20)).fit(X, n_levels, seed=1)
    companions = Companions.learn(networks, X, seed=0)
    gram, products = judge_members(networks, companions, X, *PLAN, seed=0)
    alone = in_hundredths(simplex_least_squares(gram.sum(axis=0), products.sum(axis=0)))
    assert np.array_equal(learn_votes(networks, companions, X, *PLAN, seed=0), alone) != is_shared


def test_normal_columns_look_normal_with_gaps_and_in_any_units_and_skewed_ones_do_not():
    rng = np.random.default_rng(0)
    for n in (60, 499):
        X = np.array([1e-9, 1.0, 1e9, 0.0]) * rng.normal(size=(n, 4)) + 5.0
        X[rng.random(X.shape) < 0.1] = np.nan
        assert looks_normal(X)
        assert not looks_normal(rng.exponential(size=(n, 4)))


def test_functions_of_rows_see_dependence_that_means_do_not():
    X = rows(0.8)
    networks = Networks(VAEACConfig(epochs=1)).fit(X, [0, 0, 3, 3])
    phi = Features(networks.fitted_.columns, X, 0)
    rng = np.random.default_rng(0)
    shuffled = np.column_stack([rng.permutation(column) for column in X.T])
    apart = np.abs(phi(X).mean(axis=0) - phi(shuffled).mean(axis=0))
    assert apart[:8].max() < 1e-5  # columns have the same means
    assert apart[8:].max() > 0.02


def test_a_gap_counts_as_an_average():
    X = rows(0.5, n=200)
    networks = Networks(VAEACConfig(scales=("standard",), epochs=2)).fit(X, [0, 0, 3, 3], seed=0)
    phi, row = Features(networks.fitted_.columns, X, 0), X[:1].copy()
    whole = phi(row)[0, :8]
    np.testing.assert_allclose(whole[:2], (row[0, :2] - X[:, :2].mean(axis=0)) / X[:, :2].std(axis=0), rtol=1e-5)
    row[0, [1, 3]] = np.nan
    np.testing.assert_array_equal(phi(row)[0, :8], [whole[0], 0, *whole[2:5], 0, 0, 0])


def test_samples_are_shared_out_by_votes():
    assert share_out(np.array([0.5, 0.3, 0.2, 0.0]), 10) == [5, 3, 2, 0]
    assert share_out(np.array([0.97, 0.03, 0.0]), 8) == [7, 1, 0]
    assert share_out(np.array([0.4, 0.3, 0.3]), 2) == [1, 1, 0]
    for K in (1, 3, 16, 250):
        assert sum(share_out(np.array([0.31, 0.22, 0.05, 0.42]), K)) == K
