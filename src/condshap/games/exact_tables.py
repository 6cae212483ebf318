"""Explanation -> v(S) of all 2^P coalitions as columns, or what stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from condshap.exceptions import CoalitionError
from condshap.types import Floats, Masks

if TYPE_CHECKING:
    from condshap.explanation import Explanation


def lacks_coalitions(explanation: Explanation) -> str:
    """Why a value table is not exact, in words; empty where all 2^P coalitions of every row are there.

    Coalitions may have been sampled, left out because of an ordering of the players, or skipped for some rows.
    """
    table, P = explanation.value_table, len(explanation.player_names)
    if table is None:
        raise CoalitionError(f"interactions and Owen values need v(S), but {explanation.provenance.no_table}")
    if table.coalitions.shape[1] != P:
        raise CoalitionError(
            f"interactions and Owen values need all {table.coalitions.shape[1]} players, but only {P} of them were selected "
            "from this explanation. Compute them first, and select players afterwards."
        )
    if not explanation.provenance.is_exact or len(np.unique(table.coalitions, axis=0)) < 2**P:
        return f"this explanation has {len(table.coalitions)} of the 2^{P} = {2**P} coalitions of {P} players"
    n_rows = len(explanation)
    n_lacking = sum(bool(np.isnan(table.values[:, row]).any()) for row in range(n_rows))
    return f"v(S) of some coalitions is NaN in {n_lacking} of {n_rows} rows" if n_lacking else ""


def require_exact(explanation: Explanation, what: str, instead: str) -> None:
    """Refuse a table from which `what` would be wrong, and say what to do `instead` of explaining again."""
    reason = lacks_coalitions(explanation)
    if reason:
        P = len(explanation.player_names)
        raise CoalitionError(
            f"{what} must come from v(S) of all coalitions, because every one of them counts, but {reason}. Explain with "
            f"n_coalitions={2**P}, without asymmetric=True, or use groups to have fewer players{instead}."
        )


def table_columns(explanation: Explanation) -> tuple[Masks, Floats, Floats]:
    """Coalitions (C, P), v(S) and its variances, both (C, n), with a column for every row and output."""
    table = explanation.value_table
    shape = (len(table.coalitions), explanation.base_values.size)
    return table.coalitions, table.values.reshape(shape), table.std_errors.reshape(shape) ** 2
