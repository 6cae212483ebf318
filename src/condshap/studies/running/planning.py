"""Studies, stores -> what is still to be run and how many minutes of a machine that takes, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from condshap.studies.problems.cells import Cell
from condshap.studies.running.expected import Expected, Seconds
from condshap.studies.running.runner import Work, tasks_in_order

SLOW_MINUTES = 5.0
"""Minutes from which on a repetition counts as slow: three of them may do for five."""


@dataclass(frozen=True, slots=True)
class Open:
    """What a cell lacks of a method.

    Attributes
    ----------
    study, cell, method : which
    repetitions : how many are lacking
    each : seconds of one of them
    """

    study: str
    cell: Cell
    method: str
    repetitions: int
    each: Seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is open, and what it takes.

    Attributes
    ----------
    open : cell by cell and method by method
    jobs : processes at a time
    minutes : of the machine, as far as seconds are known: tasks are shared out to processes as in a run
    longest : minutes of the slowest repetition
    """

    open: tuple[Open, ...]
    jobs: int
    minutes: float
    longest: float

    @property
    def unknown(self) -> int:
        """Results whose seconds nobody knows."""
        return sum(one.repetitions for one in self.open if one.each.source == "unknown")

    @property
    def results(self) -> int:
        """Results that are lacking."""
        return sum(one.repetitions for one in self.open)


def make_plan(works: Sequence[Work], expected: Expected, jobs: int = 1) -> Plan:
    """Find out what the stores lack of some studies, and what it takes with so many processes."""

    def guess(cell: Cell, method: str) -> float:
        found = expected.seconds(cell, method).value
        return 0.0 if isnan(found) else found

    tasks = [task for task, _ in tasks_in_order(works, expected=guess)]
    counts: dict[tuple[str, Cell, str], int] = {}
    for task in tasks:
        for method in task.methods:
            place = (task.study.name, task.cell, method)
            counts[place] = counts.get(place, 0) + 1
    found = tuple(Open(*place, count, expected.seconds(*place[1:])) for place, count in counts.items())
    durations = [sum(task.expected) / 60 for task in tasks]
    return Plan(found, jobs, makespan(durations, jobs), max(durations, default=0.0))


def makespan(durations: Iterable[float], jobs: int) -> float:
    """Time until all are done, if each process takes the next one as soon as it is free.

    >>> makespan([3.0, 2.0, 2.0], 2)
    4.0
    """
    ends = [0.0] * jobs
    for duration in durations:
        first = ends.index(min(ends))
        ends[first] += duration
    return max(ends)
