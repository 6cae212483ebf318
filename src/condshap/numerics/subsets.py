"""Simple random samples without replacement, one per random word, without a loop over words."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from condshap.seeding import Words, generator
from condshap.types import Indices

_POOL_NUMBERS = 2**21
_MIN_ORDERS, _MAX_ORDERS = 16, 1024


@lru_cache(maxsize=2)
def _random_orders(n: int, seed: int) -> Indices:
    """Pool of random orders of 0, ..., n-1, shape (n_orders, n), read only."""
    n_orders = int(np.clip(_POOL_NUMBERS // n, _MIN_ORDERS, _MAX_ORDERS))
    rng = generator(seed, "orders")
    orders = rng.permuted(np.tile(np.arange(n, dtype=np.intp), (n_orders, 1)), axis=1)
    orders.flags.writeable = False
    return orders


def random_subsets(words: Words, n_samples: int, n: int, seed: int) -> Indices:
    """Choose `n_samples` of n positions for every word, shape (*words.shape, n_samples).

    A word picks one of a pool of random orders and where to start reading it, so every subset is a simple random sample
    and nothing depends on which other words are asked for.

    >>> random_subsets(np.array([7], dtype=np.uint64), 3, 5, seed=0).shape
    (1, 3)
    """
    orders = _random_orders(n, seed)
    which = (words % np.uint64(len(orders))).astype(np.intp)
    start = ((words >> np.uint64(32)) % np.uint64(n)).astype(np.intp)
    position = start[..., None] + np.arange(n_samples)
    np.subtract(position, n, out=position, where=position >= n)
    return np.asarray(orders[which[..., None], position])
