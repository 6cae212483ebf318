"""Flat trees on the CPU: a compiled loop that sorts blocks of rows down each tree.

A node splits the rows that came to it into those that go left and those that go right, without a branch to guess and
reading one column only. Most of the work is then at full speed of the processor, where a walk row by row waits for the
result of every single comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import entry_kernel, kernel
from condshap.trees.flat import N_CODES, Integers
from condshap.trees.links import finish
from condshap.trees.packed import NAN_LEFT, PackedTrees
from condshap.types import Outputs

Members: TypeAlias = npt.NDArray[np.uint16]
"""Positions of rows within a block."""

BLOCK = 32768
"""Rows at a time, at most 65536: a column fits into the second cache, and enough of them come to the deeper nodes."""

LEAST = 1024
"""Rows for a thread of its own."""

U = np.uint64  # positions without a sign: numba then spares the test for positions that count from the end


def predict_cpu(packed: PackedTrees, X: npt.NDArray[Any], n_threads: int = 1) -> Outputs:
    """Predictions of rows X (n, M), cast to the type of the thresholds; (n, O), or (n, 2) after a sigmoid.

    Trees are added in their own order and in the type of the base, as their libraries do with one job. Threads share the
    rows, so that their number changes nothing.
    """
    X = np.ascontiguousarray(X, dtype=packed.dtype)
    sums = np.tile(packed.base, (len(X), 1))
    starts = np.column_stack((packed.roots, packed.outputs))

    def add(some: slice) -> None:
        add_trees(X[some], packed.nodes, packed.left_codes, packed.values, starts, packed.depth, sums[some])

    _in_threads(add, len(X), n_threads)
    return finish(sums, packed.divisor, packed.link, packed.exponential)


def _in_threads(work: Callable[[slice], None], n_rows: int, n_threads: int) -> None:
    """Do the work for all rows, in pieces of at most a block, by as many threads as are worth it."""
    n_parts = max(1, min(n_threads, n_rows // LEAST))
    n_pieces = n_parts * -(-n_rows // (n_parts * BLOCK))
    ends = np.linspace(0, n_rows, n_pieces + 1).astype(int).tolist()
    pieces = [slice(low, high) for low, high in pairwise(ends)]
    if n_parts == 1:
        for piece in pieces:  # Ctrl-C waits for compiled code to return
            work(piece)
        return
    pool = ThreadPoolExecutor(n_parts)
    try:
        list(pool.map(work, pieces))  # a list, so that errors come out
    finally:
        pool.shutdown(cancel_futures=True)


@entry_kernel
def add_trees(
    X: npt.NDArray[Any],
    nodes: npt.NDArray[Any],
    left_codes: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    starts: Integers,
    depth: int,
    sums: npt.NDArray[Any],
) -> None:
    """Add what the trees say about rows X (n, M) to sums (n, O), in place; starts (T, 2): root and output of each tree."""
    size = min(BLOCK, X.shape[0])
    columns = np.empty((X.shape[1], size), dtype=X.dtype)
    members, spare = np.empty(size, dtype=np.uint16), np.empty(size, dtype=np.uint16)
    waiting = np.empty((depth + 1, 3), dtype=np.int64)
    for start in range(0, X.shape[0], BLOCK):
        rows, block = X[start : start + BLOCK], sums[start : start + BLOCK]
        transpose(rows, columns)
        for root, output in starts:
            for row in range(rows.shape[0]):
                members[row] = row
            add_tree(columns, nodes, left_codes, values, root, output, members, spare, waiting, block)


@kernel
def transpose(rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> None:
    """Write rows (b, M) into the first b places of columns (M, size)."""
    for row in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            columns[j, row] = rows[row, j]


@kernel
def add_tree(
    columns: npt.NDArray[Any],
    nodes: npt.NDArray[Any],
    left_codes: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    root: int,
    first: int,
    members: Members,
    spare: Members,
    waiting: npt.NDArray[np.int64],
    sums: npt.NDArray[Any],
) -> None:
    """Add the leaf values of one tree to sums (b, O) from column `first` on.

    Members (b,) are sorted such that those of a node lie side by side: it goes down to the left, and leaves the right
    child (its name, from and to which member) on the stack `waiting`.
    """
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = root, 0, sums.shape[0]
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        name, low, high = waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2]
        while name >= 0 and low < high:
            node = nodes[U(name)]
            column = columns[U(node.feature)]
            if node.rule >= 0:
                middle = split_codes(column, left_codes[U(node.rule)], members, low, high, spare)
            else:
                middle = split(column, node, members, low, high, spare)
            waiting[n_waiting, 0], waiting[n_waiting, 1], waiting[n_waiting, 2] = node.right, middle, high
            n_waiting += middle < high
            name, high = np.int64(node.left), middle
        if low < high:
            for k in range(values.shape[1]):
                add_value(members, low, high, values[~name, k], first + k, sums)


@kernel
def split(column: npt.NDArray[Any], node: Any, members: Members, low: int, high: int, spare: Members) -> np.int64:
    """Sort members low to high: first those that go left; returns where the others begin. Keeps the order of both.

    The two loops differ for NaN only. Everything stays within one of them: a test inside would cost a fifth of the speed.
    """
    n_left, n_right, threshold = U(low), U(0), node.threshold
    if node.rule == NAN_LEFT:
        for i in range(U(low), U(high)):
            member = members[i]
            right = U(column[U(member)] > threshold)
            members[n_left] = member
            spare[n_right] = member
            n_left += U(1) - right
            n_right += right
    else:
        for i in range(U(low), U(high)):
            member = members[i]
            right = U(not (column[U(member)] <= threshold))
            members[n_left] = member
            spare[n_right] = member
            n_left += U(1) - right
            n_right += right
    for i in range(n_right):
        members[n_left + i] = spare[i]
    return np.int64(n_left)


@kernel
def split_codes(
    column: npt.NDArray[Any], left_codes: npt.NDArray[np.bool_], members: Members, low: int, high: int, spare: Members
) -> np.int64:
    """The same for a column of codes of categories, by which of them (N_CODES,) go left."""
    n_left, n_right = U(low), U(0)
    for i in range(U(low), U(high)):
        member = members[i]
        value = column[U(member)]
        is_code = (value >= 0) & (value < N_CODES - 1)  # whatever the number is, nothing beyond the set is read
        right = U(not left_codes[U(value if is_code else N_CODES - 1)])
        members[n_left] = member
        spare[n_right] = member
        n_left += U(1) - right
        n_right += right
    for i in range(n_right):
        members[n_left + i] = spare[i]
    return np.int64(n_left)


@kernel
def add_value(members: Members, low: int, high: int, value: float, k: int, sums: npt.NDArray[Any]) -> None:
    """Add a value to column k of sums (b, O) for the members low to high."""
    for i in range(U(low), U(high)):
        sums[U(members[i]), k] += value
