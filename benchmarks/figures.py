"""Figures in prose, held against the stored results: fails where a page says something else, ``--write`` puts it right.

A page has figures such as ``<!-- figure peers/linear/lines/gaussian/cpu .2f -->0.41<!-- end -->``: where it comes from
(`benchmarks.lib.figures`), and how it is written; one address ``over`` another is their ratio. It must not begin a line,
which Markdown would take for a block of HTML. ``<!-- range growth-rows .2f -->0.52 to 0.88<!-- end -->`` has the least and
the largest of some figures, ``<!-- most growth-rows .2f -->0.88<!-- end -->`` the largest; `RANGES` says of which. Whole
tables stand between ``<!-- table NAME -->`` and ``<!-- end -->``; `TABLES` says what is in them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.lib.figures import ROOT, load, shown
from benchmarks.lib.ranges import OF_STORES
from benchmarks.lib.report import table
from benchmarks.lib.sections import write_text

PAGES = ("README.md", "benchmarks/README.md", "docs/*.md", "docs/guide/*.md")
FIGURE = re.compile(r"<!-- (?P<what>figure|range|most) (?P<address>[^>]+) (?P<form>\S+) -->(?P<says>[^<]*)<!-- end -->")
BLOCK = re.compile(r"<!-- table (?P<name>\S+) -->\n(?P<says>.*?)<!-- end -->", re.DOTALL)
OURS = {"gaussian": "`gaussian`", "ctree": "`ctree`", "vaeac": "`vaeac`"}


def beside_peers() -> str:
    """CPU seconds and errors of methods that explain the same rows."""
    lines = []
    for method, title in {
        "kernel": "shap KernelExplainer", "permutation": "shap PermutationExplainer", "tree": "shap TreeExplainer",
        "shapiq_gaussian": "shapiq GaussianImputer by hand", **{name: f"condshap {title}" for name, title in OURS.items()},
    }.items():  # fmt: skip
        line = {"method": title}
        for kind in ("linear", "forest"):
            own = next((one for one in load("peers")[kind]["lines"] if one["method"] == method), None)
            line[f"{kind}: CPU ms a row"] = "-" if own is None else f"{1000 * own['cpu'] / own['explained']:,.0f}"
            line[f"{kind}: error"] = "-" if own is None else f"{own['rel']:.3f}"
        lines.append(line)
    return table(lines)


def forest_peers() -> str:
    """CPU seconds and errors with a forest, the largest error first."""
    wanted = ("kernel", "tree", "independence", "ctree", "vaeac", "gaussian")
    lines = {line["method"]: line for line in load("peers")["forest"]["lines"]}
    return table(
        [
            {"forest of 100 trees": own["title"], "CPU seconds": f"{own['cpu']:.2f}", "rel": f"{own['rel']:.3f}"}
            for own in (lines[method] for method in wanted)
        ]
    )


def dataset_rates() -> str:
    """Rows of a dataset that are explained in a second of CPU time."""
    return table([{**line, "rows measured": f"{int(line['rows measured']):,}"} for line in load("datasets-rates")])


def dataset_costs() -> str:
    """CPU time of datasets with boosted trees: measured for as many rows as were explained, beyond that in proportion."""
    rates = [line for line in load("datasets-rates") if "boosted" in line["model"]]
    lines = []
    for power in range(3, 8):
        line = {"rows": f"{10**power:,}"}
        for rate in rates:
            n_measured, seconds = int(rate["rows measured"]), 10**power / float(rate["rows a CPU second"])
            line[rate["approach"]] = _duration(seconds) + ("" if n_measured >= 10**power else " *")
        lines.append(line)
    return table(lines)


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def beside_shapr() -> str:
    """CPU seconds beside R's shapr, of the first problem."""
    lines = load("approaches")[:5]
    heads = ("approach", "CPU s", "R shapr CPU s", "ratio", "peak MiB beyond the data")
    return table([{head: f"`{line[head]}`" if head == "approach" else line[head] for head in heads} for line in lines])


def costs() -> str:
    """CPU seconds of the paper's Burr cases."""
    titles = {
        "burr-5": "Burr, M = 5, all 32 coalitions",
        "burr-10": "Burr, M = 10, all 1024 coalitions",
        "burr-25": "Burr, M = 25, 1000 coalitions",
    }
    return table(
        [
            {"": title, **{name: shown(f"cases/cases/{case}/{name}/cpu", ".1f") for name in OURS}}
            for case, title in titles.items()
        ]
    )


