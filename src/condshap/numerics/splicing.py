"""Drawn rows, or donors and known columns -> rows for the model, each different row once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.seeding import row_keys
from condshap.types import Floats, Indices, Masks, Rows

_WORTH_IT = 0.9  # share of different rows above which all are evaluated
_MARKS = 16  # possible codes for each that is there


@dataclass(frozen=True, slots=True)
class Spliced:
    """Rows (n, M) to predict; `positions` (C*R*K,) tells which of them each sample is, None if they are in order."""

    rows: Rows
    positions: Indices | None
    shape: tuple[int, ...]


def splice_drawn(rows: Floats, may_repeat: Masks | None) -> Spliced:
    """Drawn rows (C, R, K, M), each different one of the coalitions that `may_repeat` (C,) names once.

    Equal rows are found by a hash of 64 bits, among all coalitions and explained rows at hand.
    """
    shape, flat = rows.shape[:3], rows.reshape(-1, rows.shape[3])
    if may_repeat is None or not may_repeat.any():
        return Spliced(flat, None, shape)
    some = np.repeat(may_repeat, shape[1] * shape[2])
    candidates = flat if may_repeat.all() else flat[some]
    _, first, which = np.unique(row_keys(candidates), return_index=True, return_inverse=True)
    if len(first) > _WORTH_IT * len(candidates):
        return Spliced(flat, None, shape)
    others = flat[~some]
    positions = np.empty(len(flat), dtype=np.intp)
    positions[~some] = np.arange(len(others))
    positions[some] = len(others) + which
    return Spliced(np.concatenate([others, candidates[first]]), positions, shape)


def splice_donors(
    indices: Indices, table: Rows, weights: Floats | None, X: Rows, masks: Masks, *, may_repeat: bool
) -> Spliced:
    """Put the known columns of X (R, M) into the donors' rows.

    Samples of the same coalition with equal known columns and the same donor are one row; samples of weight zero share
    the row of another sample, so that they cost nothing.
    """
    padded = weights is not None and bool((weights == 0).any())
    parts: list[Rows] = []
    positions: list[Indices | None] = []
    for c, mask in enumerate(masks):
        known = np.flatnonzero(mask)
        _, group = np.unique(row_keys(X[:, known]), return_inverse=True)
        if padded or may_repeat or group.max() + 1 < len(X):
            used = None if weights is None else weights[c] > 0
            rows, position = _distinct(indices[c], table, X, known, group, used)
        else:
            rows, position = _everyone(indices[c], table, X, known), None
        parts.append(rows)
        positions.append(position)
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return Spliced(joined, _join_positions(positions, parts), indices.shape)


def _join_positions(positions: list[Indices | None], parts: list[Rows]) -> Indices | None:
    """Positions of all samples among the joined rows of all parts, None if they are in order."""
    if all(position is None for position in positions):
        return None
    starts = np.cumsum([0, *(len(rows) for rows in parts)])
    return np.concatenate(
        [
            np.arange(start, end) if position is None else position + start
            for position, start, end in zip(positions, starts, starts[1:], strict=False)
        ]
    )


def _everyone(indices: Indices, table: Rows, X: Rows, known: Indices) -> Rows:
    rows = np.take(table, indices, axis=0)
    rows[:, :, known] = X[:, None, known]
    return rows.reshape(-1, X.shape[1])


def _distinct(
    indices: Indices, table: Rows, X: Rows, known: Indices, group: Indices, used: Masks | None
) -> tuple[Rows, Indices | None]:
    """Different rows of one coalition, and for each of the R*K samples which of them it is, None if they are in order."""
    codes = (group[:, None] * len(table) + indices).ravel()
    if used is not None:
        codes = np.where(used.ravel(), codes, codes[np.argmax(used)])
    distinct, position = _sorted_codes(codes, (int(group.max()) + 1) * len(table))
    if len(distinct) == codes.size:
        return _everyone(indices, table, X, known), None
    _, representative = np.unique(group, return_index=True)
    rows = table[distinct % len(table)]
    rows[:, known] = X[representative[distinct // len(table)][:, None], known]
    return rows, position


def _sorted_codes(codes: Indices, limit: int) -> tuple[Indices, Indices]:
    """Different codes in ascending order, and for each of the codes which of them it is; all are below `limit`.

    A mark for every possible code is several times faster than sorting, as long as there are not far more possible ones.
    """
    if limit > _MARKS * codes.size:
        distinct, position = np.unique(codes, return_inverse=True)
        return distinct, position
    is_there = np.zeros(limit, dtype=bool)
    is_there[codes] = True
    distinct = np.flatnonzero(is_there)
    place = np.empty(limit, dtype=np.intp)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[codes]
