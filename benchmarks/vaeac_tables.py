"""Results of the studies of VAEAC -> Markdown: a table per requirement, what it cost, and all approaches on Burr data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import condshap
from benchmarks.origins import origins
from benchmarks.vaeac_bars import APPROACHES, GROUPS, STUDIES, Bar, Requirement, requirements
from condshap.studies.cells import BurrCell, CategoricalCell, Cell, MixedCell
from condshap.studies.pages.study_page import markdown
from condshap.studies.problems.informative_gaps import InformativeCell
from condshap.studies.published import published
from condshap.studies.runner import TRUTH, Study
from condshap.studies.store import Key, Result, Store
from condshap.studies.summary import ratio_of_means

NOTE = """Means ± standard errors over R repetitions; ratios are of means, with paired standard errors by the delta method.
The truth's error is its sampling error on the scale of EC1, where it adds in quadrature. S = 1000 coalitions are drawn from
M = 25 on; elsewhere all are used."""
QUICK_NOTE = "**Quick versions of the cells: they show that everything runs, and nothing about any bar.**"
TOLERANCE = 0.15
PAPER_CELL = STUDIES[APPROACHES].cells[0]  # figures of the paper stand beside quick versions, too


@dataclass(frozen=True)
class Results:
    """Results of one study in a store, by cell, method and repetition."""

    study: Study
    found: dict[Key, Result]

    def values(self, cell: Cell, method: str, criterion: str, repetitions: Iterable[int]) -> np.ndarray:
        """A criterion of every repetition, shape (R,); NaN where it was not run."""
        results = [self.found.get(self.study.key(cell, method, r)) for r in repetitions]
        return np.array([np.nan if result is None else float(getattr(result, criterion)) for result in results])

    def complete(self, wanted: Sequence[tuple[Cell, str]]) -> list[int]:
        """Repetitions that have all of these results."""
        keys = sorted({key.repetition for key in self.found if key.study == self.study.name})
        return [r for r in keys if all(self.study.key(cell, name, r) in self.found for cell, name in wanted)]


@dataclass(frozen=True)
class Judged:
    """A bar held against the results.

    Attributes
    ----------
    repetitions : those that have all that is compared; if there are none, nothing else means anything
    means : means of both sides as text
    ratio, error : ratio of the means and its standard error
    truth_error : mean sampling error of the truth
    """

    bar: Bar
    repetitions: int
    means: tuple[str, str]
    ratio: float
    error: float
    truth_error: float

    @property
    def holds(self) -> bool:
        """Whether the ratio is small enough."""
        limit = self.bar.most + (self.error if self.bar.slack and np.isfinite(self.error) else 0.0)
        return self.ratio < limit if self.bar.strict else self.ratio <= limit


def short_name(cell: Cell, *, with_rho: bool = True) -> str:
    """Cell as tables call it.

    >>> short_name(BurrCell(25, 1000, n_coalitions=1000))
    'M=25, N=1000'
    """
    if isinstance(cell, BurrCell):
        gaps = f", {cell.missing:.0%} missing" if cell.missing else ""
        return f"M={cell.n_features}, N={cell.n_train}{gaps}"
    rho = f", rho={cell.rho:g}" if with_rho and isinstance(cell, MixedCell | CategoricalCell) else ""
    if isinstance(cell, MixedCell):
        return f"M={cell.setup.removeprefix('M')}, N={cell.n_train}{rho}"
    if isinstance(cell, CategoricalCell):
        return f"M={cell.n_features}, L={cell.n_levels}{rho}"
    return f"M=3, N={cell.n_train}" if isinstance(cell, InformativeCell) else cell.key


def mean_text(values: np.ndarray) -> str:
    """Mean and standard error over the repetitions that were run."""
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return "-"
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{error}"


def judge(bar: Bar, results: Results, *, quick: bool) -> Judged:
    """Hold a bar against the repetitions that have both of its sides."""
    cell = bar.cell.quick() if quick else bar.cell
    other = cell if bar.against.cell is None else (bar.against.cell.quick() if quick else bar.against.cell)
    figure = published(bar.cell, bar.against.method, bar.criterion.upper()) if bar.against.is_published else None
    done = results.complete([(cell, bar.method), *([] if bar.against.is_published else [(other, bar.against.method)])])
    values = results.values(cell, bar.method, bar.criterion, done)
    if figure is None:
        others = results.values(other, bar.against.method, bar.criterion, done)
    else:
        others = np.full(len(values), figure)
    ratio, error = ratio_of_means(values, others) if done else (np.nan, np.nan)
    means = (mean_text(values), mean_text(others) if figure is None else f"{figure:.4f}")
    truth = results.values(cell, TRUTH, "ec1", done)
    return Judged(bar, len(done), means, ratio, error, float(truth.mean()) if done else np.nan)


def judged_line(judged: Judged, *, has_paper: bool, quick: bool) -> list[str]:
    """A bar as a line of its requirement's table."""
    bar = judged.bar
    parts = [short_name(bar.cell.quick() if quick else bar.cell), *judged.means]
    parts += [paper_ratio(bar)] if has_paper else []
    if not judged.repetitions:
        return [*parts, "not run", f"{bar.most:g}", "-"]
    most = ("< " if bar.strict else "") + f"{bar.most:g}" + (f" + {judged.error:.3f}" if bar.slack else "")
    said = "quick" if quick else "yes" if judged.holds else "**no**"
    return [*parts, f"{judged.ratio:.3f} ± {judged.error:.3f}", most, said]