ERRORS = (
    ("Burr, M = 5, forest", "continuous-low", "burr M=5 N=100"),
    ("Burr, M = 5, forest", "continuous-low", "burr M=5 N=1000"),
    ("Burr, M = 10, forest", "continuous-low", "burr M=10 N=100"),
    ("Burr, M = 10, forest", "continuous-low", "burr M=10 N=1000"),
    ("Burr, M = 10, forest", "continuous-low", "burr M=10 N=5000"),
    ("Burr, M = 25, forest, 1000 coalitions", "continuous-high-formula", "burr M=25 N=1000"),
    ("Burr, M = 50, forest, 1000 coalitions", "continuous-high-formula", "burr M=50 N=5000"),
    ("mixed, M = 4, correlation 0", "mixed-low", "M4 rho=0 N=1000"),
    ("mixed, M = 4, correlation 0.3", "mixed-low", "M4 rho=0.3 N=1000"),
    ("mixed, M = 4, correlation 0.9", "mixed-low", "M4 rho=0.9 N=1000"),
    ("mixed, M = 4, correlation 0.5", "mixed-low", "M4 rho=0.5 N=100"),
    ("mixed, M = 4, correlation 0.5", "mixed-low", "M4 rho=0.5 N=5000"),
    ("mixed, M = 25, correlation 0.5, 1000 coalitions", "mixed-high-formula", "M25 rho=0.5 N=1000"),
    ("3 factors of 4 levels, correlation 0.5", "categorical", "M=3 L=4 rho=0.5 N=1000"),
    ("Abalone, MSEv in place of EC1", "abalone", "abalone N=4077"),
)
"""Lines of the table of errors: what the data are, the study, and the cell."""


def on_common(study: str, cell: str, names: Sequence[str]) -> tuple[dict[str, float], int]:
    """Mean errors over the repetitions that all of these methods have, and how many these are."""
    key = "ec3" if study == "abalone" else "ec1"
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    for line in load(study):
        if line["method"] in found and f" {cell} " in f" {line['cell']} ":
            found[line["method"]][line["repetition"]] = line[key]
    common = set.intersection(*(set(own) for own in found.values()))
    return {name: sum(own[r] for r in sorted(common)) / len(common) for name, own in found.items()}, len(common)


def errors() -> str:
    """EC1 on the paper's designs; a study is named in the first of its lines."""
    lines, last = [], ""
    for data, study, cell in ERRORS:
        names = fitting(study)
        means, n_repetitions = on_common(study, cell, names)
        line = {"data": data, "rows": cell.rpartition("N=")[2]}
        line |= {name: f"{means[name]:.4f}" if name in means else "no categories" for name in ("independence", *OURS)}
        line |= {"repetitions": str(n_repetitions), "page": f"{{doc}}`results/{study}`" if study != last else ""}
        lines.append(line)
        last = study
    return table(lines)


def fitting(study: str) -> list[str]:
    """Approaches of the table of errors that fit the features of a study."""
    return [name for name in ("independence", *OURS) if name != "gaussian" or study.startswith("continuous")]


def continuous_errors() -> str:
    """EC1 of all approaches for continuous features."""
    names = ("independence", "empirical", "ctree", "gaussian", "copula", "vaeac")
    means, n_repetitions = on_common("continuous-low", "burr M=5 N=1000", names)
    shown_means = {name: f"{mean:.4f}" for name, mean in means.items()}
    return table([{"": "EC1", **shown_means, "repetitions": str(n_repetitions)}])


LEARNS_FROM = {
    "gaussian": "all rows", "copula": "all rows, margins at 131,073 ranks", "independence": "all rows",
    "categorical": "all rows", "empirical": "50,000 rows", "ctree": "50,000 rows", "regression_separate": "50,000 rows",
    "regression_surrogate": "262,144 rows", "vaeac": "262,144 rows, 50,000 an epoch",
}  # fmt: skip


def many_rows() -> str:
    """CPU seconds and memory of a million training rows, and CPU seconds of fewer."""
    found = {(one["approach"], one["n_train"]): one for one in load("many_rows")}
    lines = []
    for name, learns in LEARNS_FROM.items():
        fewer, million = (found.get((name, n)) for n in (100_000, 1_000_000))
        lines.append(
            {
                "approach": f"`{name}`",
                "learns from at most": learns,
                "fit of 100,000 rows, CPU s": "-" if fewer is None else f"{fewer['cpu_fit']:.1f}",
                "of 1,000,000": "-" if million is None else f"{million['cpu_fit']:.1f}",
                "then 10 rows": "-" if million is None else f"{million['cpu_explain']:.1f}",
                "peak, GiB": "-" if million is None else f"{million['peak_gib']:.2f}",
            }
        )
    return table(lines)


