"""Game, rows of a pool -> noisy Shapley values: every row explained with few samples, as often as the budget allows.

Noise of labels averages out over rows when a network learns them, so few samples for many rows teach more than many for few
(Covert et al. 2024, stochastic amortization). A label is what the explainer itself would say with fewer samples: unbiased
around the values that are to be learned, with the same coalitions, links and causal orders.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from condshap.amortised.budget import Budget
from condshap.exceptions import CondShapWarning
from condshap.explaining import explain_rows
from condshap.game import Asked
from condshap.runtime.progress import progress_line
from condshap.seeding import derive_seed
from condshap.types import Floats, Indices, Outputs, Rows
from condshap.values.table import Settings

if TYPE_CHECKING:
    from condshap.explanation import Explanation
    from condshap.game import Game

SAMPLES = 8
"""Per coalition, at most: a small net, whose noise is far below half of that of a net of four."""
_BLOCK = 64
_LOOSE = 0.1  # tolerance of labels with n_coalitions="auto"


@dataclass(frozen=True, eq=False)
class Labels:
    """Means of the labels of n rows.

    Attributes
    ----------
    values : (n, P, O) means over the times that a row was explained
    counts : (n,) these times, 0 for rows whose turn did not come
    seconds : that this took
    """

    values: Floats
    counts: Indices
    seconds: float = 0.0

    @classmethod
    def none(cls, n_rows: int, n_players: int, n_outputs: int) -> Labels:
        """No labels yet."""
        return cls(np.zeros((n_rows, n_players, n_outputs)), np.zeros(n_rows, dtype=np.intp))

    @property
    def n_labels(self) -> int:
        """How many there are."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Teacher:
    """A game, and how to ask it.

    Attributes
    ----------
    tolerance : of ``n_coalitions="auto"``, None for all coalitions of the plan
    """

    game: Game
    settings: Settings
    tolerance: float | None

    @property
    def full_turns(self) -> int:
        """How often few samples are as many as those of a full explanation: labels need not be more precise."""
        full = self.game.n_samples[self.game.plan.interior]
        return max(1, int(np.ceil(full.sum() / max(1, np.minimum(full, SAMPLES).sum()))))

    def with_few_samples(self) -> Teacher:
        """The same with at most `SAMPLES` per coalition, and without targets that would add to them."""
        game = self.game
        least = np.minimum(game.n_samples, SAMPLES), np.minimum(game.asked_samples, SAMPLES)
        cheap = replace(game, n_samples=least[0], asked_samples=least[1], target_error=None)
        loose = None if self.tolerance is None else max(self.tolerance, _LOOSE)
        return Teacher(cheap, replace(self.settings, progress=False), loose)

    def with_seed(self, seed: int) -> Teacher:
        """The same with other random streams."""
        return replace(self, game=replace(self.game, seed=seed))

    def explain(self, rows: Rows, predictions: Outputs) -> Explanation:
        """Explain rows (n, M) with known predictions (n, O); what is said of single rows would only be in the way."""
        asked = Asked(self.game.schema.decode(rows), rows, predictions, time.perf_counter())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CondShapWarning)
            return explain_rows(self.game, asked, self.settings, self.tolerance)


@dataclass(frozen=True, eq=False)
class Course:
    """Rows that are to be explained again and again: what makes labels, but for how many."""

    teacher: Teacher
    rows: Rows
    predictions: Outputs
    budget: Budget
    seed: int

    @property
    def most(self) -> int:
        """Labels at most: those of the budget, or as many as make every row's mean fully precise."""
        enough = len(self.rows) * self.teacher.full_turns
        return enough if self.budget.rows is None else min(self.budget.rows, enough)

    def go_on(self, labels: Labels, most: int) -> Labels:
        """Labels and further ones, row by row in order, until there are `most` or time is over.

        Every turn through the rows has a seed of its own. What a label is depends on the row and on that seed only, so that
        the same number of labels is the same lesson.
        """
        values, counts, n_seen = labels.values.copy(), labels.counts.copy(), labels.n_labels
        cheap, most = self.teacher.with_few_samples(), min(most, self.most)
        start, show = time.perf_counter() - labels.seconds, self.teacher.settings.progress
        with progress_line("explaining rows to learn from", show=show, total=most - n_seen) as line:
            while n_seen < most and not self.budget.is_over(time.perf_counter() - start):
                turn, first = divmod(n_seen, len(self.rows))
                some = slice(first, min(first + _BLOCK, len(self.rows), first + most - n_seen))
                asked = cheap.with_seed(derive_seed(self.seed, f"amortised labels {turn}"))
                found = by_output(asked.explain(self.rows[some], self.predictions[some]))
                values[some] += (found - values[some]) / (turn + 1)
                counts[some] += 1
                n_seen += len(found)
                line.update(len(found))
        return Labels(values, counts, time.perf_counter() - start)


def by_output(explanation: Explanation) -> Floats:
    """Values with an axis for outputs, (R, P, O)."""
    return explanation.values.reshape(*explanation.values.shape[:2], -1)
