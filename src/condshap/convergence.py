"""Nested plans, value engine -> as many coalitions as the wanted precision needs: ``n_coalitions="auto"``.

A row has settled when its largest standard error is at most `tolerance` times its spread, the difference between its
largest and its smallest Shapley value. Coalitions are added until every row and output has settled.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.coalitions.nested import beginning, checkpoints
from condshap.exceptions import CondShapWarning
from condshap.numerics.shapley import can_separate
from condshap.solvers import ShapleyValues, solve_pairs
from condshap.types import Floats, Indices, Masks
from condshap.values import ValueTable

_LEAST_SPREAD = 0.01
"""Of the range of predictions: a row whose values are all smaller is judged by this spread instead of its own."""
_ENOUGH = 0.5
"""Of the tolerance: a row whose error without Monte Carlo noise is smaller would gain little from more coalitions."""

Estimate = Callable[[Indices], ValueTable]
"""Positions in the whole plan -> the value table of these coalitions, arrays (c, R, O)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Wanted precision, the smallest spread (O,) that a row is judged by, and whether to show a bar (None: tqdm decides)."""

    tolerance: float
    least_spread: Floats
    progress: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Converged:
    """Result of `converge`: values from the first coalitions of the sequence, and what precision they have.

    Attributes
    ----------
    plan, table, solved : the coalitions used, v of them (C, R, O), and the Shapley values
    reached : largest standard error over spread, of the worst row
    n_iterations : how often the error was looked at from the beginning of the sequence on
    """

    plan: CoalitionPlan
    table: ValueTable
    solved: ShapleyValues
    reached: float
    n_iterations: int


def least_spread(predictions: Floats) -> Floats:
    """Smallest spread (O,) by which rows are judged, from predictions (n, O) of any rows."""
    return np.asarray(_LEAST_SPREAD * np.ptp(predictions, axis=0))


def converge(
    estimate: Estimate, plan: CoalitionPlan, pairs: Indices, goal: Goal, known: ValueTable | None = None
) -> Converged:
    """Add coalitions of the sequence until every row has settled, or all that `plan` has are used.

    Parameters
    ----------
    estimate : computes v(S); asked once for every coalition
    plan, pairs : what `nested_plan` gave
    known : the table of an earlier result to go on from; its coalitions must be a beginning of the sequence
    """
    steps = checkpoints(plan.n_players, len(pairs))
    n_known = 0 if known is None else len(known.values) // 2 - 1
    table = known if known is not None else estimate(np.array([0, len(plan.masks) - 1]))
    with _bar(goal) as bar:
        for n_pairs in steps[bisect_left(steps, n_known) :]:
            some, positions = beginning(plan, pairs, n_pairs)
            if n_pairs > n_known:
                new = estimate(np.sort(pairs[n_known:n_pairs].ravel()))
                table = _joined(table, new, some, np.isin(positions, pairs[n_known:n_pairs]))
                n_known = n_pairs
            is_last = n_pairs == len(pairs)
            if not is_last and not can_separate(some.masks[some.interior], some.weights[some.interior]):
                continue
            solved, coalition_errors = solve_pairs(table.values, table.std_errors, some)
            total, without_noise = (_worst(solved.values, e, goal) for e in (solved.std_errors, coalition_errors))
            reached = float(total.max(initial=0.0))
            _show(bar, len(some.masks), reached, goal)
            has_settled = (total <= goal.tolerance) | (without_noise <= _ENOUGH * goal.tolerance)
            if has_settled.all():
                break
    result = Converged(some, table, solved, reached, steps.index(n_pairs) + 1)
    _announce(result, total, has_settled, goal)
    return result


def _worst(values: Floats, errors: Floats, goal: Goal) -> Floats:
    """Largest error of every row and output over its spread, (R, O), for values and errors (R, P, O)."""
    spread = np.maximum(np.ptp(values, axis=1), goal.least_spread)
    largest = errors.max(axis=1)
    return np.where(largest > 0, largest / np.where(spread > 0, spread, 1e-300), 0.0)


def _joined(old: ValueTable, new: ValueTable, plan: CoalitionPlan, is_new: Masks) -> ValueTable:
    """Table of a plan's coalitions from the old ones and the new ones, which are those where `is_new` (C,)."""

    def merge(a: Floats, b: Floats) -> Floats:
        merged = np.empty((len(is_new), *a.shape[1:]))
        merged[~is_new], merged[is_new] = a, b
        return merged

    return ValueTable(
        plan.masks,
        merge(old.values, new.values),
        merge(old.std_errors, new.std_errors),
        old.n_evaluations + new.n_evaluations,
    )


def _announce(result: Converged, total: Floats, has_settled: Masks, goal: Goal) -> None:
    """Warn when the tolerance was not reached: no silent stop."""
    n_open = int((total > goal.tolerance).any(axis=1).sum())
    if n_open == 0:
        return
    reason, remedy = "all that max_coalitions allows", "Raise max_coalitions, or the tolerance."
    if result.plan.is_exact or has_settled.all():
        reason = "all there are" if result.plan.is_exact else "and more would not help"
        remedy = "What is left is Monte Carlo noise in v(S): raise n_samples."
    warnings.warn(
        f"the largest standard error must be at most {goal.tolerance:.3g} of every row's spread, but {n_open} of "
        f"{len(total)} rows have up to {result.reached:.3g} with {len(result.plan.masks)} coalitions, {reason}. {remedy}",
        CondShapWarning,
        stacklevel=4,
    )


def _bar(goal: Goal) -> Any:
    """Bar that is full when the worst row has settled."""
    from tqdm.auto import tqdm

    disable = None if goal.progress is None else not goal.progress
    return tqdm(
        total=100,
        desc="precision",
        unit="%",
        disable=disable,
        bar_format="{desc}: {percentage:3.0f} %|{bar}| {postfix}",
    )


def _show(bar: Any, n_coalitions: int, reached: float, goal: Goal) -> None:
    """Errors fall about as the root of the number of coalitions, so the square is the share of the way."""
    bar.n = max(bar.n, round(100 * min(1.0, goal.tolerance / max(reached, 1e-300)) ** 2))
    bar.set_postfix_str(f"{n_coalitions} coalitions, worst error {reached:.2%} of spread, wanted {goal.tolerance:.2%}")
