"""Game, rows -> explanation, with the coalitions that the plan has.

``n_coalitions="auto"`` chooses them row by row, see `condshap.precision.automatic`.
"""

from __future__ import annotations

import time

import numpy as np

from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.explanation import Explanation
from condshap.game import Asked, Game
from condshap.games.links import check_probabilities
from condshap.models.additive_proof import warn_if_missed
from condshap.precision.automatic import explain_until
from condshap.precision.members import MemberSpread
from condshap.runtime.announcing import overheard
from condshap.solvers import solve_shapley
from condshap.types import Outputs, Rows, Table
from condshap.values.null_players import even_out, find_null_players, settle
from condshap.values.predictions import check_scale, predict_rows
from condshap.values.table import Settings
from condshap.values.valuation import is_read, value_table


def ask(game: Game, X: Table, rows: Rows, settings: Settings, start: float, known: Outputs | None = None) -> Asked:
    """Predict encoded rows (R, M) of `X`, but for those of which `known` (R, O) has predictions already."""
    predictions = predict_rows(game.predictor, game.parts, rows, settings, seed=game.seed, known=known)
    check_scale(predictions, game.base_value)
    check_probabilities(game.link, predictions, what="rows")
    return Asked(X, rows, predictions, start)


def explain_rows(game: Game, asked: Asked, settings: Settings, tolerance: float | None = None) -> Explanation:
    """Explain rows with all coalitions of the plan, or with as many as a tolerance needs."""
    if tolerance is not None:
        return explain_until(tolerance, game, asked, settings)
    rows, predictions = asked.rows, asked.predictions
    is_null = find_null_players(rows, game.constants, game.unread, game.players.membership)
    spread = MemberSpread(game.plan, len(rows), len(game.predictor.output_names), link=game.link)
    positions = np.arange(len(game.plan.masks))
    with overheard() as warned:
        table = value_table(game, rows, predictions, positions, settings, spread)
        table = even_out(table, is_null)
        solved = settle(solve_shapley(table.values, table.std_errors, game.plan), is_null)
        warn_if_blurred(solved, game.plan, game.predictor.output_names)
        warn_if_missed(is_read(game, rows, predictions))
    seconds = time.perf_counter() - asked.start
    about = describe(game, game.plan, game.n_samples, seconds=seconds, device=settings.device, warned=warned)
    return assemble_explanation(game, asked.X, table, solved, about, spread.errors(is_null))
