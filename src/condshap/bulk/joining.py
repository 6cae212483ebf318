"""Explanations of consecutive rows -> one explanation of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from condshap.explanation import Explanation, Provenance
from condshap.tables.joining import join_tables
from condshap.types import Floats
from condshap.values.table import ValueTable

_BY_ROW = ("values", "base_values", "predictions", "std_errors", "model_errors")


def join(explanations: Sequence[Explanation]) -> Explanation:
    """Join explanations of the same players by the same explainer, in order."""
    if len(explanations) == 1:
        return explanations[0]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in explanations]) for name in _BY_ROW}
    return replace(
        explanations[0],
        **arrays,
        value_table=_join_tables([one.value_table for one in explanations]),
        data=join_tables([one.data for one in explanations]),
        provenance=_join_provenance([one.provenance for one in explanations]),
    )


def _join_tables(tables: Sequence[ValueTable]) -> Any:
    """Value table of all rows; with ``n_coalitions="auto"`` some have coalitions that others did without, NaN for these."""
    if any(table is None for table in tables):
        return None
    largest = max((table.coalitions for table in tables), key=len)
    masks = {mask.tobytes(): mask for mask in largest}
    for table in tables:
        masks |= {mask.tobytes(): mask for mask in table.coalitions if mask.tobytes() not in masks}
    order = sorted(masks, key=lambda text: int(masks[text].sum())) if len(masks) > len(largest) else list(masks)
    values, errors = (
        np.concatenate([_placed(getattr(one, name), one, order) for one in tables], axis=1)
        for name in ("values", "std_errors")
    )
    coalitions = np.array([masks[text] for text in order])
    return ValueTable(coalitions, values, errors, sum(table.n_evaluations for table in tables))


def _placed(values: Floats, table: ValueTable, order: Sequence[bytes]) -> Floats:
    """Lines (C, r) or (C, r, O) of a table in the order of others, NaN for coalitions that it lacks."""
    if len(order) == len(table.coalitions):
        return values
    place = {text: i for i, text in enumerate(order)}
    placed = np.full((len(order), *values.shape[1:]), np.nan)
    placed[[place[mask.tobytes()] for mask in table.coalitions]] = values
    return placed


def _join_provenance(all_about: Sequence[Provenance]) -> Provenance:
    first = max(all_about, key=lambda about: about.n_coalitions)
    seconds = {**first.seconds, "explain": sum(about.seconds.get("explain", 0.0) for about in all_about)}
    reached = [about.reached for about in all_about if about.reached is not None]
    steps = [about.n_iterations for about in all_about if about.n_iterations is not None]
    return replace(
        first,
        seconds=seconds,
        n_repaired=sum(about.n_repaired for about in all_about),
        warnings=tuple(dict.fromkeys(text for about in all_about for text in about.warnings)),
        reached=max(reached, default=None),
        n_iterations=max(steps, default=None),
    )
