"""Linear members and neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.seeding import row_keys
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.companions import Companions
from condshap.vaeac.ensemble import as_array
from condshap.vaeac.sampling.neighbours import Neighbours
from condshap.vaeac.sampling.tiles import Asked

RNG = np.random.default_rng(0)
COMMON = RNG.normal(size=(900, 1))
NUMBERS = COMMON + 0.5 * RNG.normal(size=(900, 2))
LEVELS = np.digitize(COMMON + 0.5 * RNG.normal(size=(900, 2)), [-0.5, 0.5]).astype(float)
X = np.concatenate([NUMBERS, LEVELS], axis=1)
KINDS = [0, 0, 3, 3]


@pytest.fixture(scope="module")
def companions():
    return Companions.learn(Networks(VAEACConfig(epochs=1)).fit(X, KINDS), X, seed=0)


def draws(companions, i, rows, masks, K=256, **options):
    return as_array(companions.draw(i, Asked(rows, np.array(masks), K, row_keys(rows), 1, **options)))


def test_they_are_named(companions):
    assert companions.names == ("linear, standard", "linear, normal_scores", "5 neighbours", "25 neighbours")


@pytest.mark.parametrize("i", range(4))
def test_known_columns_stay_and_hidden_ones_are_values_that_occur(companions, i):
    drawn = draws(companions, i, X[:7], [[True, False, True, False], [False] * 4])
    assert drawn.shape == (2, 7, 256, 4)
    assert np.array_equal(drawn[0, ..., 0], np.repeat(X[:7, 0, None], 256, axis=1))
    assert np.isin(drawn[..., 2:], [0, 1, 2]).all()
    assert (drawn[..., :2].min(axis=(0, 1, 2)) >= X[:, :2].min(axis=0)).all()
    assert (drawn[..., :2].max(axis=(0, 1, 2)) <= X[:, :2].max(axis=0)).all()


@pytest.mark.parametrize("i", range(4))
def test_a_row_is_drawn_alike_alone_and_among_others(companions, i):
    masks = [[True, False, True, False], [False, False, False, True]]
    together = draws(companions, i, X[:40], masks, 16)
    assert np.array_equal(draws(companions, i, X[5:6], masks, 16), together[:, 5:6])


@pytest.mark.parametrize("i", [0, 1])
def test_linear_members_have_the_means_of_rows_with_a_level(companions, i):
    """Means given one level, of about 300 rows: their standard error is 0.06, so 0.25 is never seen by chance."""
    for level in range(3):
        rows = X[X[:, 2] == level]
        drawn = draws(companions, i, rows[:1], [[False, False, True, False]], 2048)[0, 0]
        np.testing.assert_allclose(drawn[:, :2].mean(axis=0), rows[:, :2].mean(axis=0), atol=0.25)
        shares = [np.bincount(part[:, 3].astype(int), minlength=3) / len(part) for part in (drawn, rows)]
        np.testing.assert_allclose(shares[0], shares[1], atol=0.1)


@pytest.mark.parametrize("i", range(4))
def test_hidden_columns_depend_on_each_other(companions, i):
    drawn = draws(companions, i, X[:60], [[False] * 4], 64)[0].reshape(-1, 4)
    expected, found = np.corrcoef(X.T), np.corrcoef(drawn.T)
    np.testing.assert_allclose(found[0, 1], expected[0, 1], atol=0.08)
    if i < 2:  # linear probabilities that would leave [0, 1] are cut, which costs some dependence
        assert (found[2:] > 0.6 * expected[2:]).all()
    else:  # with nothing known every row is as near as any other
        np.testing.assert_allclose(found, expected, atol=0.08)


def test_neighbours_are_the_nearest_rows_and_all_that_tie_with_the_last():
    rows = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [2.0, 13.0], [50.0, 14.0]])
    near = Neighbours.of(rows, np.array([False, False]))
    row = np.array([[0.4, np.nan]])
    drawn = near.sample(3, Asked(row, np.array([[True, False]]), 8))[0, 0]
    assert sorted(np.unique(drawn[:, 1])) == [10.0, 11.0, 12.0, 13.0]
    assert np.bincount(drawn[:, 1].astype(int))[10:].tolist() == [2, 2, 2, 2]


def test_levels_that_differ_are_far_apart():
    rows = np.array([[0.0, 0.0], [1.0, 0.1], [0.0, 0.2], [1.0, 0.3]])
    near = Neighbours.of(rows, np.array([True, False]))
    row = np.array([[1.0, np.nan]])
    drawn = near.sample(1, Asked(row, np.array([[True, False]]), 4))[0, 0]
    assert set(drawn[:, 1]) == {0.1, 0.3}


def test_rows_that_were_held_out_do_not_lend(companions):
    left = companions.without(X, np.arange(100))
    assert len(left.neighbours.rows) == 800
    drawn = draws(left, 2, X[:5], [[True, True, False, False]], 5)
    assert not any((drawn[0, r, :, :2] != X[r, :2]).any() for r in range(5))
    assert left.networks.fitted_.columns.linear is not companions.networks.fitted_.columns.linear


def test_gaps_are_filled_where_asked_for(companions):
    rows = X[:3].copy()
    rows[1, [0, 2]] = np.nan
    for i in range(4):
        filled = draws(companions, i, rows, [[True] * 4], 8, fill_missing=True)
        kept = draws(companions, i, rows, [[True] * 4], 8)
        assert not np.isnan(filled).any()
        assert np.isnan(kept[0, 1, :, [0, 2]]).all()
        assert np.isin(filled[0, 1, :, 2], [0, 1, 2]).all()


def test_tables_without_complete_rows_have_no_neighbours():
    gappy = X[:60].copy()
    gappy[:, 1] = np.where(np.arange(60) < 50, np.nan, gappy[:, 1])
    found = Companions.learn(Networks(VAEACConfig(epochs=1)).fit(gappy, KINDS), gappy, seed=0)
    assert found.names == ("linear, standard", "linear, normal_scores")
