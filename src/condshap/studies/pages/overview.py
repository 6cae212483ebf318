"""Results of all studies -> one page: every cell of the paper with our default beside the paper's networks."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condshap.studies.pages.published import published_for
from condshap.studies.pages.study_page import NAMES, OLDER, cell_name, markdown, number
from condshap.studies.pages.summary import Results, best_method, mean_and_error, ratio_of_means
from condshap.studies.problems.cells import Cell
from condshap.studies.running.catalogue import STUDIES, Entry
from condshap.studies.running.expected import Expected

PAPER = ("continuous-low", "continuous-high-formula", "mixed-low", "mixed-high-formula", "categorical", "abalone")
"""Studies whose cells are those of the paper's tables, with coalitions by the paper's law where they are sampled."""
OURS = "vaeac"
CLOSE = 1.05
"""Over the best method's mean, up to which the default counts as being as good."""
LEGEND = f"""Means over R repetitions of the criterion that the paper prints: EC1, or EC3 where that is all.
*Best* is the best of all methods that were run here, over the repetitions that all of them have, and *over best* the
default's mean over that of the best. *Default of* is the version of condshap whose default it is; {OLDER} marks an older
default, for which there is no newer result yet."""


@dataclass(frozen=True, slots=True)
class Line:
    """A cell of the paper.

    Attributes
    ----------
    study, cell, criterion : which, and by what it is judged
    repetitions : of our default, 0 if it was not run
    mean, std_error, paper : ours, and the paper's VAEAC; NaN where there is none
    best, over_best : our best method, None where nothing can be ranked, and the default's mean over its mean
    versions : of condshap that found our results
    is_older : whether they are by an older default
    """

    study: str
    cell: Cell
    criterion: str
    repetitions: int
    mean: float
    std_error: float
    paper: float
    best: str | None
    over_best: float
    versions: tuple[str, ...]
    is_older: bool

    @property
    def ratio(self) -> float:
        """Ours over the paper's."""
        return self.mean / self.paper

    @property
    def is_close(self) -> bool:
        """Whether our default is the best method or nearly."""
        return bool(self.over_best <= CLOSE)


def overview_lines(results: Mapping[str, Results]) -> list[Line]:
    """Every cell of the paper's tables, from results by the names of studies."""
    return [_line(name, results[name], cell) for name in PAPER for cell in STUDIES[name].study.cells]


def _line(study: str, results: Results, cell: Cell) -> Line:
    criterion = _criterion(STUDIES[study])
    values = results.values(cell, OURS, criterion)
    mean, error = mean_and_error(values)
    paper = published_for(cell, OURS, criterion.upper())
    best = best_method(results, cell, criterion)
    common = results.common(cell, (OURS, best)) if best else []
    sides = [results.values(cell, name, criterion, common) for name in (OURS, best)] if best and common else []
    return Line(
        study, cell, criterion, len(values), mean, error, np.nan if paper is None else paper, best,
        ratio_of_means(*sides)[0] if sides else np.nan,
        tuple(dict.fromkeys(one.key.version for one in results.of(cell, OURS).values())), results.is_older(cell, OURS),
    )  # fmt: skip


def _criterion(entry: Entry) -> str:
    """By which a study is ranked: the first that the paper prints."""
    cell = entry.study.cells[0]
    return next(name for name in entry.criteria if published_for(cell, OURS, name.upper()) is not None)


def overview_page(lines: Sequence[Line], command: str, reasons: Reasons, notes: str = "") -> str:
    """The page.

    Parameters
    ----------
    reasons : why cells were not run
    notes : Markdown to stand at the end, such as explanations
    """
    parts = ["# Every cell of the paper", f"Made by `{command}`.", f"## Studies\n\n{_studies(lines)}"]
    parts += [f"## What is better, and what is not\n\n{_judgement(lines)}", f"## Cells\n\n{LEGEND}"]
    for name in PAPER:
        own = [line for line in lines if line.study == name]
        parts.append(f"### {name}: {NAMES[own[0].criterion]}\n\n{_cells(own, reasons)}")
    parts += [f"## Notes\n\n{notes.strip()}"] if notes.strip() else []
    return "\n\n".join(parts) + "\n"


