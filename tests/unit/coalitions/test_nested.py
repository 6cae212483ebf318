"""The sequence of pairs: nested, fair to all players and pairs of a class, and spread out."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from condshap.coalitions import all_coalitions, nested
from condshap.coalitions.nested import beginning, checkpoints, class_sizes, nested_plan, pair_sequence
from condshap.exceptions import CoalitionError


@pytest.mark.parametrize("n_players", [3, 4, 7, 8])
def test_sequence_ends_with_every_pair_once(n_players):
    n_pairs = 2 ** (n_players - 1) - 1
    half = pair_sequence(n_players, n_pairs, seed=3)
    both = np.concatenate([half, ~half])
    assert len(np.unique(both, axis=0)) == 2 * n_pairs
    assert (half.sum(axis=1) <= n_players / 2).all()


def test_shorter_sequences_are_beginnings_of_longer_ones():
    long = pair_sequence(15, 900, seed=1)
    for n in (1, 10, 77, 500):
        np.testing.assert_array_equal(pair_sequence(15, n, seed=1), long[:n])
    assert not np.array_equal(pair_sequence(15, 900, seed=2), long)


def test_plans_are_nested_and_ordered():
    plan, pairs = nested_plan(14, 600, seed=0)
    before: set[bytes] = set()
    for n in checkpoints(14, len(pairs)):
        some, positions = beginning(plan, pairs, n)
        np.testing.assert_array_equal(some.masks, plan.masks[positions])
        assert len(some.masks) == 2 * n + 2
        assert all(len(pair) == 2 for pair in some.pairs())
        now = {mask.tobytes() for mask in some.masks}
        assert before <= now
        before = now


def test_classes_follow_their_shares_and_fill_up():
    sizes = pair_sequence(16, 3000, seed=0).sum(axis=1)
    share = 1 / np.sqrt(np.arange(1, 9) * (16 - np.arange(1, 9)))
    share[-1] /= 2
    first = np.bincount(sizes[:50], minlength=9)[1:]
    np.testing.assert_allclose(first, 50 * share / share.sum(), atol=1.0)
    whole = np.bincount(sizes, minlength=9)[1:]
    assert (whole[:2] == [comb(16, 1), comb(16, 2)]).all()
    assert (whole <= class_sizes(16)[1:]).all()


def test_pairs_of_a_class_are_equally_likely():
    # 400 seeds, each pair of size 2 of 7 players expected 400 * n / 21 times; chi-square with 20 degrees of freedom stays
    # below 45.3 but for one set of seeds in a thousand
    pairs = list(combinations(range(7), 2))
    counts = np.zeros(len(pairs))
    for seed in range(400):
        half = pair_sequence(7, 14, seed=seed)
        for mask in half[half.sum(axis=1) == 2]:
            counts[pairs.index(tuple(np.flatnonzero(mask)))] += 1
    expected = counts.mean()
    variance_left = 1 - expected / 400  # without replacement
    assert ((counts - expected) ** 2).sum() / expected / variance_left < 45.3


def test_classes_that_are_too_large_to_list_are_drawn_without_repetition(monkeypatch):
    monkeypatch.setattr(nested, "_LISTED", 0)
    half = pair_sequence(8, 127, seed=0)
    assert len(np.unique(np.concatenate([half, ~half]), axis=0)) == 254


def fourth_powers(half):
    """Mean of (z'z_i)^4 over different pairs: how near they are to each other."""
    products = (2.0 * half - 1) @ (2.0 * half - 1).T
    return (products[np.triu_indices(len(half), 1)] ** 4).mean()


@pytest.mark.parametrize(("n_players", "n_pairs"), [(15, 45), (15, 300), (20, 100)])
def test_pairs_keep_apart(monkeypatch, n_players, n_pairs):
    def nearness():
        return [fourth_powers(pair_sequence(n_players, n_pairs, seed=seed)) for seed in range(5)]

    chosen = nearness()
    monkeypatch.setattr(nested, "_CANDIDATES", 1)
    monkeypatch.setattr(nested, "_NEW_CANDIDATES", 1)  # nothing to choose from: pairs at random
    assert max(chosen) < min(nearness())


def test_candidates_know_their_distance_to_all_pairs_so_far():
    sequence = 2.0 * pair_sequence(10, 60, seed=0) - 1
    candidates = nested._Candidates(10, nested._draw_class(10, 4, seed=1))
    for n in (0, 3, 4, 60):
        waiting = candidates.signs.copy()
        chosen = candidates.furthest(sequence[:n])
        everyone = np.concatenate([candidates.signs, [chosen]])
        direct = ((everyone @ sequence[:n].T) ** 4).sum(axis=1)
        np.testing.assert_array_equal(candidates.potentials, direct[:-1])
        assert direct[-1] == direct.min()
        assert len(everyone) - len(waiting) == (20 if n == 0 else 3)


def test_pairs_after_the_chosen_ones_are_what_is_left(monkeypatch):
    chosen = pair_sequence(8, 127, seed=0)
    monkeypatch.setattr(nested, "_CHOSEN", 50)
    half = pair_sequence(8, 127, seed=0)
    np.testing.assert_array_equal(half[:50], chosen[:50])
    assert not np.array_equal(half, chosen)
    assert len(np.unique(np.concatenate([half, ~half]), axis=0)) == 254


def test_inclusion_is_the_share_of_the_class_and_weights_sum_to_its_kernel():
    plan, pairs = nested_plan(11, 400, seed=0)
    exact = all_coalitions(11)
    some, _ = beginning(plan, pairs, 100)
    for size in range(1, 11):
        ours, theirs = some.sizes == size, exact.sizes == size
        assert some.inclusion[ours][0] == ours.sum() / theirs.sum()
        np.testing.assert_allclose(some.weights[ours].sum(), exact.weights[theirs].sum())


def test_cap_is_met_and_must_leave_room_for_an_error():
    assert len(nested_plan(12, 101, seed=0)[0].masks) == 100
    assert nested_plan(5, 10**6, seed=0)[0].is_exact
    with pytest.raises(CoalitionError, match=r"max_coalitions must be at least 62 to estimate the error .* got 61"):
        nested_plan(12, 61, seed=0)
