"""Results of all studies -> one page: every cell of the paper with our default beside the paper's networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from condshap.studies.pages.markdown import markdown, wrapped
from condshap.studies.pages.published import published_for
from condshap.studies.pages.reasons import Reasons
from condshap.studies.pages.study_page import NAMES, OLDER, cell_name, number
from condshap.studies.pages.summary import Results, best_method, mean_and_error, ratio_of_means
from condshap.studies.problems.cells import Cell
from condshap.studies.running.catalogue import STUDIES, Entry
from condshap.studies.running.runner import TRUTH

PAPER = ("continuous-low", "continuous-high-formula", "mixed-low", "mixed-high-formula", "categorical", "abalone")
"""Studies whose cells are those of the paper's tables, with coalitions by the paper's law where they are sampled."""
OTHER_LAW = ("continuous-high", "mixed-high")
"""The same cells with coalitions by the law of R's shapr, which count for nothing."""
OURS = "vaeac"
CLOSE, CLOSE_TO_TRUTH = 1.05, 1.03
"""Over the best method's mean, and over EC3 of the truth, up to which the default counts as being as good."""
LEGEND = f"""Means over R repetitions of the criterion that the paper prints: EC1, or EC3 where that is all.
*Paper's* is its VAEAC, where coalitions are sampled its VAEAC_C. *Best* is the best of all methods that were run here,
over the repetitions that all of them have, and *over best* the default's mean over that of the best. *Over truth* is EC3
over that of the true contribution function, which no method can beat but by chance. *Over independence* is the default's
mean over that of `independence`, ours / the paper's: levels depend on the responses that a repetition draws, and this
ratio less. *Default of* is the version of condshap whose default it is; {OLDER} marks an older
default, for which there is no newer result yet. Minutes are those of one repetition by one process without an
accelerator."""


@dataclass(frozen=True, slots=True)
class Line:
    """A cell of the paper.

    Attributes
    ----------
    study, cell, criterion : which, and by what it is judged
    repetitions : of our default, 0 if it was not run
    mean, std_error, paper : ours, and the paper's VAEAC; NaN where there is none
    best, over_best : our best method, None where nothing can be ranked, and the default's mean over its mean
    over_truth : its EC3 over that of the truth; NaN by another criterion
    over_independence : mean over that of independence, ours and the paper's; NaN in studies that are not compared so
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
    over_truth: float
    over_independence: tuple[float, float]
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
    """Every cell of the paper's tables, from results by the names of studies; cells of another law follow."""
    names = (*PAPER, *OTHER_LAW)
    return [_line(name, results[name], cell) for name in names for cell in STUDIES[name].study.cells]


def _line(study: str, results: Results, cell: Cell) -> Line:
    criterion = _criterion(STUDIES[study])
    values = results.values(cell, OURS, criterion)
    mean, error = mean_and_error(values)
    best, run = best_method(results, cell, criterion), [m for m in results.study.methods if results.of(cell, m)]
    paper, reference = _published(cell, OURS, criterion), STUDIES[study].reference
    shares = (np.nan, np.nan)
    if reference is not None:
        shares = _over(results, cell, reference, criterion), paper / _published(cell, reference, criterion)
    over_truth = _over(results, cell, TRUTH, criterion) if criterion == "ec3" else np.nan
    versions = tuple(dict.fromkeys(one.key.version for one in results.of(cell, OURS).values()))
    return Line(
        study, cell, criterion, len(values), mean, error, paper, best,
        _over(results, cell, best, criterion, among=run) if best else np.nan, over_truth, shares, versions,
        results.is_older(cell, OURS),
    )  # fmt: skip


def _over(results: Results, cell: Cell, other: str, criterion: str, among: Sequence[str] = ()) -> float:
    """Our default's mean over another method's, over the repetitions that both, and all `among` others, have; or NaN."""
    both = results.common(cell, {OURS, other, *among})
    sides = [results.values(cell, name, criterion, both) for name in (OURS, other)]
    return ratio_of_means(*sides)[0] if both else np.nan


def _published(cell: Cell, method: str, criterion: str) -> float:
    found = published_for(cell, method, criterion.upper())
    return np.nan if found is None else found


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
    counted = [line for line in lines if line.study in PAPER]
    parts = ["# Every cell of the paper", f"Made by `{command}`.", f"## Studies\n\n{_studies(counted)}"]
    parts += [f"## What is better, and what is not\n\n{_judgement(counted)}", f"## Cells\n\n{LEGEND}"]
    for name in PAPER:
        own = [line for line in counted if line.study == name]
        parts.append(f"### {name}: {NAMES[own[0].criterion]}\n\n{_cells(own, reasons)}")
    for name in OTHER_LAW:
        own = [line for line in lines if line.study == name and line.repetitions]
        head = f"### {name}: {NAMES[own[0].criterion]}, coalitions by the law of R's shapr" if own else ""
        parts += [f"{head}\n\nNot counted above.\n\n{_cells(own, reasons)}"] if own else []
    parts += [f"## Notes\n\n{notes.strip()}"] if notes.strip() else []
    return wrapped("\n\n".join(parts) + "\n")


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
    head += f" It is the best method of ours, or within 5 % of it, in {n_close} of {ranked}."
    truths = [line for line in run if line.over_truth > 0]
    n_true = sum(line.over_truth <= CLOSE_TO_TRUTH for line in truths)
    parts = [head + (f" Its EC3 is within 3 % of the truth's in {n_true} of {len(truths)} cells." if truths else "")]
    if above:
        told = [
            f"- {line.study}, {cell_name(line.cell)}: {_ours(line)} against {number(line.paper)}, {line.ratio:.2f}"
            f"{_beside_independence(line)}"
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


def _beside_independence(line: Line) -> str:
    """Ratios to independence, where they are known."""
    known = not np.isnan(line.over_independence).any()
    return f"; over independence {_both(line.over_independence)}" if known else ""


def _both(shares: tuple[float, float]) -> str:
    return " / ".join(f"{share:.3f}" for share in shares)


def _cells(lines: Sequence[Line], reasons: Reasons) -> str:
    has_truth, has_reference = lines[0].criterion == "ec3", STUDIES[lines[0].study].reference is not None
    heads = [*lines[0].cell.setting, "R", "ours", "paper's", "ratio", "best", "over best"]
    heads += ["over truth"] * has_truth + ["over independence"] * has_reference
    rows = []
    for line in lines:
        where = [f"{value:g}" for value in line.cell.setting.values()]
        paper = "" if np.isnan(line.paper) else number(line.paper)
        if line.repetitions:
            told = [
                str(line.repetitions),
                _ours(line),
                paper,
                _share(line.ratio),
                (line.best and f"`{line.best}`") or "",
            ]
            told += [_share(line.over_best)]
            told += ["" if np.isnan(line.over_truth) else f"{line.over_truth:.3f}"] * has_truth
            told += [_both(line.over_independence)] * has_reference + [" and ".join(line.versions)]
        else:
            told = [
                "0",
                f"not run: {reasons.of(line.study, line.cell, [OURS])}",
                paper,
                *[""] * (len(heads) - len(where) - 2),
            ]
        rows.append([*where, *told])
    return markdown([*heads, "default of"], rows)


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