def paper_ratio(bar: Bar) -> str:
    """The paper's own ratio, of its method to the one that a bar is held against."""
    own = published(bar.cell, bar.paper, bar.criterion.upper()) if bar.paper else None
    other = published(bar.cell, bar.against.method, bar.criterion.upper())
    return "-" if own is None or other is None else f"{own / other:.2f}"


def requirement_text(requirement: Requirement, judged: Sequence[Judged], *, quick: bool) -> str:
    """One requirement: its title, its table, and what is the same for all lines."""
    first, has_paper = requirement.bars[0], any(bar.paper for bar in requirement.bars)
    criterion = first.criterion.upper()
    against = f"paper's {first.against.method}" if first.against.is_published else f"{criterion} {first.against.method}"
    if first.against.cell is not None:
        against += ", complete"
    heads = ["cell", f"{criterion} {first.method}", against, *["paper's ratio"] * has_paper, "ratio", "bar", "holds"]
    table = markdown(heads, [judged_line(one, has_paper=has_paper, quick=quick) for one in judged])
    return f"### {requirement.title}\n\n{table}\n\n{_same_for_all(judged)}".rstrip()


def _same_for_all(judged: Sequence[Judged]) -> str:
    counts = sorted({one.repetitions for one in judged if one.repetitions})
    if not counts:
        return ""
    worst = max((one.truth_error for one in judged if np.isfinite(one.truth_error)), default=np.nan)
    digits = f"{worst:.4f}" if worst >= 0.00005 else f"{worst:.0e}"
    truth = f"the truth's error is at most {digits}" if worst else "the truth has no sampling error"
    truth = "the truth's error is not in the store" if np.isnan(worst) else truth
    return f"R = {' to '.join(str(n) for n in sorted({counts[0], counts[-1]}))}; {truth}."


def accuracy_text(store: Path, groups: Sequence[str], *, quick: bool) -> str:
    """All tables of some groups of studies."""
    everything = Store(store).read()
    names = [name for group in groups for name in GROUPS[group]]
    studies = {name: shrink(STUDIES[name]) if quick else STUDIES[name] for name in names}
    found = {key: result for key, result in everything.items() if key.version == condshap.__version__}
    wanted = [(study.name, method) for study in studies.values() for method in (TRUTH, *study.methods)]
    used = {key: result for key, result in found.items() if (key.study, key.method) in wanted}
    parts = [*_origin_lines(store, used, everything), NOTE, *([QUICK_NOTE] if quick else [])]
    holds: list[bool] = []
    for requirement in requirements():
        if requirement.study in names:
            results = Results(studies[requirement.study], used)
            judged = [judge(bar, results, quick=quick) for bar in requirement.bars]
            parts.append(requirement_text(requirement, judged, quick=quick))
            holds += [one.holds for one in judged if one.repetitions]
    if holds and not quick:
        parts.append(f"{sum(holds)} of {len(holds)} bars that were run hold.")
    if APPROACHES in names:
        parts.append(approaches_text(Results(studies[APPROACHES], used)))
    parts.append(f"### Costs: CPU seconds of fit + explain, means over repetitions\n\n{costs_table(studies, used)}")
    return "\n\n".join(parts)


