"""Hidden levels of many, drawn once more given what was drawn beside them."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.seeding import row_keys
from condshap.vaeac import Networks, VAEACConfig, levels_again
from condshap.vaeac.companions import Companions
from condshap.vaeac.mixture import Mixture

STATE, A, B, C = range(4)
N_STATES = 48


@pytest.fixture(scope="module")
def X():
    """A state, and three numbers that mostly follow from it and depend on each other."""
    rng, covariance = np.random.default_rng(0), np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    state, centre = (
        rng.integers(0, N_STATES, 1000),
        rng.multivariate_normal(np.zeros(3), 0.8 * covariance, size=N_STATES),
    )
    rows = np.column_stack([state, centre[state] + rng.multivariate_normal(np.zeros(3), 0.2 * covariance, size=1000)])
    rows[::40, A] = np.nan
    return rows


@pytest.fixture(scope="module")
def mixture(X):
    config = VAEACConfig(scales=("standard", "normal_scores"), companions=False)
    networks = Networks(config).fit(X, [N_STATES, 0, 0, 0], seed=0)
    return Mixture(networks, Companions.learn(networks, X, seed=0), np.array([0.9, 0.1]), None, None)


def draw(mixture, X, known, n=20, **options):
    options = {"fill_missing": False, "seed": 3, **options}
    return mixture.sample(X, np.atleast_2d(known), n, keys=row_keys(X), **options)


def effect(X, drawn):
    """Correlation of a number with the mean that rows of the state drawn beside it have of it."""
    means = np.array([np.nanmean(X[X[:, STATE] == state, B]) for state in range(N_STATES)])
    return np.corrcoef(means[drawn[..., STATE].ravel().astype(int)], drawn[..., B].ravel())[0, 1]


def test_a_hidden_state_goes_with_the_number_drawn_beside_it(X, mixture, monkeypatch):
    known = [False, True, False, False]
    assert effect(X, X[None, :, None]) > 0.85
    found = effect(X, draw(mixture, X[1:30], known))
    monkeypatch.setattr(levels_again, "_MANY_LEVELS", N_STATES)
    assert effect(X, draw(mixture, X[1:30], known)) + 0.15 < found


def test_only_hidden_levels_beside_other_hidden_features_change(X, mixture, monkeypatch):
    masks = np.array([[0, 0, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0]], dtype=bool)
    again = draw(mixture, X[:40], masks)
    monkeypatch.setattr(levels_again, "_MANY_LEVELS", N_STATES)
    once = draw(mixture, X[:40], masks)
    np.testing.assert_array_equal(again[..., [A, B, C]], once[..., [A, B, C]])
    np.testing.assert_array_equal(again[1:3], once[1:3])
    assert (again[[0, 3], ..., STATE] != once[[0, 3], ..., STATE]).mean() > 0.3
    blind = slice(18, 20)  # of 20 samples, by their vote
    np.testing.assert_array_equal(again[:, :, blind], once[:, :, blind])


def test_rows_and_coalitions_alone_have_the_same_draws(X, mixture):
    masks = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    together = draw(mixture, X[:40], masks)
    for i, mask in ((0, masks[0]), (7, masks[2]), (39, masks[1])):
        c = int(np.flatnonzero((masks == mask).all(axis=1))[0])
        np.testing.assert_array_equal(draw(mixture, X[i : i + 1], mask)[0, 0], together[c, i])


def test_coalitions_have_random_numbers_of_their_own(X, mixture):
    """Levels that one net of points decides would make errors of v(S) go with each other."""
    rows = np.repeat(X[1:2], 30, axis=0)
    keys = np.arange(30, dtype=np.uint64)
    masks = np.array([[0, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)
    drawn = mixture.sample(rows, masks, 20, keys=keys, seed=3, fill_missing=False)[..., STATE]
    ranks = [np.argsort(np.argsort(one[:, :18].ravel(), kind="stable")) for one in drawn]
    assert abs(np.corrcoef(*ranks)[0, 1]) < 0.15  # 2.8 standard errors of 540 independent pairs, were they independent


def test_single_points_are_drawn_again_too(X, mixture, monkeypatch):
    rows = np.repeat(X[1:60, None], 20, axis=1)
    options = {"keys": row_keys(X[1:60]), "seed": 3, "fill_missing": False}
    known = np.array([False, True, False, False])
    found = mixture.sample_each(rows, known, **options)
    assert np.array_equal(found[:, :, A], rows[:, :, A], equal_nan=True)
    monkeypatch.setattr(levels_again, "_MANY_LEVELS", N_STATES)
    assert effect(X, mixture.sample_each(rows, known, **options)) + 0.15 < effect(X, found)


def test_the_papers_networks_draw_everything_once(X, monkeypatch):
    networks = Networks.paper(epochs=2, n_restarts=1, restart_epochs=1).fit(X, [N_STATES, 0, 0, 0], seed=0)
    mixture = Mixture(networks, Companions.learn(networks, X, seed=0), np.array([1.0, 0.0]), None, None)
    again = draw(mixture, X[1:10], [False, True, False, False])
    monkeypatch.setattr(levels_again, "_MANY_LEVELS", N_STATES)
    np.testing.assert_array_equal(again, draw(mixture, X[1:10], [False, True, False, False]))