def _studies(lines: Sequence[Line]) -> str:
    """One line a study: how many cells, the range of ratios, and in how many the default is best."""
    heads = (
        "study",
        "cells",
        "run",
        "by an older default",
        "ours / paper's",
        "below the paper's",
        "best, or within 5 %",
    )
    rows = []
    for name in PAPER:
        own = [line for line in lines if line.study == name]
        run = [line for line in own if line.repetitions]
        ratios = sorted(line.ratio for line in run)
        span = f"{ratios[0]:.2f} to {ratios[-1]:.2f}" if len(ratios) > 1 else "".join(f"{one:.2f}" for one in ratios)
        counts = (len(own), len(run), sum(line.is_older for line in run))
        good = (sum(line.ratio < 1 for line in run), sum(line.is_close for line in run))
        shown = f"{{doc}}`{name}`" if run else f"`{name}`"  # there is a page
        rows.append([shown, *map(str, counts), span or "-", *map(str, good)])
    total = [sum(int(row[i]) for row in rows) for i in (1, 2, 3)]
    sums = [sum(int(row[i]) for row in rows) for i in (5, 6)]
    return markdown(heads, [*rows, ["all", *map(str, total), "", *map(str, sums)]])


def _judgement(lines: Sequence[Line]) -> str:
    run = [line for line in lines if line.repetitions]
    above = [line for line in run if line.ratio >= 1]
    behind = [line for line in run if line.best and not line.is_close]
    n_below, n_close = len(run) - len(above), sum(line.is_close for line in run)
    ranked = sum(line.best is not None for line in run)
    head = f"Of {len(lines)} cells, {len(run)} were run. There the default is below the paper's network in {n_below}."
    parts = [f"{head} It is the best method of ours, or within 5 % of it, in {n_close} of {ranked}."]
    if above:
        told = [
            f"- {line.study}, {cell_name(line.cell)}: {_ours(line)} against {number(line.paper)}, {line.ratio:.2f}"
            for line in above
        ]
        parts.append("Not below the paper's:\n\n" + "\n".join(told))
    if behind:
        told = [f"- {line.study}, {cell_name(line.cell)}: {line.over_best:.2f} of `{line.best}`" for line in behind]
        parts.append("Another method is better by more than 5 %:\n\n" + "\n".join(told))
    return "\n\n".join(parts)


def _ours(line: Line) -> str:
    error = "" if np.isnan(line.std_error) else f" ± {number(line.std_error)}"
    return f"{number(line.mean)}{OLDER if line.is_older else ''}{error}"


def _cells(lines: Sequence[Line], reasons: Reasons) -> str:
    settings = list(lines[0].cell.setting)
    heads = [*settings, "R", "ours", "paper's", "ratio", "best", "over best", "default of"]
    rows = []
    for line in lines:
        where = [f"{value:g}" for value in line.cell.setting.values()]
        paper = "" if np.isnan(line.paper) else number(line.paper)
        if not line.repetitions:
            rows.append([*where, "0", f"not run: {reasons(line.study, line.cell, OURS)}", paper, "", "", "", ""])
            continue
        best = [f"`{line.best}`", f"{line.over_best:.2f}"] if line.best else ["", ""]
        ratio = "" if np.isnan(line.paper) else f"{line.ratio:.2f}"
        rows.append([*where, str(line.repetitions), _ours(line), paper, ratio, *best, " and ".join(line.versions)])
    return markdown(heads, rows)


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why cells and methods were not run.

    Attributes
    ----------
    lines : study, method, settings and reason of what somebody said; an empty entry fits everything
    expected : what a repetition takes
    """

    lines: Sequence[Mapping[str, str]]
    expected: Expected

    @classmethod
    def read(cls, folder: Path, expected: Expected) -> Reasons:
        """Reasons from ``not-run.csv`` in a folder; none without that file."""
        path = folder / "not-run.csv"
        if not path.is_file():
            return cls((), expected)
        with path.open(newline="") as file:
            return cls(tuple(csv.DictReader(file)), expected)

    def __call__(self, study: str, cell: Cell, method: str) -> str:
        """Reason for a cell and a method: the first line that fits it, or that nothing but time is lacking."""
        wanted = {"study": study, "method": method, **{name: f"{value:g}" for name, value in cell.setting.items()}}
        for line in self.lines:
            if all(not line.get(name) or line[name] == value for name, value in wanted.items()):
                return line["reason"]
        found = self.expected.seconds(cell, method)
        return "not yet" if found.source == "unknown" else f"not yet, {found.value / 60:.1f} minutes ({found.source})"
