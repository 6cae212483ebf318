"""Game, rows, losses -> loss explanation: Shapley values of S -> minus the loss of v(S), of every row.

All of v(S) comes from where that of an ordinary explanation does; only the game that is solved is another one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from condshap.assembly import describe, warn_if_blurred
from condshap.coalitions import CoalitionPlan
from condshap.coalitions.nested import beginning
from condshap.exceptions import OptionError
from condshap.game import Asked, Game
from condshap.games.loss_explanation import LossExplanation
from condshap.games.losses import Losses, OwnLosses
from condshap.models.additive_proof import warn_if_missed
from condshap.options import check_tolerance
from condshap.precision.convergence import Goal, converge, least_spread
from condshap.runtime.announcing import overheard
from condshap.seeding import derive_seed
from condshap.solvers import ShapleyValues, solve_shapley
from condshap.tables.reading import snapshot
from condshap.types import Floats, Indices, Masks
from condshap.values.null_players import even_out, find_null_players, settle
from condshap.values.table import Settings, ValueTable
from condshap.values.valuation import is_read, value_table

_SECOND = "second estimate"


@dataclass(frozen=True, eq=False)
class _LossGame:
    """What v(S) and its loss are asked of."""

    game: Game
    asked: Asked
    losses: Losses
    settings: Settings

    def table(self, positions: Indices, rows: Indices) -> ValueTable:
        """Minus the losses of v(S) (c, r, 1), of the plan's coalitions at `positions` and some of the rows."""
        first = self._values(self.game, positions, rows)
        if np.isnan(first.std_errors).any():
            raise OptionError(
                "explain_loss needs the standard errors of v(S), because noise biases losses, but a single sample has none. "
                "Fit with n_samples of at least 2."
            )
        n_evaluations, variances = first.n_evaluations, first.std_errors**2
        if isinstance(self.losses, OwnLosses) and variances.any():
            other = replace(self.game, seed=derive_seed(self.game.seed, _SECOND))
            second = self._values(other, positions, rows)
            both = np.stack([first.values, second.values]), np.stack([variances, second.std_errors**2])
            found, noise = self.losses.from_halves(*both, rows)
            n_evaluations += second.n_evaluations
        else:
            found, noise = self.losses.noisy(first.values, variances, rows)
        return ValueTable(first.coalitions, -found[..., None], np.sqrt(noise)[..., None], n_evaluations)

    def _values(self, game: Game, positions: Indices, rows: Indices) -> ValueTable:
        asked = self.asked
        return value_table(game, asked.rows[rows], asked.predictions[rows], positions, self.settings)

    def least_spread(self) -> Floats:
        """Smallest spread (R, 1) by which "auto" judges rows: of the losses that other predictions would have there."""
        game, every = self.game, np.arange(len(self.asked.rows))
        others = np.concatenate([game.predictor(game.example_rows.copy()), game.base_value[None]])
        shape = (len(every), len(game.base_value))
        far = np.stack([self.losses.exact(np.broadcast_to(one, shape), every) for one in others])
        own = self.losses.exact(self.asked.predictions, every)
        return least_spread(own[None], far).T


def explain_loss_rows(
    game: Game, asked: Asked, settings: Settings, losses: Losses, tolerance: float | None
) -> LossExplanation:
    """Explain the losses of rows with all coalitions of the plan, or with as many as a tolerance needs."""
    if game.target_error is not None:
        raise OptionError(
            "explain_loss cannot be combined with target_error, which is in units of the prediction, got "
            f"target_error={game.target_error}. Fit with n_samples instead."
        )
    losses.check(asked.predictions, game.base_value)
    own = _LossGame(game, asked, losses, settings)
    is_null = find_null_players(asked.rows, game.constants, game.unread, game.players.membership)
    with overheard() as warned:
        found = _with_plan(own, is_null) if tolerance is None else _until(own, check_tolerance(tolerance))
        solved = settle(found.solved, is_null, found.plan.components)
        warn_if_blurred(solved, found.plan, ("loss",), is_automatic=tolerance is not None)
        warn_if_missed(is_read(game, asked.rows, asked.predictions))
        losses.warn(-found.table.values[..., 0])
    about = describe(
        game,
        found.plan,
        found.n_samples,
        seconds=time.perf_counter() - asked.start,
        device=settings.device,
        warned=warned,
        tolerance=tolerance,
        reached=found.reached,
        n_iterations=found.n_iterations,
        loss=losses.name,
    )
    table = found.table
    return LossExplanation(
        values=solved.values[..., 0],
        std_errors=solved.std_errors[..., 0],
        base_losses=-table.values[0, :, 0],
        losses=-table.values[-1, :, 0],
        loss=losses.name,
        value_table=replace(table, values=table.values[..., 0], std_errors=table.std_errors[..., 0]),
        data=snapshot(asked.X),
        feature_names=game.schema.names,
        player_names=game.players.names,
        membership=game.players.features,
        provenance=about,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """Coalitions that were used, samples of each (C,), their table, what was solved, and what "auto" reached."""

    plan: CoalitionPlan
    n_samples: Indices
    table: ValueTable
    solved: ShapleyValues
    reached: float | None = None
    n_iterations: int | None = None


def _with_plan(own: _LossGame, is_null: Masks) -> _Found:
    plan = own.game.plan
    table = even_out(own.table(np.arange(len(plan.masks)), np.arange(len(own.asked.rows))), is_null)
    return _Found(plan, own.game.n_samples, table, solve_shapley(table.values, table.std_errors, plan))


def _until(own: _LossGame, tolerance: float) -> _Found:
    """With as many coalitions as it takes for errors of the shares of the loss, not of the prediction."""
    game, settings = own.game, own.settings
    quiet = replace(own, settings=replace(settings, progress=False))  # one bar, not one for every batch
    goal = Goal(tolerance, own.least_spread(), settings.progress)
    found = converge(quiet.table, game.plan, game.pairs, goal)
    used = beginning(game.plan, game.pairs, len(found.plan.masks) // 2 - 1)[1]
    return _Found(found.plan, game.n_samples[used], found.table, found.solved, found.reached, found.n_iterations)
