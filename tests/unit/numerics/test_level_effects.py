"""Many levels as a number: learned from other rows, none from noise, quick."""

from __future__ import annotations

import time

import numpy as np
import pytest

from condshap.numerics.level_effects import OTHER, learn_effects
from condshap.numerics.score_columns import learn_scores, score_rows

L = 30


def table_of(n, strength=0.8, n_levels=L, n_numbers=2, seed=0):
    """Levels, and numbers around means of theirs."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, size=n)
    codes[:n_levels] = np.arange(n_levels)
    means = np.sqrt(strength) * rng.normal(size=(n_levels, n_numbers))
    numbers = means[codes] + np.sqrt(1 - strength) * rng.normal(size=(n, n_numbers))
    return np.column_stack([codes, numbers])


def groups_of(n, n_compared):
    at = np.arange(n)
    return np.where(at < n_compared, at % 2, OTHER)


def learned(X, groups, n_levels=L, columns=None):
    levels = [n_levels] + [0] * (X.shape[1] - 1)
    return learn_effects(X, np.arange(len(X)), groups, levels, columns or learn_scores(X, levels))


def test_rows_of_a_half_do_not_touch_its_own_effects():
    X, groups = table_of(600), groups_of(600, 400)
    columns, own = learn_scores(X, [L, 0, 0]), groups == 0
    changed = X.copy()
    changed[own, 1:] = np.random.default_rng(1).permutation(X[own, 1:])
    changed[own, 0] = np.random.default_rng(2).permutation(X[own, 0])
    before, after = (
        {one.target: one.effects for one in learned(table, groups, columns=columns)} for table in (X, changed)
    )
    for target in set(before) & set(after):
        np.testing.assert_array_equal(before[target][0], after[target][0])
        assert not np.array_equal(before[target][1], after[target][1])


def test_each_row_and_its_draws_are_scored_by_the_effects_of_its_half():
    X, halves = table_of(400), np.arange(400) % 2
    (one, *_) = learned(X, halves)
    expected = one.effects[halves, X[:, 0].astype(int)]
    draws = np.repeat(X[:, None], 3, axis=1)
    np.testing.assert_array_equal(score_rows([one], X, halves=halves)[:, 0], expected)
    np.testing.assert_array_equal(
        score_rows([one], draws, halves=halves)[..., 0], np.repeat(expected[:, None], 3, axis=1)
    )


def test_effects_have_mean_0_and_variance_1_and_follow_the_means():
    X, groups = table_of(5000), groups_of(5000, 1000)
    found = learned(X, groups)
    assert {one.target for one in found} == {1, 2}
    for one in found:
        own = one.effects[:, X[:, 0].astype(int)]
        np.testing.assert_allclose(own.mean(axis=1), 0, atol=0.02)
        np.testing.assert_allclose(own.std(axis=1), 1, atol=0.02)
        assert np.corrcoef(own[0], X[:, one.target])[0, 1] == pytest.approx(np.sqrt(0.8), abs=0.08)


def test_effects_of_few_rows_count_little():
    codes = np.r_[np.repeat(np.arange(15), 40), np.repeat(np.arange(15, L), 2)]
    numbers = np.where(codes % 2, 1.0, -1.0) + 0.1 * np.random.default_rng(0).normal(size=len(codes))
    X = np.random.default_rng(1).permutation(np.column_stack([codes, numbers]))
    (one,) = learned(X, np.arange(len(X)) % 2)
    effects = np.abs(one.effects)
    assert effects[:, 15:].max() < effects[:, :15].min()
    assert effects[:, 15:].mean() < effects[:, :15].mean() / 3


def test_features_with_few_rows_of_each_level_are_left_out():
    # means of few rows: trees and neighbours on such tables were flagged in half of the fits
    assert learned(table_of(150), groups_of(150, 150)) == []
    assert learned(table_of(300), groups_of(300, 300))


def test_noise_gives_no_columns():
    for n, n_compared in ((400, 400), (3000, 1000)):
        for seed in range(20):
            assert learned(table_of(n, strength=0, seed=seed), groups_of(n, n_compared)) == []


def test_a_year_that_every_level_has_once_gives_none():
    # means of the other half are as much too low as those of the own half are too high
    year = np.tile(np.arange(16.0), L)
    X = np.random.default_rng(0).permutation(np.column_stack([np.repeat(np.arange(L), 16), year]))
    assert learned(X, np.arange(len(X)) % 2) == []


def test_the_three_strongest_numbers_are_taken():
    X = table_of(2000, n_numbers=6)
    X[:, 4:] += 1.2 * np.random.default_rng(1).normal(size=(2000, 3))
    assert {one.target for one in learned(X, groups_of(2000, 1000))} == {1, 2, 3}


def test_twelve_levels_and_tables_without_numbers_have_none():
    assert learned(table_of(600, n_levels=12), groups_of(600, 600), n_levels=12) == []
    assert learned(table_of(600)[:, :1], groups_of(600, 600)) == []
    assert learned(table_of(600, n_levels=13), groups_of(600, 600), n_levels=13)


def test_gaps_stay_gaps_and_count_for_nothing():
    X, groups = table_of(2000), groups_of(2000, 1000)
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    X[X[:, 0] == 3, 1:] = np.nan  # a level without any number
    found = learned(X, groups)
    assert {one.target for one in found} == {1, 2}
    scores = score_rows(found, X[:1000], halves=groups[:1000])
    np.testing.assert_array_equal(np.isnan(scores), np.repeat(np.isnan(X[:1000, :1]), 2, axis=1))


def test_a_hundred_thousand_rows_take_less_than_a_second():
    X, levels = table_of(100_000, n_levels=120, n_numbers=10), [120] + [0] * 10
    columns = learn_scores(X, levels)
    start = time.process_time()
    assert len(learned(X, groups_of(len(X), 1000), n_levels=120, columns=columns)) == 3
    assert time.process_time() - start < 1
