"""Streams depend on what they are for and on nothing else."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from condshap.seeding import derive_seed, generator, hash_words, mask_keys, row_keys, stream_words

RNG = np.random.default_rng(0)


def reference_hash(*words: int) -> int:
    """SplitMix64 in Python's integers."""
    state = 0
    for word in words:
        state = ((state ^ word) + 0x9E3779B97F4A7C15) % 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        state ^= state >> 31
    return state


def test_hash_is_splitmix64_on_every_machine():
    assert reference_hash(0) == 0xE220A8397B1DCDAF  # first output of SplitMix64 with seed 0, as published
    for words in ((0,), (1, 2), (2**64 - 1, 12345, 7)):
        assert int(hash_words(*(np.uint64(word) for word in words))) == reference_hash(*words)
    stage = int.from_bytes(hashlib.blake2b(b"gaussian", digest_size=8).digest(), "little")
    assert derive_seed(11, "gaussian") == reference_hash(11, stage)


def test_hash_depends_on_every_word_and_their_order():
    words = [int(hash_words(*w)) for w in ((1, 2), (2, 1), (1,), (1, 2, 0), (0, 1, 2), (1, 3))]
    assert len(set(words)) == len(words)


def test_hash_broadcasts_and_agrees_with_single_calls():
    table = hash_words(7, np.arange(3)[:, None], np.arange(4)[None, :])
    assert table.shape == (3, 4)
    assert int(table[2, 3]) == int(hash_words(7, 2, 3))


def test_hashed_words_spread_evenly():
    buckets = np.bincount((hash_words(np.arange(100_000)) % np.uint64(10)).astype(int))
    chi2 = ((buckets - 10_000) ** 2 / 10_000).sum()
    assert chi2 < 27.9  # 0.1 % level of chi-squared with 9 degrees of freedom


def test_row_keys_depend_on_content_and_not_on_position():
    X = RNG.normal(size=(50, 4))
    X[3, 1] = np.nan
    keys = row_keys(X)
    order = RNG.permutation(50)
    np.testing.assert_array_equal(row_keys(X[order]), keys[order])
    np.testing.assert_array_equal(row_keys(X[7:8]), keys[7:8])
    assert len(set(keys.tolist())) == 50
    assert len({*row_keys(X[:, ::-1].copy()).tolist(), *keys.tolist()}) == 100  # columns matter


def test_row_keys_know_one_nan_and_one_zero():
    other_nan = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    keys = row_keys(np.array([[np.nan, 0.0], [other_nan, -0.0], [-np.nan, 0.0]]))
    assert len(set(keys.tolist())) == 1


def test_row_keys_take_any_memory_layout():
    X = RNG.normal(size=(6, 3))
    for view in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], np.hstack([X, X])[:, :3]):
        np.testing.assert_array_equal(row_keys(view), row_keys(X))


@pytest.mark.parametrize("n_players", [1, 7, 8, 9, 64, 65, 130])
def test_mask_keys_tell_coalitions_apart(n_players):
    masks = np.unique(RNG.random((200, n_players)) < 0.5, axis=0)
    assert len(set(mask_keys(masks).tolist())) == len(masks)


def test_mask_keys_depend_on_the_number_of_players():
    assert mask_keys(np.array([[True, False]])) != mask_keys(np.array([[True, False, False]]))


def test_streams_do_not_depend_on_what_else_is_asked_for():
    masks, keys = RNG.random((5, 6)) < 0.5, row_keys(RNG.normal(size=(4, 6)))
    words = stream_words(3, "copula", masks, keys)
    assert words.shape == (5, 4)
    np.testing.assert_array_equal(stream_words(3, "copula", masks[2:3], keys[1:3]), words[2:3, 1:3])
    for other in (stream_words(4, "copula", masks, keys), stream_words(3, "gaussian", masks, keys)):
        assert not (other == words).any()


def test_generators_are_the_same_for_the_same_name_only():
    assert generator(1, "a").random() == generator(1, "a").random()
    assert len({generator(s, n).random() for s in (0, 1, 2) for n in ("a", "b")}) == 6


def test_seeds_of_any_size_are_different_seeds():
    seeds = [derive_seed(seed, "s") for seed in (0, 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**128, np.int64(5))]
    assert len(set(seeds)) == len(seeds)
    assert derive_seed(np.int64(5), "s") == derive_seed(5, "s")
