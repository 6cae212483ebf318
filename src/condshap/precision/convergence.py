"""Nested plans, value engine -> as many coalitions as the wanted precision needs: ``n_coalitions="auto"``.

A row has settled when its largest standard error is at most `tolerance` times its spread, the difference between its
largest and its smallest Shapley value. Every row gets coalitions until it has settled, whatever the other rows do, so its
values do not depend on them, and easy rows do not pay for difficult ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.coalitions.nested import beginning, checkpoints
from condshap.exceptions import OptionError
from condshap.numerics.shapley import can_separate
from condshap.runtime.announcing import announce
from condshap.runtime.progress import Line, progress_line
from condshap.solvers import ShapleyValues, noise_with_all, solve_pairs
from condshap.types import Floats, Indices, Masks
from condshap.values.table import ValueTable

_LEAST_SPREAD = 0.01
"""Of the range of predictions: a row whose values are all closer together is judged by this spread instead of its own."""
_HOPELESS = 0.8
"""Of the tolerance: a row to which Monte Carlo noise alone would leave more with all coalitions need not go on."""

_LUCK = 1.1
"""Rows stop when their errors come out small, and first those whose errors came out too small: taken so much larger."""

MISSED = "the largest standard error must be at most"
"""How the warning begins that tells of rows that are not as precise as was wanted."""

Estimate = Callable[[Indices, Indices], ValueTable]
"""Positions (c,) in the whole plan, rows (r,) -> the value table of these coalitions and rows, arrays (c, r, O)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Wanted precision, the smallest spread (R, O) to judge by, and whether to show progress (None: if anybody sees it)."""

    tolerance: float
    least_spread: Floats
    progress: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Converged:
    """Result of `converge`.

    Attributes
    ----------
    plan : the coalitions of the row that needed most
    table : v of them (C, R, O), NaN where a row did without
    solved : Shapley values and standard errors
    reached : largest standard error over spread, of the worst row
    n_iterations : how often coalitions were added for the row that needed most
    """

    plan: CoalitionPlan
    table: ValueTable
    solved: ShapleyValues
    reached: float
    n_iterations: int


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """Rows (r,) that have not settled: v and its errors (c, r, O) of the same number of pairs."""

    rows: Indices
    n_pairs: int
    v: Floats
    v_errors: Floats

    def extended(self, n_pairs: int, new: ValueTable, is_new: Masks) -> _Open:
        """The same with more pairs, whose values stand where `is_new` (c,)."""
        v, v_errors = _merged(self.v, new.values, is_new), _merged(self.v_errors, new.std_errors, is_new)
        return _Open(self.rows, n_pairs, v, v_errors)

    def without(self, done: Masks) -> _Open:
        """The others, where `done` (r,) does not hold."""
        return _Open(self.rows[~done], self.n_pairs, self.v[:, ~done], self.v_errors[:, ~done])


@dataclass(frozen=True, slots=True, eq=False)
class _Settled:
    """Rows (r,) that settled with the same number of pairs: v and its errors (c, r, O), and what came of them.

    `total` (r, O) is the largest standard error over the spread, `needs_samples` (r,) tells that coalitions cannot help.
    """

    rows: Indices
    n_pairs: int
    v: Floats
    v_errors: Floats
    values: Floats
    std_errors: Floats
    total: Floats
    needs_samples: Masks


def least_spread(predictions: Floats, others: Floats) -> Floats:
    """Smallest spread (R, O) by which rows are judged, from their predictions (R, O) and those of other rows (n, O)."""
    highest, lowest = np.maximum(predictions, others.max(axis=0)), np.minimum(predictions, others.min(axis=0))
    return np.asarray(_LEAST_SPREAD * (highest - lowest))


def converge(
    estimate: Estimate, plan: CoalitionPlan, pairs: Indices, goal: Goal, known: ValueTable | None = None
) -> Converged:
    """Add coalitions of the sequence until every row has settled, or all that `plan` has are used.

    Parameters
    ----------
    estimate : computes v(S); asked once for every coalition and row
    plan, pairs : what `nested_plan` gave
    known : table of an earlier result to go on from
    """
    if known is None:
        known = estimate(np.array([0, len(plan.masks) - 1]), np.arange(len(goal.least_spread)))
    n_evaluations = known.n_evaluations
    is_known = ~np.isnan(known.values[..., 0])
    n_known = is_known.sum(axis=0) // 2 - 1

    def count(positions: Indices, rows: Indices) -> ValueTable:
        nonlocal n_evaluations
        new = estimate(positions, rows)
        n_evaluations += new.n_evaluations
        _check_errors(new)
        return new

    settled: list[_Settled] = []
    with progress_line("explaining", show=goal.progress, total=len(goal.least_spread)) as line:
        for n in np.unique(n_known):
            rows = np.flatnonzero(n_known == n)
            here = is_known[:, rows[0]]
            v, v_errors = known.values[here][:, rows], known.std_errors[here][:, rows]
            settled += _follow(_Open(rows, int(n), v, v_errors), count, plan, pairs, goal, line)
    result = _gathered(settled, plan, pairs, goal, n_evaluations)
    _announce(settled, result, goal)
    return result


def _check_errors(new: ValueTable) -> None:
    """Without errors of v(S) nobody can tell when to stop."""
    if np.isnan(new.std_errors).any():
        raise OptionError(
            "n_coalitions='auto' needs the standard errors of v(S), but an approach draws a single sample, which says "
            "nothing about its own error. Raise n_samples, or choose a number of coalitions."
        )


def _follow(
    still: _Open, estimate: Estimate, plan: CoalitionPlan, pairs: Indices, goal: Goal, line: Line
) -> Iterator[_Settled]:
    """Add coalitions to rows until all have settled."""
    steps = checkpoints(plan.n_players, len(pairs))
    for n_pairs in steps[bisect_left(steps, still.n_pairs) :]:
        some, positions = beginning(plan, pairs, n_pairs)
        if n_pairs > still.n_pairs:
            added = pairs[still.n_pairs : n_pairs]
            new = estimate(np.sort(added.ravel()), still.rows)
            still = still.extended(n_pairs, new, np.isin(positions, added))
        rows, v, v_errors = still.rows, still.v, still.v_errors
        is_last = n_pairs == len(pairs)
        if not is_last and not can_separate(some.masks[some.interior], some.weights[some.interior]):
            continue
        solved, without_noise = _without_luck(*solve_pairs(v, v_errors, some))
        spread = np.maximum(np.ptp(solved.values, axis=1), goal.least_spread[rows])
        total, without_noise = (_share(e.max(axis=1), spread) for e in (solved.std_errors, without_noise))
        is_hopeless = _share(noise_with_all(v_errors, some), spread) > _HOPELESS * goal.tolerance
        is_precise = total <= goal.tolerance
        has_settled = (is_precise | is_hopeless & (without_noise <= goal.tolerance)).all(axis=1)
        done = np.asarray(has_settled | is_last)
        needs_samples = np.asarray(is_hopeless.any(axis=1) | some.is_exact)
        if done.any():
            yield _Settled(
                rows[done], n_pairs, v[:, done], v_errors[:, done], solved.values[done], solved.std_errors[done],
                total[done], needs_samples[done],
            )  # fmt: skip
        _tell(line, int(done.sum()), float(total.max(initial=0.0)), goal)
        still = still.without(done)
        if len(still.rows) == 0:
            return


def _without_luck(solved: ShapleyValues, missing: Floats) -> tuple[ShapleyValues, Floats]:
    """Errors with their part (r, P, O) from missing coalitions enlarged, and that part."""
    noise = np.maximum(solved.std_errors**2 - missing**2, 0.0)
    return ShapleyValues(solved.values, np.sqrt((_LUCK * missing) ** 2 + noise)), _LUCK * missing


def _share(error: Floats, spread: Floats) -> Floats:
    """Error over spread, both (r, O); nothing of nothing is 0."""
    return np.where(error > 0, error / np.maximum(spread, 1e-300), 0.0)


def _merged(old: Floats, new: Floats, is_new: Masks) -> Floats:
    """Coalitions of both along the first axis, the new ones where `is_new` (c,)."""
    merged = np.empty((len(is_new), *old.shape[1:]))
    merged[~is_new], merged[is_new] = old, new
    return merged


def _gathered(
    settled: list[_Settled], plan: CoalitionPlan, pairs: Indices, goal: Goal, n_evaluations: int
) -> Converged:
    """Put all rows into one result, in their order."""
    n_most = max((one.n_pairs for one in settled), default=0)
    most, all_positions = beginning(plan, pairs, n_most)
    n_rows, n_outputs = goal.least_spread.shape
    v, v_errors = np.full((2, len(all_positions), n_rows, n_outputs), np.nan)
    values, std_errors = np.empty((2, n_rows, plan.n_players, n_outputs))
    for one in settled:
        here = np.ix_(np.isin(all_positions, beginning(plan, pairs, one.n_pairs)[1]), one.rows)
        v[here], v_errors[here] = one.v, one.v_errors
        values[one.rows], std_errors[one.rows] = one.values, one.std_errors
    reached = max((float(one.total.max()) for one in settled), default=0.0)
    n_iterations = bisect_left(checkpoints(plan.n_players, len(pairs)), n_most) + 1
    table = ValueTable(most.masks, v, v_errors, n_evaluations)
    return Converged(most, table, ShapleyValues(values, std_errors), reached, n_iterations)


def _announce(settled: list[_Settled], result: Converged, goal: Goal) -> None:
    """Warn when the tolerance was not reached: no silent stop."""
    total, needs_samples = np.zeros(0), np.zeros(0, dtype=bool)
    for one in settled:
        total = np.concatenate([total, one.total.max(axis=1)])
        needs_samples = np.concatenate([needs_samples, one.needs_samples])
    is_open = total > goal.tolerance
    for chosen, reason in (
        (is_open & needs_samples, "Monte Carlo noise in v(S) would be left with all coalitions, so raise n_samples."),
        (is_open & ~needs_samples, "These are all that max_coalitions allows, so raise it, or the tolerance."),
    ):
        if chosen.any():
            announce(
                f"{MISSED} {goal.tolerance:.3g} of every row's spread, but {chosen.sum()} "
                f"of {len(total)} rows have up to {total[chosen].max():.3g} with up to {len(result.plan.masks)} coalitions. "
                f"{reason}",
            )


def _tell(line: Line, n_settled: int, worst: float, goal: Goal) -> None:
    """Errors fall about as the root of the number of coalitions, so the square is the share of the way."""
    share = 0.99 * min(1.0, goal.tolerance / max(worst, 1e-300)) ** 2
    note = f"largest error {worst:.1%}, wanted {goal.tolerance:.1%}"
    line.reach(line.done + n_settled, share=max(line.share or 0.0, share), note=note)
