"""How many rows fit into memory: the one formula by which everything is cut into blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SHARED_BY = "CONDSHAP_GPU_PROCESSES"
"""Environment variable with the number of processes that share the GPU's memory."""
_COPIES = 5  # a block's rows exist about this often: samples, normals or donors, the model's table and its own copies


def rows_that_fit(n_bytes: int, n_features: int) -> int:
    """Rows of `n_features` numbers that fit into so many bytes with all their copies, at least 1.

    >>> rows_that_fit(2**20, 10)
    2259
    """
    return max(1, n_bytes // (8 * n_features * _COPIES + 64))


def own_share(n_bytes: int) -> int:
    """Bytes of a GPU's free memory that this process may use, if as many share it as `SHARED_BY` says."""
    told = os.environ.get(SHARED_BY, "1")
    return n_bytes // max(1, int(told) if told.isdecimal() else 1)


@contextmanager
def sharing_device(n_processes: int) -> Iterator[None]:
    """Let this process use one of so many shares of a GPU's memory, unless the environment says otherwise."""
    if SHARED_BY in os.environ:
        yield
        return
    os.environ[SHARED_BY] = str(n_processes)
    try:
        yield
    finally:
        del os.environ[SHARED_BY]