def _origin_lines(store: Path, used: dict[Key, Result], everything: dict[Key, Result]) -> list[str]:
    """Where results were made, and which versions are left out."""
    machines = origins(store, used)
    lines = [name if len(machines) == 1 else f"{count} results: {name}" for name, count in machines]
    devices = sorted({result.device for result in used.values()})
    lines += [f"Networks on: {', '.join(devices)}."] if devices else []
    others = sorted({key.version for key in everything} - {condshap.__version__})
    left_out = f"Left out: results of condshap {', '.join(others)}. This is {condshap.__version__}."
    return ["\n".join(lines) or "No results.", *([left_out] if others else [])]


def costs_table(studies: dict[str, Study], used: dict[Key, Result]) -> str:
    """CPU seconds of fit + explain by cell and method, cells that differ in rho alone together."""
    groups: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for name, study in studies.items():
        by_cell = {cell.key: short_name(cell, with_rho=False) for cell in study.cells}
        for cell in by_cell.values():
            groups.setdefault((name, cell), {})
        for key, result in used.items():
            if key.study == study.name and key.cell in by_cell and key.method != TRUTH:
                groups[name, by_cell[key.cell]].setdefault(key.method, []).append(result)
    methods = list(dict.fromkeys(method for study in studies.values() for method in study.methods))
    lines = [[*place, *(_cost(found.get(method, [])) for method in methods)] for place, found in groups.items()]
    return markdown(["study", "cell", *methods], lines)


def _cost(results: Sequence[Result]) -> str:
    if not results:
        return ""
    return " + ".join(f"{np.mean([getattr(r, name) for r in results]):.1f}" for name in ("cpu_fit", "cpu_explain"))


def approaches_text(results: Results) -> str:
    """All approaches over independence beside the paper's ratios."""
    (cell,), methods = results.study.cells, results.study.methods
    done = results.complete([(cell, name) for name in (TRUTH, *methods)])
    if not done:
        return "### Burr data: approaches over independence\n\nNo repetition is complete."
    heads = ["approach", "EC1", "paper", "over independence", "paper", "within", "EC2", "paper", "EC3", "paper"]
    table = markdown(heads, [approach_line(results, cell, name, done) for name in methods])
    error = results.values(cell, TRUTH, "ec1", done).mean()
    last = f"R = {len(done)}; the truth's error is {error:.4f}. Bar: within 15 % or two paired standard errors."
    return f"### Burr data, {short_name(cell)}: approaches over independence\n\n{table}\n\n{last}"


def approach_line(results: Results, cell: Cell, name: str, done: Sequence[int]) -> list[str]:
    """One approach beside the paper's figures."""
    figures = {c: published(PAPER_CELL, name, c.upper()) for c in ("ec1", "ec2", "ec3")}
    base = published(PAPER_CELL, "independence", "EC1")
    assert base is not None
    assert figures["ec1"] is not None
    values = {c: results.values(cell, name, c, done) for c in figures}
    ratio, error = ratio_of_means(values["ec1"], results.values(cell, "independence", "ec1", done))
    expected = figures["ec1"] / base
    judged = "-" if name == "independence" else verdict(ratio, error, expected)
    first = [name, mean_text(values["ec1"]), f"{figures['ec1']:.4f}", f"{ratio:.3f} ± {error:.3f}", f"{expected:.3f}"]
    rest = [text for c in ("ec2", "ec3") for text in (f"{values[c].mean():.4f}", f"{figures[c]:.4f}")]
    return [*first, judged, *rest]


def verdict(ratio: float, error: float, expected: float) -> str:
    """Say whether a ratio lies within 15 % or two paired standard errors of the paper's."""
    off = abs(ratio - expected)
    reasons = {"15 %": off <= TOLERANCE * expected, "2 standard errors": off <= 2 * error}
    outside = "neither: better" if ratio < expected else "**neither**"
    return " and ".join(reason for reason, holds in reasons.items() if holds) or outside


def shrink(study: Study) -> Study:
    """Version of a study that only shows that everything runs."""
    return replace(study, name=f"{study.name}-quick", cells=tuple(cell.quick() for cell in study.cells))
