"""Command line of the studies -> runs, tables and figures; ``condshap study`` and ``python -m condshap.studies`` share it.

Exit codes: 0 on success, 1 with a clear message on stderr, 2 when the command line itself is wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from condshap.exceptions import CondShapError, OptionError
from condshap.storage.writing import write_whole
from condshap.studies.asked import chosen_part, known_seconds, older_files, store_of, wanted_works
from condshap.studies.problems.abalone import AbaloneCell
from condshap.studies.running.catalogue import STUDIES, Entry, find_study
from condshap.studies.running.methods import available_methods


def main(arguments: Sequence[str] | None = None, prog: str = "condshap study") -> int:
    """Run a command; returns its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    given = make_parser(prog).parse_args(words, argparse.Namespace(words=words))
    try:
        code: int = given.command(given)
    except CondShapError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        place = error.filename or "a file"
        print(f"Error: {place} must be readable and writable, but {error.strerror or error}.", file=sys.stderr)
        return 1
    return code


def make_parser(prog: str) -> argparse.ArgumentParser:
    """Parser of all commands."""
    about = "Run the paper's studies and compare the results with its tables."
    parser = argparse.ArgumentParser(prog=prog, description=about)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    small = "categorical --quick"
    listing = commands.add_parser("list", help="list the studies", epilog=f"example: {prog} list --json")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(command=list_studies)
    about = "run the parts of a study that have no results yet"
    _run_parser(commands.add_parser("run", help=about, epilog=f"example: {prog} run {small} --repetitions 2"))
    about = "say what studies still lack, and how many minutes of this machine that takes"
    _plan_parser(commands.add_parser("plan", help=about, epilog=f"example: {prog} plan mixed-low --jobs 16"))
    about = "compare results with the paper's, as Markdown, CSV or JSON"
    _table_parser(commands.add_parser("table", help=about, epilog=f"example: {prog} table {small} --csv"))
    about = "draw the figures of a study"
    _plot_parser(commands.add_parser("plot", help=about, epilog=f"example: {prog} plot {small} --out figures"))
    about = "write one page with every cell of the paper's tables"
    _summary_parser(commands.add_parser("summary", help=about, epilog=f"example: {prog} summary --store results"))
    return parser


def _run_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", help="names of studies; 'list' shows them all")
    _choice_options(parser)
    _machine_options(parser)
    parser.add_argument("--threads", type=int, default=1, help="threads of each process while it fits a forest")
    parser.add_argument(
        "--again", type=_methods, default=(), metavar="METHODS", help="run these methods again, whatever the store has"
    )
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="begin nothing that would not be done after so many minutes"
    )
    parser.add_argument("--progress", action="store_true", default=None, help="show progress even without a terminal")
    parser.set_defaults(command=run_study)


def _plan_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", help="names of studies; 'list' shows them all")
    _choice_options(parser)
    _machine_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=plan_studies)


def _summary_parser(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", type=Path, default=Path(), metavar="FOLDER", help="folder with files of results")
    _older_option(parser)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write to a file instead of printing")
    parser.set_defaults(command=summarise_studies)


def _machine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, default=1, help="repetitions to run at once, each in its own process")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "auto"), help="where to run networks")
    parser.add_argument("--forest", default="cpu", choices=("sklearn", "cpu", "cuda"), help="how to evaluate forests")
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="file for results, a folder for several; default: NAME.jsonl"
    )
    _older_option(parser)


def _table_parser(parser: argparse.ArgumentParser) -> None:
    _name_option(parser)
    _choice_options(parser)
    parser.add_argument("--store", type=Path, action="append", metavar="FILE", help="file of results; may be repeated")
    _older_option(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="CSV instead of Markdown")
    form.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write to a file instead of printing")
    parser.add_argument("--of-version", metavar="VERSION", help="use the results of this version of condshap")
    parser.set_defaults(command=make_table)


def _plot_parser(parser: argparse.ArgumentParser) -> None:
    _name_option(parser)
    _choice_options(parser)
    criteria = ("ec1", "ec2", "ec3")
    parser.add_argument("--criterion", choices=criteria, help="draw this one only; default: all of the study's tables")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder for the PNG files")
    parser.add_argument("--store", type=Path, action="append", metavar="FILE", help="file of results; may be repeated")
    parser.add_argument("--of-version", metavar="VERSION", help="use the results of this version of condshap")
    _older_option(parser)
    parser.set_defaults(command=make_plots)


def _older_option(parser: argparse.ArgumentParser) -> None:
    about = "file of results by older defaults, or a folder of such files, for what no other file has; may be repeated"
    parser.add_argument("--older", type=Path, action="append", default=[], metavar="FILE", help=about)


def _name_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of a study; 'list' shows them all")


