"""Game, rows -> explanation; or explainer, training rows, rows -> the same, with everything refused before training.

``n_coalitions="auto"`` chooses coalitions row by row, see `condshap.precision.automatic`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from condshap.approaches.base import check_missing, check_sizes
from condshap.assembly import assemble_explanation, describe, warn_if_blurred
from condshap.explanation import Explanation
from condshap.game import Asked, Game, Setup
from condshap.learning import Prepared, learn, prepare, settings_of
from condshap.models.additive_proof import warn_if_missed
from condshap.precision.automatic import explain_until
from condshap.precision.members import MemberSpread
from condshap.runtime.announcing import overheard
from condshap.solvers import solve_shapley
from condshap.types import Outputs, Rows, Table
from condshap.values.links import check_probabilities
from condshap.values.null_players import even_out, find_null_players, settle
from condshap.values.predictions import check_scale, predict_early, predict_rows
from condshap.values.table import Settings
from condshap.values.valuation import is_read, value_table
from condshap.views.rows import with_labels

if TYPE_CHECKING:
    from condshap.explainer import Explainer


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
        solved = settle(solve_shapley(table.values, table.std_errors, game.plan), is_null, game.plan.components)
        warn_if_blurred(solved, game.plan, game.predictor.output_names)
        warn_if_missed(is_read(game, rows, predictions))
    seconds = time.perf_counter() - asked.start
    about = describe(game, game.plan, game.n_samples, seconds=seconds, device=settings.device, warned=warned)
    return assemble_explanation(game, asked.X, table, solved, about, spread.errors(is_null))


def encode_rows(setup: Setup, X: Table) -> Rows:
    """Encode rows to explain (R, M), or refuse them: all of it is known before training."""
    with with_labels(X):
        rows = setup.schema.encode(X)
        check_sizes(rows, setup.schema)
        for part in setup.parts:
            check_missing(part.approach, rows, setup.schema, what="rows to explain")
    return rows


@dataclass(frozen=True, eq=False)
class Ready:
    """An explainer before training, and rows for it to which it will not object.

    Attributes
    ----------
    X, rows : (R, M) the table to explain as given and encoded
    outputs : (R, O) predictions, NaN where a gap is yet to be filled by what is learned
    seconds : that these took
    """

    explainer: Explainer
    prepared: Prepared
    X: Table
    rows: Rows
    outputs: Outputs
    seconds: float


def get_ready(
    explainer: Explainer,
    X_train: Table,
    X: Table,
    *,
    categorical: Iterable[str | int] | None = None,
    encoded: Rows | None = None,
) -> Ready:
    """Refuse whatever can be refused, of training rows, rows to explain, options and model, before anything is trained.

    `encoded` (N, M) are the training rows if another explainer has encoded them already.
    """
    prepared = prepare(explainer, X_train, categorical, encoded)
    start = time.perf_counter()
    rows = encode_rows(prepared.setup, X)
    outputs = predict_early(prepared.setup.predictor, rows, settings_of(explainer))
    check_probabilities(explainer.link, outputs, what="rows")
    return Ready(explainer, prepared, X, rows, outputs, time.perf_counter() - start)


def finish(ready: Ready) -> Explanation:
    """Train and explain."""
    explainer = ready.explainer
    explainer.game_ = game = learn(explainer, ready.prepared)
    start, settings = time.perf_counter() - ready.seconds, settings_of(explainer)
    asked = ask(game, ready.X, ready.rows, settings, start, known=ready.outputs)
    return explain_rows(game, asked, settings, explainer.tolerance if explainer.n_coalitions == "auto" else None)
