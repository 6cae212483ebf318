"""How near VAEAC comes to the truth: what its issue must show, each line of it a table.

``python -m benchmarks.vaeac accuracy`` runs what the store lacks, ``python -m benchmarks.vaeac table`` prints the tables.
Every finished method of a repetition is one line of the store, so a run that was stopped goes on where it was. Truths lie
beside the store, in a folder of the same name with the ending .truth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import condshap
from benchmarks.measure import machine
from condshap.studies.cells import BurrCell, CategoricalCell, Cell, MixedCell
from condshap.studies.missingness import InformativeCell
from condshap.studies.published import published
from condshap.studies.runner import TRUTH, Study, run
from condshap.studies.store import Key, Result, Store

RHOS = (0.0, 0.1, 0.3, 0.5, 0.8, 0.9)
BURR = {(M, N): BurrCell(M, N) for M in (5, 10) for N in (1000, 100)}
HIGH = {(M, N): BurrCell(M, N, n_coalitions=1000) for M, N in ((25, 1000), (25, 5000), (50, 5000))}
MIXED = tuple(MixedCell(setup, rho, N) for setup in ("M4", "M6") for N in (100, 1000) for rho in RHOS)
CATEGORICAL = tuple(CategoricalCell(M, 4, rho) for M in (3, 7) for rho in (0.0, 0.5, 0.9))
GAPS, INFORMATIVE = BurrCell(5, 1000, missing=0.2), InformativeCell()
NO_FLAGS = "vaeac:missing_flags=False"
NOTE = """Means ± standard errors over repetitions; ratios are of means, with paired standard errors by the delta method.
The truth's error is its sampling error on the scale of EC1, where it adds in quadrature."""
STUDIES = {
    study.name: study
    for study in (
        Study("burr", tuple(BURR.values()), ("independence", "gaussian", "vaeac-paper", "vaeac"), tuple(range(10))),
        Study("mixed", MIXED, ("independence", "vaeac"), tuple(range(6))),
        Study("categorical", CATEGORICAL, ("independence", "vaeac"), tuple(range(6))),
        Study("high", tuple(HIGH.values()), ("gaussian", "vaeac", "vaeac-uniform"), tuple(range(5))),
        Study("missing", (GAPS, replace(GAPS, missing=0.0)), ("vaeac",), tuple(range(10))),
        Study("informative", (INFORMATIVE,), (NO_FLAGS, "vaeac"), tuple(range(6))),
    )
}
GROUPS = {name: [name] for name in STUDIES} | {"missing": ["missing", "informative"]}


@dataclass(frozen=True)
class Against:
    """What a method is held against: another one on the same repetitions, or a figure of the paper."""

    method: str
    cell: Cell | None = None  # None: the same cell
    is_published: bool = False


@dataclass(frozen=True)
class Bar:
    """One requirement: the ratio of two means of a criterion is at most a number."""

    cell: Cell
    method: str
    against: Against
    most: float
    paper: str | None = None  # the paper's method whose ratio to `against` stands beside
    criterion: str = "ec1"
    slack: bool = False  # one paired standard error on top
    strict: bool = False


@dataclass(frozen=True)
class Requirement:
    """A line of "Must show"."""

    study: str
    title: str
    bars: tuple[Bar, ...]


def requirements() -> list[Requirement]:
    return [*_burr(), *_mixed(), *_categorical(), *_high(), *_missing()]


def _burr() -> list[Requirement]:
    gaussian, paper = Against("gaussian"), Against("vaeac-paper")
    one = [Bar(BURR[M, 1000], "vaeac-paper", gaussian, b, "vaeac", slack=True) for M, b in ((5, 0.62), (10, 0.75))]
    two = [Bar(cell, "vaeac", paper, 0.85 if N == 1000 else 1.0) for (_, N), cell in BURR.items()]
    return [
        Requirement("burr", "Paper's method over gaussian (bar: the number plus one standard error)", tuple(one)),
        Requirement("burr", "Default over the paper's method", tuple(two)),
    ]


def _mixed() -> list[Requirement]:
    vaeac, ctree = Against("vaeac", is_published=True), Against("ctree", is_published=True)
    first = [Bar(cell, "vaeac", vaeac, 0.80) for cell in MIXED]
    second = [Bar(cell, "vaeac", Against("independence"), 1.3, "vaeac") for cell in MIXED if cell.rho == 0]
    third = [Bar(cell, "vaeac", ctree, 1.0, strict=True) for cell in MIXED if cell.rho >= 0.1]
    return [
        Requirement("mixed", "Mixed: default over the paper's VAEAC column", tuple(first)),
        Requirement("mixed", "Mixed, rho = 0: default over independence", tuple(second)),
        Requirement("mixed", "Mixed, rho >= 0.1: default over the paper's ctree column", tuple(third)),
    ]


