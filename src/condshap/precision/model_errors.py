r"""Game, rows -> errors of the learned distribution: what other training rows and another seed would change.

`std_errors` know how many samples and coalitions were used. They do not know that the distribution of the features was
itself learned, from few rows and, in networks, by chance. A parametric bootstrap does: tables like the training rows are
drawn from the fitted approach, the approach is fitted to each of them, and the same rows are explained again. With phi the
values at hand and phi_b those of B refits,

.. math::

    e^2 = \operatorname{Var}_b(\phi_b) + \tfrac12 (\bar\phi_b - \phi)^2,

less what sampling adds to both terms. The second one is the bias that the approach has where its own draws are the truth. It
counts by half: drawn tables are blurred a second time, so that refits are further off than the fit was. That half was chosen
on designs whose truth is known and tested on others, see ``python -m benchmarks model_errors``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from condshap.approaches.base import ConditionalSampler, DrawnRows, is_sampler
from condshap.exceptions import OptionError
from condshap.explaining import ask, explain_rows
from condshap.game import Game
from condshap.learning import refit, settings_of
from condshap.precision.members import pool_squares
from condshap.runtime.progress import progress_line
from condshap.seeding import derive_seed, generator, hash_words, stage_word
from condshap.types import Floats, Masks, Rows, Table
from condshap.values.host import draw
from condshap.values.table import Settings

if TYPE_CHECKING:
    from condshap.explainer import Explainer
    from condshap.explanation import Explanation

_STAGE = "bootstrap"
_BIAS = 0.5
_SAMPLES = 8  # drawn of a row, of which one is kept: members of an ensemble share them out
_WAYS = 16  # pairs of coalitions by which the rows of a table are drawn


def bootstrap_errors(explainer: Explainer, game: Game, X: Table, n_refits: int) -> Floats:
    """Errors of the model of the features, in the shape of `Explanation.values`, by a parametric bootstrap.

    The explainer's options tell how approaches are fitted and rows explained.
    """
    training = _training_rows(game)
    rows, settings = game.schema.encode(X), settings_of(explainer)
    tolerance = explainer.tolerance if explainer.n_coalitions == "auto" else None

    def explain(one: Game, how: Settings) -> Explanation:
        return explain_rows(one, ask(one, X, rows, how, time.perf_counter()), how, tolerance)

    first, refits = explain(game, settings), []
    for b in range(n_refits):
        with progress_line(f"fit {b + 1} of {n_refits}", show=settings.progress, leads=True):
            refits.append(explain(_refit(explainer, game, training, b), settings))
    return combine_refits(first, refits)


def combine_refits(first: Explanation, refits: list[Explanation]) -> Floats:
    """Errors of the values of `first` from those of at least two refits, see above.

    Few refits say little about a single value. Squared errors are therefore drawn towards their average over the row.
    """
    values = np.stack([one.values for one in refits])
    noise = np.mean([one.std_errors**2 for one in refits], axis=0)
    variance = values.var(axis=0, ddof=1)
    bias = (values.mean(axis=0) - first.values) ** 2 - variance / len(refits) - first.std_errors**2
    return pool_squares(variance - noise + _BIAS * bias, len(refits))


def _training_rows(game: Game) -> Rows:
    if game.training_rows is None:
        raise OptionError(
            "estimate_model_errors needs the training rows, which a saved explainer does not hold. Call fit(X_train) again."
        )
    return game.training_rows


def _refit(explainer: Explainer, game: Game, rows: Rows, b: int) -> Game:
    """The same game, its approaches fitted to a drawn table with another seed."""
    seed = derive_seed(game.seed, f"{_STAGE} {b}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said already of the fit itself
        return refit(explainer, game, draw_table(game, rows, seed), seed=seed)


def draw_table(game: Game, rows: Rows, seed: int) -> Rows:
    """A table (N, M) such as the fitted approach believes that the training rows (N, M) came from.

    Training rows are drawn with replacement. Where the approach draws, one half of each row's features is then drawn given
    the other half, and that one given the first: conditional distributions of networks need not belong to one joint
    distribution, and those are asked for that explain. Gaps stay where they were, and no level is lost.
    """
    rng = generator(seed, _STAGE)
    table = rows[rng.integers(len(rows), size=len(rows))]
    gaps = np.isnan(table)
    sampler = next((part for part in game.parts if is_sampler(part.approach) and len(part.positions)), None)
    if sampler is not None:
        middle = np.abs(2 * game.plan.sizes[sampler.positions] - game.plan.n_players)
        halves = game.masks[sampler.positions[middle == middle.min()]]
        for own, (known, others) in _groups(len(table), halves, rng):
            for mask, half in ((known, "first"), (others, "second")):
                keys = hash_words(stage_word(f"{_STAGE} {half}"), own)
                drawn = _draw(sampler.approach, table[own], mask, keys, seed, rng)
                if drawn is None:  # donors: training rows with replacement are what it draws
                    return _with_all_levels(table, rows, game, rng)
                table[own] = drawn
    table[gaps] = np.nan
    return _with_all_levels(table, rows, game, rng)


def _groups(n_rows: int, halves: Masks, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, tuple[Masks, Masks]]]:
    """Rows in turn, each group with a coalition (M,) of about half of the features and its complement."""
    n = min(_WAYS, n_rows)
    for i, half in enumerate(halves[rng.integers(len(halves), size=n)]):
        yield np.arange(i, n_rows, n), (half, ~half)


def _draw(
    sampler: ConditionalSampler, rows: Rows, mask: Masks, keys: np.ndarray, seed: int, rng: np.random.Generator
) -> Rows | None:
    """Rows (n, M) with their unknown features drawn once, None where the approach draws no rows of its own."""
    samples = draw(sampler, rows, mask[None], _SAMPLES, keys, seed)[0]
    if not isinstance(samples, DrawnRows):
        return None
    weights = np.ones(samples.rows.shape[:3]) if samples.weights is None else np.asarray(samples.weights)
    chances = np.cumsum(weights[0], axis=1) / weights[0].sum(axis=1, keepdims=True)
    chosen = np.minimum((rng.random((len(rows), 1)) > chances).sum(axis=1), samples.rows.shape[2] - 1)
    return np.asarray(samples.rows[0, np.arange(len(rows)), chosen])


def _with_all_levels(table: Rows, rows: Rows, game: Game, rng: np.random.Generator) -> Rows:
    """Give every level that the table has lost to a row whose own level it has more than once."""
    for j, feature in enumerate(game.schema.features):
        if feature.levels is None:
            continue
        present = ~np.isnan(table[:, j])
        counts = np.bincount(table[present, j].astype(np.intp), minlength=len(feature.levels))
        for level in np.setdiff1d(rows[:, j][~np.isnan(rows[:, j])], table[present, j]).astype(np.intp):
            spare = np.flatnonzero(present)[counts[table[present, j].astype(np.intp)] > 1]
            taken = rng.choice(spare)
            counts[int(table[taken, j])] -= 1
            counts[level] += 1
            table[taken, j] = level
    return table
