"""Fitted explainer, rows, tolerance -> explanation with as many coalitions as it takes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.coalitions.nested import beginning
from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.models.additive_proof import warn_if_missed
from condshap.options import check_tolerance
from condshap.precision.convergence import Goal, converge, least_spread
from condshap.precision.members import MemberSpread
from condshap.runtime.announcing import overheard
from condshap.types import Indices, Outputs, Rows, Table
from condshap.values.engine import is_read, value_table
from condshap.values.null_players import find_null_players, settle
from condshap.values.table import ValueTable

if TYPE_CHECKING:
    from condshap.explainer import Explainer


def explain_until(
    tolerance: float,
    explainer: Explainer,
    X: Table,
    rows: Rows,
    predictions: Outputs,
    *,
    start: float,
    known: ValueTable | None = None,
    before: Explanation | None = None,
) -> Explanation:
    """Explain rows with as many coalitions as the tolerance needs.

    Parameters
    ----------
    X, rows : (R, M) the table as given and encoded
    predictions : (R, O) for them
    start : when explaining began
    known, before : value table (C, R, O) of an explanation to go on from, and that explanation
    """
    tolerance = check_tolerance(tolerance)
    settings, plan, pairs = explainer._settings(), explainer.plan_, explainer.pairs_
    some = explainer.predictor_(explainer.example_rows_.copy())
    scale = least_spread(predictions, np.concatenate([some, explainer.base_value_[None]]))
    quiet = replace(settings, progress=False)  # one bar, not one for every batch
    spread: MemberSpread | None = None

    def estimate(positions: Indices, chosen: Indices) -> ValueTable:
        """Members are looked at in the first coalitions that all rows have."""
        nonlocal spread
        own = None
        if spread is None and before is None and len(positions) > 2:
            own = spread = _first_spread(explainer, positions, len(rows))
        return value_table(explainer, rows[chosen], predictions[chosen], positions, quiet, own)

    with overheard() as warned:
        found = converge(estimate, plan, pairs, Goal(tolerance, scale, settings.progress), known)
        warn_if_blurred(found.solved, found.plan, explainer.predictor_.output_names, is_automatic=True)
        warn_if_missed(is_read(explainer, rows, predictions))
    about = describe(
        explainer,
        found.plan,
        explainer.n_samples_[beginning(plan, pairs, len(found.plan.masks) // 2 - 1)[1]],
        seconds=time.perf_counter() - start + (before.provenance.seconds["explain"] if before else 0.0),
        warned=warned,
        tolerance=tolerance,
        reached=found.reached,
        n_iterations=found.n_iterations,
    )
    is_null = find_null_players(rows, explainer.constants_, explainer.unread_, explainer.players_.membership)
    model_errors = None if spread is None else spread.errors(is_null)
    explanation = assemble_explanation(explainer, X, found.table, settle(found.solved, is_null), about, model_errors)
    if before is not None and before.provenance.model_errors_from is not None:
        return explanation.with_model_errors(before.model_errors, source=before.provenance.model_errors_from)
    return explanation


def _first_spread(explainer: Explainer, positions: Indices, n_rows: int) -> MemberSpread:
    """Spread over the first pairs of the sequence, which are at `positions` (c,)."""
    plan, where = beginning(explainer.plan_, explainer.pairs_, len(positions) // 2)
    return MemberSpread(plan, n_rows, len(explainer.predictor_.output_names), np.flatnonzero(np.isin(where, positions)))


def known_table(explanation: Explanation, explainer: Explainer) -> ValueTable:
    """Value table (C, R, O) of an explanation, whose coalitions must be the beginning of the explainer's sequence."""
    if explainer.n_coalitions != "auto":
        raise OptionError(
            f"refine must be asked of an explainer with n_coalitions='auto', got {explainer.n_coalitions!r}. Fit such a one."
        )
    table, base_value = explanation.value_table, explainer.base_value_
    n_known = min(len(table.coalitions) // 2 - 1, len(explainer.pairs_))
    begins = np.array_equal(beginning(explainer.plan_, explainer.pairs_, n_known)[0].masks, table.coalitions)
    shape = (*table.values.shape[:2], len(base_value))
    fits = begins and table.values.size == np.prod(shape) and explanation.provenance.tolerance is not None
    if not fits or not (table.values[0].reshape(shape[1:]) == base_value).all():
        raise OptionError(
            "the explanation must come from this explainer with n_coalitions='auto', but its coalitions, outputs or base "
            f"values are others: {explanation!r}. Explain the rows anew."
        )
    return replace(table, values=table.values.reshape(shape), std_errors=table.std_errors.reshape(shape))