def _categorical() -> list[Requirement]:
    vaeac, ctree = Against("vaeac", is_published=True), Against("ctree", is_published=True)
    first = [Bar(cell, "vaeac", vaeac, 1.0) for cell in CATEGORICAL]
    dependent = [cell for cell in CATEGORICAL if cell.n_features == 7 and cell.rho >= 0.5]
    second = [Bar(cell, "vaeac", ctree, 1.0, strict=True) for cell in dependent]
    return [
        Requirement("categorical", "Categorical: default over the paper's VAEAC column", tuple(first)),
        Requirement("categorical", "Categorical, M = 7: default over the paper's ctree column", tuple(second)),
    ]


def _high() -> list[Requirement]:
    most = dict(zip(HIGH, (0.80, 0.70, 0.90), strict=True))
    first = [Bar(cell, "vaeac", Against("gaussian"), most[size], "vaeac_c") for size, cell in HIGH.items()]
    uniform = Against("vaeac-uniform")
    second = [Bar(cell, "vaeac", uniform, 0.5, criterion="ec2") for cell in HIGH.values()]
    return [
        Requirement("high", "High-dimensional: default (VAEAC_C) over gaussian", tuple(first)),
        Requirement("high", "High-dimensional: EC2 of VAEAC_C over EC2 with uniform masks", tuple(second)),
    ]


def _missing() -> list[Requirement]:
    complete = Against("vaeac", replace(GAPS, missing=0.0))
    return [
        Requirement(
            "missing", "20 % of the training entries missing, over complete", (Bar(GAPS, "vaeac", complete, 1.3),)
        ),
        Requirement(
            "informative",
            "x3 missing mostly where x2 < 0: with over without the missing-mask network",
            (Bar(INFORMATIVE, "vaeac", Against(NO_FLAGS), 0.5),),
        ),
    ]


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


