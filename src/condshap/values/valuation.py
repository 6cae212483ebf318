"""Game, rows, coalitions -> value table with honest errors; what a pilot must measure for that.

An additive model is not asked where what was read of it holds; rows for which it does not hold are left to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from condshap.models.additive_proof import is_met
from condshap.numerics.additive import AdditiveFunction
from condshap.precision.error_factors import measure_error_factors
from condshap.precision.influence import squared_influences
from condshap.precision.members import MemberSpread
from condshap.precision.target_error import Aim, reach_target
from condshap.types import Floats, Indices, Masks, Outputs, Rows
from condshap.values.assignments import Part, restrict_parts
from condshap.values.engine import ValueEngine
from condshap.values.interventions import intervene
from condshap.values.links import link_values
from condshap.values.outcomes import without_model
from condshap.values.predictions import fillers_of
from condshap.values.table import Moments, Settings, ValueTable, join_rows

if TYPE_CHECKING:
    from condshap.game import Game


def value_table(
    game: Game,
    rows: Rows,
    predictions: Outputs,
    positions: Indices,
    settings: Settings,
    spread: MemberSpread | None = None,
) -> ValueTable:
    """Value table of the plan's coalitions at `positions` (c,), ascending, for rows (R, M) and their predictions (R, O).

    `spread` takes up how far members of an ensemble differ.
    """
    met = is_read(game, rows, predictions)
    if met.all():
        return _estimate(game, rows, predictions, positions, settings, game.function, spread)
    tables = []
    for some, function in ((met, game.function), (~met, None)):
        if some.any():
            own = None if spread is None else spread.empty(int(some.sum()))
            found = _estimate(game, rows[some], predictions[some], positions, settings, function, own)
            tables.append((some, found))
            if spread is not None and own is not None:
                spread.take_rows(some, own)
    return join_rows(tables)


def is_read(game: Game, rows: Rows, predictions: Outputs) -> Masks:
    """Rows (R, M) whose predictions (R, O) are the sums that were read, (R,); those with gaps to draw have none."""
    function, limit = game.function, game.read_limit
    if function is None or limit is None:
        return np.ones(len(rows), dtype=bool)
    met = is_met(function, rows, predictions, limit, game.example_rows[0])
    return met | (np.isnan(rows).any(axis=1) & bool(fillers_of(game.parts)))


def error_factors(game: Game, rows: Rows, settings: Settings) -> Floats:
    """Variance of v(S) over that of independent blocks, (C, O), for approaches that leave it to be measured."""
    factors = np.ones((len(game.plan.masks), len(game.predictor.output_names)))
    quiet = replace(settings, progress=False, n_jobs=1)  # a single call of the model
    for part in answering(game, game.parts, game.function):
        if part.can.samples and not part.can.knows_error and len(part.positions):
            factors[part.positions] = measure_error_factors(
                part,
                ValueEngine(game.predictor, quiet),
                rows,
                game.plan,
                game.masks,
                game.n_samples,
                seed=game.seed,
            )
    return factors


def answering(game: Game, parts: Sequence[Part], function: AdditiveFunction | None) -> tuple[Part, ...]:
    """Parts as the engine asks them: along the causal chain if there is one, with outcomes for samples if f is read."""
    return without_model(intervene(parts, game.chain), function)


def aim_of(game: Game, factors: Floats) -> Aim:
    """What `target_error` asks for."""
    wanted = float(game.target_error or 0.0)
    return Aim(wanted, squared_influences(game.plan), game.n_samples, factors)


def _estimate(
    game: Game,
    rows: Rows,
    predictions: Outputs,
    positions: Indices,
    settings: Settings,
    function: AdditiveFunction | None,
    spread: MemberSpread | None,
) -> ValueTable:
    """Value table by what was read of the model, or by the model; what it then needs was not measured at fit."""
    is_usual = function is game.function
    parts = answering(game, restrict_parts(game.parts, positions), function)
    samples, masks = game.n_samples if is_usual else game.asked_samples, game.masks[positions]
    measured = game.error_factors
    factors = measured if is_usual else np.ones_like(measured)  # of independent draws: no less
    engine = ValueEngine(game.predictor, settings)
    moments = engine.estimate(parts, rows, masks, samples[positions], seed=game.seed, spread=spread)
    if spread is not None:
        spread.count_noise(moments.honest(factors[positions]), moments.means)
    if game.target_error is not None:  # of all coalitions
        aim = replace(aim_of(game, factors), n_samples=samples)
        moments = reach_target(parts, engine, rows, masks, moments, aim, seed=game.seed)
    return _complete(game, moments, predictions, positions, factors)


def _complete(game: Game, moments: Moments, predictions: Outputs, positions: Indices, factors: Floats) -> ValueTable:
    """Value table (C, R, O): the empty and the grand coalition are known exactly, the others' errors made honest.

    With a link, all of it is on the scale of the link.
    """
    values, variances = moments.means, moments.variances  # this explanation's own arrays, so worked on in place
    is_grand = positions == len(game.plan.masks) - 1
    values[positions == 0], values[is_grand] = game.base_value, predictions
    variances *= moments.scale(factors[positions])
    if game.link is not None:
        values, variances = link_values(game.link, values, variances, game.plan.masks[positions])
    errors = np.sqrt(variances, out=variances)
    n_evaluations = moments.n_evaluations + len(predictions) * int(is_grand.sum())
    return ValueTable(game.plan.masks[positions], values, errors, n_evaluations)
