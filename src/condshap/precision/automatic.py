"""Game, rows, tolerance -> explanation with as many coalitions as it takes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.coalitions.nested import beginning
from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.game import Asked, Game
from condshap.models.additive_proof import warn_if_missed
from condshap.options import check_tolerance
from condshap.precision.convergence import Goal, converge, least_spread
from condshap.precision.members import MemberSpread
from condshap.runtime.announcing import overheard
from condshap.storage.digests import check_maker
from condshap.types import Indices, Rows
from condshap.values.links import linked, linked_range
from condshap.values.null_players import find_null_players, settle
from condshap.values.predictions import predict_rows
from condshap.values.table import Settings, ValueTable
from condshap.values.valuation import is_read, value_table


def explain_until(
    tolerance: float,
    game: Game,
    asked: Asked,
    settings: Settings,
    known: ValueTable | None = None,
    before: Explanation | None = None,
) -> Explanation:
    """Explain rows with as many coalitions as the tolerance needs.

    `known` (C, R, O) and `before` are the value table of an explanation to go on from, and that explanation.
    """
    tolerance = check_tolerance(tolerance)
    plan, pairs, rows, predictions = game.plan, game.pairs, asked.rows, asked.predictions
    some = game.predictor(game.example_rows.copy())
    others = linked_range(game.link, np.concatenate([some, game.base_value[None]]))
    scale = least_spread(linked(game.link, predictions), others)
    quiet = replace(settings, progress=False)  # one bar, not one for every batch
    spread: MemberSpread | None = None

    def estimate(positions: Indices, chosen: Indices) -> ValueTable:
        """Members are looked at in the first coalitions that all rows have."""
        nonlocal spread
        own = None
        if spread is None and before is None and len(positions) > 2:
            own = spread = _first_spread(game, positions, len(rows))
        return value_table(game, rows[chosen], predictions[chosen], positions, quiet, own)

    with overheard() as warned:
        found = converge(estimate, plan, pairs, Goal(tolerance, scale, settings.progress), known)
        warn_if_blurred(found.solved, found.plan, game.predictor.output_names, is_automatic=True)
        warn_if_missed(is_read(game, rows, predictions))
    about = describe(
        game,
        found.plan,
        game.n_samples[beginning(plan, pairs, len(found.plan.masks) // 2 - 1)[1]],
        seconds=time.perf_counter() - asked.start + (before.provenance.seconds["explain"] if before else 0.0),
        device=settings.device,
        warned=warned,
        tolerance=tolerance,
        reached=found.reached,
        n_iterations=found.n_iterations,
    )
    is_null = find_null_players(rows, game.constants, game.unread, game.players.membership)
    model_errors = None if spread is None else spread.errors(is_null)
    explanation = assemble_explanation(game, asked.X, found.table, settle(found.solved, is_null), about, model_errors)
    if before is not None and before.provenance.model_errors_from is not None:
        return explanation.with_model_errors(before.model_errors, source=before.provenance.model_errors_from)
    return explanation


def refine_rows(tolerance: float, game: Game, explanation: Explanation, rows: Rows, settings: Settings) -> Explanation:
    """Go on with an explanation of encoded rows (R, M) to a smaller tolerance, if game and model are still those of it."""
    start, known = time.perf_counter(), known_table(explanation, game)
    found = predict_rows(game.predictor, game.parts, rows, settings, seed=game.seed)
    check_maker(explanation, game, linked(game.link, found))
    asked = Asked(explanation.data, rows, known.values[-1] if game.link is None else found, start)
    return explain_until(tolerance, game, asked, settings, known, before=explanation)


def _first_spread(game: Game, positions: Indices, n_rows: int) -> MemberSpread:
    """Spread over the first pairs of the sequence, which are at `positions` (c,)."""
    plan, where = beginning(game.plan, game.pairs, len(positions) // 2)
    chosen = np.flatnonzero(np.isin(where, positions))
    return MemberSpread(plan, n_rows, len(game.predictor.output_names), chosen, link=game.link)


def known_table(explanation: Explanation, game: Game) -> ValueTable:
    """Value table (C, R, O) of an explanation, whose coalitions must be the beginning of the game's sequence."""
    table, base_value = explanation.value_table, linked(game.link, game.base_value)
    n_known = min(len(table.coalitions) // 2 - 1, len(game.pairs))
    begins = np.array_equal(beginning(game.plan, game.pairs, n_known)[0].masks, table.coalitions)
    shape = (*table.values.shape[:2], len(base_value))
    fits = begins and table.values.size == np.prod(shape) and explanation.provenance.tolerance is not None
    if not fits or not (table.values[0].reshape(shape[1:]) == base_value).all():
        raise OptionError(
            "the explanation must come from this explainer with n_coalitions='auto', but its coalitions, outputs or base "
            f"values differ: {explanation!r}. Explain the rows again."
        )
    return replace(table, values=table.values.reshape(shape), std_errors=table.std_errors.reshape(shape))