def _choice_options(parser: argparse.ArgumentParser) -> None:
    """Options that choose a part of a study; lists are separated by commas."""
    parser.add_argument("--M", type=_listed(int), metavar="5,10", help="numbers of features")
    parser.add_argument("--n-train", type=_listed(int), metavar="100,1000", help="numbers of training rows")
    parser.add_argument("--rho", type=_listed(float), metavar="0,0.5", help="correlations")
    parser.add_argument("--levels", type=_listed(int), metavar="3,4", help="numbers of levels")
    parser.add_argument("--methods", type=_methods, help="only these methods, e.g. gaussian,'vaeac:width=64,latent=16'")
    parser.add_argument("--repetitions", type=int, metavar="R", help="number of repetitions")
    parser.add_argument(
        "--first", type=int, metavar="I", help="number of the first repetition; the number is the seed of its data"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small versions of a few cells, to check that everything runs"
    )


def _listed(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def parse(text: str) -> tuple[Any, ...]:
        return tuple(kind(part) for part in text.split(","))

    parse.__name__ = f"list of {kind.__name__}"  # argparse says "invalid list of int value"
    return parse


def _methods(text: str) -> tuple[str, ...]:
    """Names of methods separated by commas, which options of a method may hold, too.

    >>> _methods("gaussian,vaeac:width=64,size_probabilities=(0.5,0.5),my.own.Approach")
    ('gaussian', 'vaeac:width=64,size_probabilities=(0.5,0.5)', 'my.own.Approach')
    """
    names: list[str] = []
    for part in text.split(","):
        head = part.partition(":")[0].strip()
        is_method = head in available_methods() or re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", head)
        if names and ":" in names[-1] and not is_method:
            names[-1] += f",{part}"
        else:
            names.append(part.strip())
    return tuple(names)


def _notes(stores: Sequence[Path]) -> str:
    """What a person has to say about results: files beside the stores, with the ending .notes.md."""
    paths = [path.with_suffix(".notes.md") for path in stores]
    return "\n\n".join(path.read_text() for path in paths if path.is_file())


def _deliver(text: str, path: Path | None) -> int:
    if path is None:
        print(text, end="")
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text, "a table")
    print(f"Written: {path}")
    return 0


def list_studies(given: argparse.Namespace) -> int:
    """Print every study with its size."""
    if given.json:
        print(json.dumps([_entry_facts(name, entry) for name, entry in STUDIES.items()], indent=2))
        return 0
    width = max(map(len, STUDIES))
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize  # a line each for programs
    for name, entry in STUDIES.items():
        study = entry.study
        cells = "1 cell" if len(study.cells) == 1 else f"{len(study.cells)} cells"
        size = f"{cells}, {len(study.methods)} methods, R = {len(study.repetitions)}"
        line = f"{name:{width}}  {entry.about}" + (f"; {size}" if study.cells else "")
        print(textwrap.fill(line, columns, subsequent_indent=" " * (width + 2)))
    return 0


def _entry_facts(name: str, entry: Entry) -> dict[str, Any]:
    study = entry.study
    sizes = {"cells": len(study.cells), "methods": list(study.methods), "repetitions": len(study.repetitions)}
    return {"name": name, "about": entry.about, **sizes}


def run_study(given: argparse.Namespace) -> int:
    """Run what stores lack of some studies."""
    from condshap.studies.running.runner import How, run_all

    works = wanted_works(given)
    if given.threads < 1 or (given.minutes is not None and not given.minutes > 0):
        raise OptionError(f"--threads and --minutes must be positive, got {given.threads} and {given.minutes}.")
    until = None if given.minutes is None else time.time() + 60 * given.minutes
    expected = known_seconds(given, [work.store for work in works], given.device)
    how = How(given.device, given.forest, given.threads, until=until)
    found = run_all(works, given.jobs, how, again=given.again, expected=expected, progress=given.progress)
    for failure in found.failures:
        where = f"{failure.cell} | {failure.method} | repetition {failure.repetition}"
        print(f"FAILED {where}\n{failure.reason}", file=sys.stderr)
    for work in works:
        print(f"{len(work.study.cells)} cells of '{work.study.name}' are in {work.store}.")
    left = f"; no time for {found.left} results, which the same command goes on with" if found.left else ""
    print(f"{len(found.failures)} failures{left}.")
    return 1 if found.failures else 0


def plan_studies(given: argparse.Namespace) -> int:
    """Print what stores lack of some studies, and how many minutes that takes."""
    from condshap.studies.pages.plan_page import plan_facts, plan_text
    from condshap.studies.running.planning import make_plan

    works = wanted_works(given)
    jobs = given.jobs if given.jobs > 0 else os.cpu_count() or 1
    plan = make_plan(works, known_seconds(given, [work.store for work in works], given.device), jobs)
    print(json.dumps(plan_facts(plan), indent=2) if given.json else plan_text(plan).rstrip())
    return 0


