"""Rows, what is certain about columns -> players that get exactly nothing, and the values of the others.

A column that is constant in training, in a row with that constant, changes neither a prediction nor what is known of other
columns. Nor does a column that the model never reads, where approaches take all columns for independent, or where setting it
moves no column that the model reads. Noise of v(S), or an approach that counts known columns, must not give them a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from condshap.models.predictor import Predictor
from condshap.models.recognise import is_certainly_linear, traced_columns
from condshap.numerics.additive import AdditiveFunction, AffineFunction
from condshap.numerics.chains import Chain
from condshap.schema import FeatureSchema
from condshap.solvers import ShapleyValues
from condshap.types import Floats, Indices, Masks, Rows
from condshap.values.assignments import Part
from condshap.values.table import ValueTable


def find_constants(rows: Rows) -> Floats:
    """Constants (M,) of columns of training rows (N, M), NaN where there is none."""
    return np.where((rows == rows[:1]).all(axis=0), rows[0], np.nan)


def find_unread(
    predictor: Predictor,
    schema: FeatureSchema,
    function: AdditiveFunction | None,
    parts: Sequence[Part],
    chain: Chain | None = None,
) -> Masks:
    """Features (M,) that the model certainly never reads, and that move none that it reads, for the approaches."""
    if all(part.can.ignores_dependence for part in parts):
        return _unread(predictor, schema, function)
    if chain is not None:
        return _without_effects(_unread(predictor, schema, function), chain)
    return np.zeros(len(schema), dtype=bool)


def _without_effects(unread: Masks, chain: Chain) -> Masks:
    """Those of the `unread` features (M,) that move only such ones: later components, and their own if not confounded."""
    found = np.zeros_like(unread)
    for component, is_confounded in zip(chain.components[::-1], chain.confounded[::-1], strict=True):
        is_read = bool((component & ~unread).any())
        if is_confounded or not is_read:
            found |= component & unread
        if is_read:
            break
    return found


def _unread(predictor: Predictor, schema: FeatureSchema, function: AdditiveFunction | None) -> Masks:
    nothing = np.zeros(len(schema), dtype=bool)
    if predictor.trees is not None:
        return _unread_by_trees(predictor, schema)
    if isinstance(function, AffineFunction) and is_certainly_linear(predictor, schema):
        levels = np.array([own is None or not (own != own[:1]).any() for own in function.levels])
        return np.asarray(~np.asarray(function.slopes.any(axis=1)) & levels)
    return nothing


def _unread_by_trees(predictor: Predictor, schema: FeatureSchema) -> Masks:
    """Features (M,) at whose columns no tree looks; all levels or none of them, because their columns are not told apart."""
    assert predictor.trees is not None
    columns = traced_columns(predictor, schema)
    if columns is None:
        return np.zeros(len(schema), dtype=bool)
    read = {columns[c] for c in np.unique(predictor.trees.nodes["feature"]).tolist()}
    return np.array([(j if one.levels is None else -1) not in read for j, one in enumerate(schema.features)])


def find_null_players(rows: Rows, constants: Floats, unread: Masks, membership: Masks) -> Masks:
    """Players (R, P) that get nothing in rows (R, M); `membership` (P, M) has their features.

    Where that would be all of them there is none: then a given base value is all that there is to explain.
    """
    unable = (rows == constants) | unread
    is_null = np.stack([unable[:, features].all(axis=1) for features in membership], axis=1)
    return np.asarray(is_null & ~is_null.all(axis=1, keepdims=True))


def even_out(table: ValueTable, is_null: Masks) -> ValueTable:
    """The table (C, R, O) with one value for coalitions that differ by null players (R, P) only: the mean.

    Their errors are kept as those of single estimates: as if they were independent, which the solver takes them for, the
    mean over several is then counted as often as it is used. Coalitions that amount to the empty or the grand one have
    its value, which is exact.
    """
    if not is_null.any():
        return table
    values, errors = table.values.copy(), table.std_errors.copy()
    for pattern in np.unique(is_null, axis=0):
        rows = np.flatnonzero((is_null == pattern).all(axis=1))
        members, counts = _same_coalitions(table.coalitions & ~pattern)
        mean, variance = (_means(part[:, rows], members, counts) for part in (values, errors**2))
        for group, known in ((members[:, 0] == 0, 0), (members[:, -1] == len(values) - 1, -1)):
            mean[group], variance[group] = values[known, rows], 0.0
        where = np.empty(len(values), dtype=np.intp)
        where[members] = np.arange(len(members))[:, None]
        values[:, rows], errors[:, rows] = mean[where], np.sqrt(variance)[where]
    return replace(table, values=values, std_errors=errors)


def _same_coalitions(masks: Masks) -> tuple[Indices, Indices]:
    """Positions (G, n) of equal coalitions (C, P), each group filled up with its last one, and sizes (G,) of groups."""
    _, which, counts = np.unique(masks, axis=0, return_inverse=True, return_counts=True)
    ordered, first = np.argsort(which.ravel(), kind="stable"), np.cumsum(counts) - counts
    places = np.minimum(np.arange(counts.max()), counts[:, None] - 1)
    return ordered[first[:, None] + places], counts


def _means(part: Floats, members: Indices, counts: Indices) -> Floats:
    """Means (G, r, O) of a part of the table (C, r, O) over groups, one member after the other: bits are each row's own."""
    total = part[members[:, 0]]
    for i in range(1, members.shape[1]):
        total[counts > i] += part[members[counts > i, i]]
    return np.asarray(total / counts[:, None, None])


def settle(solved: ShapleyValues, is_null: Masks, components: Sequence[Sequence[int]] = ()) -> ShapleyValues:
    """Shapley values (R, P, O) in which null players (R, P) have exactly 0, without error.

    What noise or missing coalitions gave them goes to the others in equal parts, so that sums stay: those of `components`
    of players where these are solved one after the other. A component of null players only makes no step.
    """
    if not is_null.any():
        return solved
    values, errors = solved.values.copy(), np.where(is_null[..., None], 0.0, solved.std_errors)
    for component in map(list, components or [range(is_null.shape[1])]):
        for row in np.flatnonzero(is_null[:, component].any(axis=1)):
            null, others = (np.array(component)[is_null[row, component] == one] for one in (True, False))
            if len(others):
                values[row, others] += values[row, null].sum(axis=0) / len(others)
            values[row, null] = 0.0
    return ShapleyValues(values, errors)