def normal_designs() -> str:
    """Errors on normal data, where `gaussian` has the right shape."""
    kinds = {
        "duplicates": "four of them nearly the same",
        "equal": "correlations of 0.5",
        "factor": "one common factor",
    }
    lines = []
    for design in dict.fromkeys(line["model"] for line in load("league-designs")):
        kind, n_features, n_rows = design.split("-")
        line = {"normal columns": f"{n_features}, {kinds[kind]}", "rows": n_rows}
        for name in ("gaussian", "vaeac"):
            line[OURS[name]] = shown(f"league-designs/{design}/{name}/rel", ".3f")
        over = f"league-designs/{design}/vaeac/rel over league-designs/{design}/gaussian/rel"
        lines.append({**line, "`vaeac` over `gaussian`": shown(over, ".2f")})
    return table(lines)


def over_default(names: Sequence[str], is_meant: Callable[[str], bool]) -> list[float]:
    """Errors over those of `vaeac` in the lines of the table of errors whose data are meant."""
    found = []
    for data, study, cell in ERRORS:
        if is_meant(data):
            means, _ = on_common(study, cell, fitting(study))
            found += [means[name] / means["vaeac"] for name in names if name in means]
    return found


def is_dependent(data: str) -> bool:
    """Whether the features of a line of the table of errors depend on each other."""
    return not data.endswith("correlation 0")


RANGES: dict[str, Callable[[], list[float]]] = {
    **OF_STORES,
    "independence-over-vaeac": lambda: over_default(["independence"], is_dependent),
    "gaussian-and-ctree-over-vaeac": lambda: over_default(["gaussian", "ctree"], is_dependent),
    "ctree-over-vaeac-mixed": lambda: over_default(["ctree"], lambda data: data.startswith("mixed")),
}


def range_shown(what: str, name: str, form: str) -> str:
    """Least and largest figure of a range, or the largest alone."""
    if name not in RANGES:
        raise LookupError(f"a range must be one of {', '.join(RANGES)}, got {name!r}")
    figures = RANGES[name]()
    largest = format(max(figures), form)
    return largest if what == "most" else f"{format(min(figures), form)} to {largest}"


TABLES: dict[str, Callable[[], str]] = {
    "normal-designs": normal_designs,
    "many-rows": many_rows,
    "peers": beside_peers,
    "forest-peers": forest_peers,
    "shapr": beside_shapr,
    "costs": costs,
    "errors": errors,
    "continuous-errors": continuous_errors,
    "dataset-rates": dataset_rates,
    "dataset-costs": dataset_costs,
}


def correct(page: str) -> tuple[str, list[str]]:
    """Page with every figure and table as the results have it, and what was otherwise."""
    wrong: list[str] = []

    def figure(match: re.Match[str]) -> str:
        form = match["form"]
        holds = (
            shown(match["address"], form)
            if match["what"] == "figure"
            else range_shown(match["what"], match["address"], form)
        )
        if match["says"] != holds:
            wrong.append(f"{match['address']} is {holds}, not {match['says'] or 'empty'}")
        if not page[: match.start()].rpartition("\n")[2].strip(" -*>"):
            raise LookupError(f"the figure {match['address']} must not begin a line: Markdown takes that for HTML")
        return match[0].replace(f"-->{match['says']}<", f"-->{holds}<")

    def block(match: re.Match[str]) -> str:
        if match["name"] not in TABLES:
            raise LookupError(f"a table must be one of {', '.join(TABLES)}, got {match['name']!r}")
        holds = f"\n{TABLES[match['name']]()}\n\n".replace("|  |", "| |")
        if match["says"] != holds:
            wrong.append(f"the table {match['name']} has changed")
        return f"<!-- table {match['name']} -->\n{holds}<!-- end -->"

    return BLOCK.sub(block, FIGURE.sub(figure, page)), wrong


def pages() -> Iterator[Path]:
    """Pages that may have figures."""
    for pattern in PAGES:
        yield from sorted(ROOT.glob(pattern))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare all pages; 1 if one is wrong and stays so."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put the right figures into the pages")
    given = parser.parse_args(arguments)
    any_wrong = False
    for path in pages():
        page = path.read_text()
        try:
            corrected, wrong = correct(page)
        except LookupError as error:
            raise SystemExit(f"{path.relative_to(ROOT)}: {error}.") from None
        for one in wrong:
            print(f"{path.relative_to(ROOT)}: {one}")
        if wrong and given.write:
            write_text(path, corrected)
        any_wrong |= bool(wrong)
    if any_wrong and not given.write:
        print("Run `python -m benchmarks figures --write`, and look whether the words around the figures still hold.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
