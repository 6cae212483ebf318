"""Rows of a node in the order of a predictor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import kernel

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int32]

SCAN_FACTOR = 16
"""Nodes with more than one row in this many are read off the sorted table; smaller ones are sorted by themselves."""


@kernel
def shell_sort(keys: Positions, rows: Positions, n: int) -> None:
    """Sort the first n `keys` and carry `rows` along, by insertion sorts with the gaps ..., 40, 13, 4, 1.

    Not stable: which row of a block of equal keys comes last follows from the gaps alone. R sorts in just this way, and
    exact ties between splits on nominal predictors are decided by it.
    """
    gap = 1
    while gap <= n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            key, row = keys[i], rows[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j], rows[j] = keys[j - gap], rows[j - gap]
                j -= gap
            keys[j], rows[j] = key, row
        gap //= 3


@kernel
def sort_rows(
    order: Positions, position: Positions, rows: Positions, inside: npt.NDArray[np.bool_], out: Positions
) -> None:
    """Write the node's `rows` to `out` in the order of one feature, ties in row order.

    Parameters
    ----------
    order, position : (N,) the feature's sort order and its inverse
    rows : (n,) rows of the node
    inside : (N,) True for the rows of the node
    out : (N + 1,) the first n entries are the result
    """
    n = len(rows)
    if n * SCAN_FACTOR < len(order):
        keys = np.empty(n, np.int32)
        for i in range(n):
            keys[i], out[i] = position[rows[i]], rows[i]
        shell_sort(keys, out, n)
        return
    filled = 0
    for row in order:
        out[filled] = row
        filled += inside[row]
