"""Random streams as a pure function of (seed, stage, mask, row), never of the order of calls.

A stream is named by 64-bit words that are hashed together. Rows enter by a hash of their content and coalitions by
a hash of their membership, so numbers depend neither on blocks, nor on jobs, nor on which other rows are explained.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from condshap.types import Floats, Masks, RowKeys, Rows

Words = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _avalanche(words: Words) -> Words:
    """Mix the bits of every word (the SplitMix64 finaliser)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_words(*words: npt.ArrayLike) -> Words:
    """Hash words, broadcast against each other, into one array of words.

    >>> hash_words(1, [2, 3]).shape
    (2,)
    >>> bool(hash_words(1, 2)[()] == hash_words(2, 1)[()])
    False
    """
    state = np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            state = _avalanche((state ^ np.asarray(word, dtype=np.uint64)) + _GOLDEN)
    return state if any(np.ndim(word) for word in words) else state.reshape(())


def stage_word(stage: str) -> np.uint64:
    """Name of a stage as a word, the same on every machine."""
    digest = hashlib.blake2b(stage.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def derive_seed(seed: int, stage: str) -> int:
    """Seed of a stage, far from the seeds of all other stages."""
    low, high = int(seed) % 2**64, int(seed) >> 64
    words = [low] if high == 0 else [low, high % 2**64]
    return int(hash_words(*(np.uint64(word) for word in words), stage_word(stage)))


def generator(seed: int, stage: str) -> np.random.Generator:
    """NumPy generator for work that is done once, such as drawing coalitions or nets."""
    return np.random.Generator(np.random.Philox(key=derive_seed(seed, stage)))


def row_keys(X: Rows, units: Floats | None = None) -> RowKeys:
    """Hash the content of rows (n, M) into keys (n,); equal rows have equal keys.

    With `units` (M,), sizes of the columns' training values, the content is what a row is in these units, in single
    precision: another unit of a column, kilogram in place of gram, then names the same streams. Rows that agree to seven
    digits share theirs.
    """
    if units is not None:
        with np.errstate(over="ignore"):
            X = (X / units).astype(np.float32).astype(np.float64)
    canonical = np.where(np.isnan(X), np.nan, X) + 0.0  # one NaN, and -0.0 becomes 0.0
    words = canonical.view(np.uint64)
    keys = np.zeros(len(X), dtype=np.uint64)
    for j in range(X.shape[1]):
        keys = hash_words(keys, words[:, j])
    return keys


def column_sizes(X: Rows, is_level: Masks | None = None) -> Floats:
    """Sizes (M,) of columns (N, M): largest absolute values, and 1 for codes of levels or nothing but zeros."""
    sizes = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    return np.where((sizes > 0) & (True if is_level is None else ~is_level), sizes, 1.0)


def mask_keys(masks: Masks) -> Words:
    """Hash coalitions (C, M) into keys (C,)."""
    packed = np.packbits(masks, axis=1)
    padded = np.zeros((len(masks), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    words = padded.view("<u8")
    keys = np.full(len(masks), masks.shape[1], dtype=np.uint64)
    for j in range(words.shape[1]):
        keys = hash_words(keys, words[:, j])
    return keys


def stream_words(seed: int, stage: str, masks: Masks, keys: RowKeys) -> Words:
    """One word per (coalition, row), shape (C, R): the name of that pair's random stream."""
    base = np.uint64(derive_seed(seed, stage))
    return hash_words(base, mask_keys(masks)[:, None], np.asarray(keys, dtype=np.uint64)[None, :])


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Random streams of some rows at one stage; a coalition picks one of each row's.

    Attributes
    ----------
    keys : (R,) names of the rows, see `row_keys`
    seed, stage : the user's seed, and what the numbers are for
    """

    keys: RowKeys
    seed: int
    stage: str

    @property
    def common_seed(self) -> int:
        """Seed of what all rows and coalitions share, such as nets."""
        return derive_seed(self.seed, self.stage)

    def words(self, masks: Masks) -> Words:
        """One word per pair of a coalition (C, M) and a row, (C, R)."""
        return stream_words(self.seed, self.stage, masks, self.keys)
