"""How many rows fit into memory: the one formula by which everything is cut into blocks."""

from __future__ import annotations

_COPIES = 5  # a block's rows exist about this often: samples, normals or donors, the model's table and its own copies


def rows_that_fit(n_bytes: int, n_features: int) -> int:
    """Rows of `n_features` numbers that fit into so many bytes with all their copies, at least 1.

    >>> rows_that_fit(2**20, 10)
    2259
    """
    return max(1, n_bytes // (8 * n_features * _COPIES + 64))