def ratio_of_means(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Ratio of two means over the same repetitions and its standard error by the delta method."""
    ratio = values.mean() / others.mean()
    if len(values) < 2:
        return float(ratio), np.nan
    return float(ratio), float((values - ratio * others).std(ddof=1) / np.sqrt(len(values)) / others.mean())


def mean_text(values: np.ndarray) -> str:
    """Mean and standard error over the repetitions that were run."""
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return "-"
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{error}"


def print_requirement(requirement: Requirement, results: Results, quick: bool) -> list[bool]:
    """Print the table of one requirement; tells which of its bars hold, of those that were run."""
    methods, criterion = results.study.methods, requirement.bars[0].criterion
    has_figures = any(bar.against.is_published or bar.paper for bar in requirement.bars)
    heads = ["cell", "R", "truth's error", *(f"{criterion.upper()} {name}" for name in methods)]
    heads += ["paper's"] * has_figures + ["ratio", "bar", "holds"]
    lines, holds = [], []
    for bar in requirement.bars:
        line, held = bar_line(bar, results, has_figures, quick)
        lines.append(line)
        holds += [held] if held is not None else []
    print(f"\n### {requirement.title}\n\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    print("\n".join(lines))
    return holds


def bar_line(bar: Bar, results: Results, has_figures: bool, quick: bool) -> tuple[str, bool | None]:
    """One cell of a requirement as a line of its table, and whether it holds; None where it was not run."""
    cell = bar.cell.quick() if quick else bar.cell
    other = cell if bar.against.cell is None else (bar.against.cell.quick() if quick else bar.against.cell)
    wanted = [(cell, bar.method)] + ([] if bar.against.is_published else [(other, bar.against.method)])
    done = results.complete(wanted)
    shown = [results.values(cell, name, bar.criterion, done) for name in results.study.methods]
    noise = results.values(cell, TRUTH, "ec1", done)
    parts = [cell.key, str(len(done)), mean_text(noise).split(" ")[0], *(mean_text(values) for values in shown)]
    parts += [figure_text(bar)] if has_figures else []
    if not done:
        return f"| {' | '.join([*parts, 'not run', f'{bar.most:g}', '-'])} |", None
    ratio, error = bar_ratio(bar, cell, other, results, done)
    limit = bar.most + (error if bar.slack and np.isfinite(error) else 0.0)
    holds = ratio < limit if bar.strict else ratio <= limit
    sign = ("< " if bar.strict else "") + f"{bar.most:g}" + (f" + {error:.3f}" if bar.slack else "")
    said = "quick" if quick else "yes" if holds else "**no**"
    return f"| {' | '.join([*parts, f'{ratio:.3f} ± {error:.3f}', sign, said])} |", bool(holds)


def bar_ratio(bar: Bar, cell: Cell, other: Cell, results: Results, done: list[int]) -> tuple[float, float]:
    """Ratio of a bar and its standard error."""
    values = results.values(cell, bar.method, bar.criterion, done)
    if not bar.against.is_published:
        return ratio_of_means(values, results.values(other, bar.against.method, bar.criterion, done))
    figure = published(bar.cell, bar.against.method, bar.criterion.upper())
    assert figure is not None
    return ratio_of_means(values, np.full(len(values), figure))


def figure_text(bar: Bar) -> str:
    """The paper's figures beside a bar: the one it is held against, or both parts of the paper's own ratio."""
    figure = published(bar.cell, bar.against.method, bar.criterion.upper())
    own = published(bar.cell, bar.paper, bar.criterion.upper()) if bar.paper else None
    if own is not None and figure is not None:
        return f"{own:.4f} / {figure:.4f} = {own / figure:.2f}"
    return "-" if figure is None else f"{figure:.4f}"


def print_tables(store: Path, groups: Sequence[str], quick: bool) -> None:
    found = Store(store).read()
    others = {key.version for key in found} - {condshap.__version__}
    if others:
        print(f"Left out: results of condshap {', '.join(sorted(others))}. This is {condshap.__version__}.\n")
    names = [name for group in groups for name in GROUPS[group]]
    print(f"{machine()}\n\n{NOTE}")
    if quick:
        print("\n**Quick versions of the cells: they show that everything runs, and nothing about any bar.**")
    holds: list[bool] = []
    for requirement in requirements():
        if requirement.study in names:
            study = shrink(STUDIES[requirement.study]) if quick else STUDIES[requirement.study]
            holds += print_requirement(requirement, Results(study, found), quick)
    if not quick:
        print(f"\n{sum(holds)} of {len(holds)} bars that were run hold.")
    print("\n### Costs, means over repetitions\n")
    print_costs(found, names)


def print_costs(found: dict[Key, Result], names: Sequence[str]) -> None:
    """Print seconds and model rows of every cell and method."""
    heads = "study | cell | method | R | CPU s fit | CPU s explain | wall s | model rows | networks | forest"
    print(f"| {heads} |\n|{' --- |' * 10}")
    groups: dict[tuple[str, ...], list[Result]] = {}
    for key, result in found.items():
        if key.study.removesuffix("-quick") in names and key.version == condshap.__version__:
            name = (key.study, key.cell, key.method, result.device, result.forest)
            groups.setdefault(name, []).append(result)
    for (study, cell, method, device, forest), results in groups.items():
        seconds = [f"{np.mean([getattr(r, name) for r in results]):.1f}" for name in ("cpu_fit", "cpu_explain", "wall")]
        rows = f"{np.mean([r.n_evaluations for r in results]):.0f}"
        print(f"| {' | '.join([study, cell, method, str(len(results)), *seconds, rows, device, forest])} |")


def shrink(study: Study) -> Study:
    """Version of a study that only shows that everything runs."""
    return replace(study, name=f"{study.name}-quick", cells=tuple(cell.quick() for cell in study.cells))


def chosen_study(name: str, given: argparse.Namespace) -> Study:
    """Study as asked for on the command line."""
    study = shrink(STUDIES[name]) if given.quick else STUDIES[name]
    count = given.repetitions or (2 if given.quick else len(study.repetitions))
    study = replace(study, repetitions=tuple(range(given.first, given.first + count)))
    if given.methods:
        study = replace(study, methods=tuple(given.methods))
    if given.cells:
        study = replace(study, cells=tuple(c for c in study.cells if any(part in c.key for part in given.cells)))
    return study


def run_accuracy(given: argparse.Namespace) -> int:
    """Run what is missing; returns the number of failures."""
    failures = []
    options = {"again": given.again, "device": given.device, "forest": given.forest, "progress": given.progress}
    for name in (name for group in given.only for name in GROUPS[group]):
        failures += run(chosen_study(name, given), given.jobs, given.store, **options)
    for failure in failures:
        print(f"FAILED {failure.cell} | {failure.method} | {failure.repetition}\n{failure.reason}", file=sys.stderr)
    return len(failures)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("accuracy", "table"))
    groups = tuple(name for name in GROUPS if name != "informative")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(groups), help=",".join(groups))
    parser.add_argument("--repetitions", type=int, help="how many; by default 10 for burr and missing, 6, 6, 5, 6")
    parser.add_argument("--first", type=int, default=0, help="number of the first repetition, which seeds its data")
    parser.add_argument("--methods", nargs="+", help="these and no others, e.g. gaussian vaeac 'vaeac:width=64'")
    parser.add_argument(
        "--cells", nargs="+", metavar="PART", help="only cells whose key holds one of these, e.g. 'M=5 N=1000'"
    )
    parser.add_argument("--again", nargs="*", default=[], metavar="METHOD", help="run these once more")
    parser.add_argument("--jobs", type=int, default=1, help="repetitions at a time")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "auto"), help="where networks live")
    parser.add_argument("--forest", default="cpu", choices=("sklearn", "cpu", "cuda"), help="what evaluates forests")
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/vaeac.jsonl"))
    parser.add_argument("--quick", action="store_true", help="2 repetitions, 50 trees, 30 rows: to see that it runs")
    parser.add_argument("--progress", action="store_true", default=None, help="a bar even where there is no terminal")
    given = parser.parse_args()
    unknown = [name for name in given.only if name not in GROUPS]
    if unknown:
        parser.error(f"--only takes {', '.join(groups)}, got {', '.join(unknown)}")
    return given


def main() -> None:
    given = parse()
    if given.command == "table":
        print_tables(given.store, given.only, given.quick)
    elif run_accuracy(given):
        sys.exit(1)


if __name__ == "__main__":
    main()