def summarise_studies(given: argparse.Namespace) -> int:
    """Print or write one page with every cell of the paper's tables."""
    from condshap.studies.pages.overview import OTHER_LAW, PAPER, overview_lines, overview_page
    from condshap.studies.pages.reasons import Reasons
    from condshap.studies.pages.summary import Results, read_results

    results = {}
    for name in (*PAPER, *OTHER_LAW):
        study, path, older = STUDIES[name].study, given.store / f"{name}.jsonl", older_files(given, name)
        has_any = path.is_file() or older
        stores = [path] if path.is_file() else []
        results[name] = read_results(study, stores, older=older) if has_any else Results(study, {})
    reasons = Reasons.read(given.store, known_seconds(given, [given.store / "any"], "cpu"))
    command = f"condshap study {shlex.join(given.words)}"
    page = overview_page(overview_lines(results), command, reasons, _notes([given.store / "summary.jsonl"]))
    return _deliver(page, given.write)


def make_table(given: argparse.Namespace) -> int:
    """Print or write the tables of a study."""
    from condshap.studies.pages.reasons import Reasons
    from condshap.studies.pages.study_page import study_csv, study_page
    from condshap.studies.pages.summary import read_results
    from condshap.studies.pages.times_page import TIMES, times_page

    entry = find_study(given.name)
    command = f"condshap study {shlex.join(given.words)}"
    if given.name == TIMES:
        here = [path for name in STUDIES if (path := Path(f"{name}.jsonl")).is_file()]
        as_csv = given.csv or given.json
        older = [path for name in STUDIES for path in older_files(given, name)]
        page = times_page(given.store or here, command, as_csv=as_csv, version=given.of_version, older=older)
        return _deliver(_as_json(page) if given.json else page, given.write)
    study, stores = chosen_part(given.name, given), given.store or [store_of(given.name, None)]
    results = read_results(study, stores, given.of_version, older_files(given, given.name))
    if given.repetitions is not None or given.first is not None:
        results = results.only(study.repetitions)
    if given.csv or given.json:
        text = study_csv(entry, results)
        return _deliver(_as_json(text) if given.json else text, given.write)
    reasons = Reasons.read(stores[0].parent, known_seconds(given, stores, "cpu"))
    return _deliver(study_page(entry, results, command, _notes(stores), reasons), given.write)


def _as_json(csv: str) -> str:
    """Lines of a CSV table as JSON, null where nothing is known."""
    import pandas as pd

    return pd.read_csv(io.StringIO(csv)).to_json(orient="records", indent=2, double_precision=15) + "\n"


def make_plots(given: argparse.Namespace) -> int:
    """Draw the figures of a study: of its results, or of what they illustrate, which is then computed here."""
    entry = find_study(given.name)
    given.out.mkdir(parents=True, exist_ok=True)  # a folder that cannot be made should not wait for the numbers
    for path in _figures(entry, given):
        print(f"Written: {path}")
    return 0


def _figures(entry: Entry, given: argparse.Namespace) -> Iterator[Path]:
    from condshap.studies.figures.style import save

    if given.name == "abalone":
        yield from _abalone_figures(given)
    elif given.name == "mixture":
        from condshap.studies.figures.mixture import abalone_mixture, draw_mixture

        few = {"n_train": 500, "epochs": 30} if given.quick else {}
        yield save(draw_mixture(*abalone_mixture(**few)), given.out, "mixture")
    else:
        from condshap.studies.figures.criteria import draw_criterion
        from condshap.studies.figures.sample_counts import draw_counts
        from condshap.studies.pages.summary import read_results

        stores = given.store or [store_of(given.name, None)]
        results = read_results(chosen_part(given.name, given), stores, given.of_version, older_files(given, given.name))
        if given.name == "monte-carlo-samples":
            yield save(draw_counts(results), given.out, given.name)
        else:
            for criterion in (given.criterion,) if given.criterion else entry.criteria:
                yield save(draw_criterion(results, criterion), given.out, f"{given.name}-{criterion}")


def _abalone_figures(given: argparse.Namespace) -> Iterator[Path]:
    from condshap.studies.figures.bars import draw_bars
    from condshap.studies.figures.densities import draw_densities
    from condshap.studies.figures.samples import draw_samples
    from condshap.studies.figures.scene import METHODS, make_scene
    from condshap.studies.figures.style import save

    cell = AbaloneCell().quick() if given.quick else AbaloneCell()
    scene = make_scene(cell, given.methods or METHODS)
    yield save(draw_samples(scene), given.out, "abalone-samples")
    yield save(draw_bars(scene), given.out, "abalone-shapley-values")
    yield save(draw_densities(scene), given.out, "abalone-responses")
