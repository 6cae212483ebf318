"""Explainer, pool -> what a fast explainer needs: labels, networks, and their errors on rows that neither has seen.

Some rows of the pool are held out and explained at full precision. A third of them is for decisions: when a target is
reached, and what errors may be seen from. Error and intervals come from the others, which decide nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from condshap.amortised.budget import Budget
from condshap.amortised.calibration import LEVEL, Calibration
from condshap.amortised.encoding import RowEncoding
from condshap.amortised.hints import Hints
from condshap.amortised.labels import SAMPLES, Course, Labels, Teacher, by_output
from condshap.amortised.learned import Learned, Network, Question
from condshap.amortised.likeness import Likeness
from condshap.amortised.training import Lesson, train
from condshap.exceptions import OptionError, SchemaError
from condshap.options import check_integer, check_positive
from condshap.runtime.announcing import announce
from condshap.runtime.progress import progress_line
from condshap.seeding import generator, row_keys
from condshap.types import Floats, Indices, Outputs, Rows
from condshap.values.links import check_probabilities, linked
from condshap.values.null_players import find_null_players
from condshap.values.predictions import check_scale, predict_rows
from condshap.values.table import Settings

if TYPE_CHECKING:
    from condshap.game import Game

LEAST_ROWS, LEAST_HELD_OUT = 100, 30
_STOPPING = 10  # every tenth labelled row is for early stopping
_FIRST_ROUND = 1000  # labels after which a target is looked at for the first time, and twice as many each time


@dataclass(frozen=True)
class Options:
    """Options of `Explainer.amortise`, checked."""

    budget: Budget
    target: float | None
    calibration_rows: int
    seed: int

    @classmethod
    def of(cls, budget: Any, target: Any, calibration_rows: Any, seed: Any) -> Options:
        """Check them."""
        found = Budget.of(budget)
        if found.rows is not None and found.rows < LEAST_ROWS:
            raise OptionError(
                f"budget must be at least {LEAST_ROWS} rows for a network to learn from, got {budget!r}. Raise it."
            )
        wanted = None if target is None else check_positive("target", target)
        held_out = check_integer("calibration_rows", calibration_rows, least=LEAST_HELD_OUT)
        return cls(found, wanted, held_out, check_integer("seed", seed, least=0))


@dataclass(frozen=True, eq=False)
class Split:
    """Positions in the pool of rows that teach, of those by which decisions are made, and of those that judge."""

    teaching: Indices
    tuning: Indices
    judging: Indices

    @classmethod
    def of(cls, rows: Rows, n_held_out: int, seed: int) -> Split:
        """Split rows (N, M) at random; what equals a held-out row does not teach."""
        if len(rows) < n_held_out + LEAST_ROWS:
            raise SchemaError(
                f"X_pool must have at least {LEAST_ROWS} rows besides the {n_held_out} held out by calibration_rows, "
                f"got {len(rows)}. Pass more rows, or hold out fewer."
            )
        order = generator(seed, "amortised pool").permutation(len(rows))
        held_out, teaching = order[:n_held_out], order[n_held_out:]
        keys = row_keys(rows)
        teaching = teaching[~np.isin(keys[teaching], keys[held_out])]
        if len(teaching) < LEAST_ROWS:
            raise SchemaError(
                f"X_pool must have at least {LEAST_ROWS} rows that differ from the held-out rows, got {len(teaching)} of "
                f"{len(rows)}. Explain its few distinct rows with explain, or pass other rows."
            )
        return cls(teaching, held_out[: n_held_out // 3], held_out[n_held_out // 3 :])


def learn_pool(teacher: Teacher, rows: Rows, options: Options) -> Learned:
    """Learn from rows (N, M) of a pool."""
    game, start = teacher.game, time.perf_counter()
    split = Split.of(rows, options.calibration_rows, options.seed)
    predictions = predict_rows(game.predictor, game.parts, rows, teacher.settings, seed=game.seed)
    check_scale(predictions, game.base_value)
    check_probabilities(game.link, predictions, what="rows of the pool")
    pupil = _Pupil.of(teacher, rows, predictions, split, options.seed)
    with progress_line("held-out rows", show=teacher.settings.progress, leads=True):
        tuning, judging = (
            by_output(teacher.explain(rows[some], predictions[some])) for some in (split.tuning, split.judging)
        )
    held_out_seconds = time.perf_counter() - start
    course = Course(teacher, rows[split.teaching], predictions[split.teaching], options.budget, options.seed)
    network, labels = _learn_until(options, course, pupil, tuning)
    found = network.examine(pupil.asked.take(split.judging), judging)
    calibration = Calibration.learn(network.examine(pupil.asked.take(split.tuning), tuning), found)
    facts = _facts(options, labels, split, {"held out": held_out_seconds, "labels": labels.seconds})
    low, high = found.relative.interval()
    facts |= {"error": found.relative.value, "error_interval": [low, high]}
    facts["seconds"]["amortise"] = time.perf_counter() - start
    return Learned(network, calibration, found.relative, facts)


def ask_network(game: Game, hints: Hints, rows: Rows, predictions: Outputs, settings: Settings) -> Question:
    """Rows (n, M) and predictions (n, O) as networks are asked about them."""
    outputs = linked(game.link, predictions)
    is_null = find_null_players(rows, game.constants, game.unread, game.players.membership)
    told = np.concatenate([outputs, hints.ask(game.predictor, rows, settings.memory_budget)], axis=1)
    return Question(rows, told, outputs - linked(game.link, game.base_value), ~is_null)


@dataclass(frozen=True, eq=False)
class _Pupil:
    """The pool as networks are asked about it, and what can be learned of it without labels."""

    asked: Question
    split: Split
    hints: Hints
    encoding: RowEncoding
    likeness: Likeness
    seed: int

    @classmethod
    def of(cls, teacher: Teacher, rows: Rows, predictions: Outputs, split: Split, seed: int) -> _Pupil:
        """Prepare to learn from rows (N, M) and predictions (N, O)."""
        game = teacher.game
        hints = Hints.learn(game.schema, rows[split.teaching], game.players.membership)
        asked = ask_network(game, hints, rows, predictions, teacher.settings)
        taught = asked.take(split.teaching)
        encoding = RowEncoding.learn(game.schema, taught.rows, taught.told)
        held_out = encoding.places(rows[np.concatenate([split.tuning, split.judging])])
        return cls(asked, split, hints, encoding, Likeness.learn(encoding.places(taught.rows), held_out), seed)

    def learn(self, labels: Labels, *, show: bool | None) -> Network:
        """Train networks with labels of the teaching rows, every tenth of which stops them; `show` how far that is."""
        taught = np.flatnonzero(labels.counts > 0)
        own = self.asked.take(self.split.teaching[taught])
        values, counts = labels.values[taught], labels.counts[taught]
        scale = np.sqrt((values**2).mean(axis=(0, 1)))
        scale = np.where(scale > 0, scale, 1.0)
        lesson = Lesson(
            self.encoding.inputs(own.rows, own.told),
            (values / scale).reshape(len(taught), -1),
            own.sums / scale,
            own.active.astype(np.float64),
            counts / counts.mean(),
        )
        stops = np.arange(len(taught)) % _STOPPING == 0
        parts = lesson.take(np.flatnonzero(~stops)), lesson.take(np.flatnonzero(stops))
        members = train(*parts, self.seed, show=show)
        return Network(self.hints, self.encoding, members, scale, self.likeness)


def _learn_until(options: Options, course: Course, pupil: _Pupil, tuning: Floats) -> tuple[Network, Labels]:
    """Labels and networks, in rounds of twice as many labels where there is a target to be reached by values (n, P, O)."""
    labels = Labels.none(len(course.rows), *tuning.shape[1:])
    most = course.most if options.target is None else _FIRST_ROUND
    while True:
        labels = course.go_on(labels, most)
        _check_enough(labels, options)
        network = pupil.learn(labels, show=course.teacher.settings.progress)
        found = float(network.examine(pupil.asked.take(pupil.split.tuning), tuning).relative)
        if options.target is None or found <= options.target:
            return network, labels
        if labels.n_labels < most or most >= course.most:  # time, or rows, are spent
            announce(
                f"target={options.target:g} was not reached: the relative error on held-out rows is {found:.3g} after "
                f"{labels.n_labels} labels. Raise the budget, or pass a larger pool.",
            )
            return network, labels
        most = min(2 * most, course.most)


def _check_enough(labels: Labels, options: Options) -> None:
    if labels.n_labels < LEAST_ROWS:
        raise OptionError(
            f"budget must allow for at least {LEAST_ROWS} rows, got {labels.n_labels} in {options.budget.seconds:g} s. "
            "Raise it."
        )


def _facts(options: Options, labels: Labels, split: Split, seconds: dict[str, float]) -> dict[str, Any]:
    return {
        "labels": labels.n_labels,
        "rows": int((labels.counts > 0).sum()),
        "samples": SAMPLES,
        "held_out_rows": len(split.tuning) + len(split.judging),
        "judging_rows": len(split.judging),
        "level": LEVEL,
        "seed": options.seed,
        "seconds": seconds,
    }
