"""Command line of the studies -> runs, tables and figures; ``condshap study`` and ``python -m condshap.studies`` share it.

Exit codes: 0 on success, 1 with a clear message on stderr, 2 when the command line itself is wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from condshap.exceptions import CondShapError, OptionError
from condshap.storage.writing import write_whole
from condshap.studies.problems.abalone import AbaloneCell
from condshap.studies.running.catalogue import STUDIES, Choice, Entry, choose, find_study
from condshap.studies.running.methods import available_methods
from condshap.studies.running.runner import Study


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
    about = "compare results with the paper's, as Markdown, CSV or JSON"
    _table_parser(commands.add_parser("table", help=about, epilog=f"example: {prog} table {small} --csv"))
    about = "draw the figures of a study"
    _plot_parser(commands.add_parser("plot", help=about, epilog=f"example: {prog} plot {small} --out figures"))
    return parser


def _run_parser(parser: argparse.ArgumentParser) -> None:
    _choice_options(parser)
    parser.add_argument("--jobs", type=int, default=1, help="repetitions to run at once, each in its own process")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "auto"), help="where to run networks")
    parser.add_argument("--forest", default="cpu", choices=("sklearn", "cpu", "cuda"), help="how to evaluate forests")
    parser.add_argument("--store", type=Path, metavar="FILE", help="file for results; default: NAME.jsonl")
    parser.add_argument(
        "--again", type=_methods, default=(), metavar="METHODS", help="run these methods again, whatever the store has"
    )
    parser.add_argument("--progress", action="store_true", default=None, help="show progress even without a terminal")
    parser.set_defaults(command=run_study)


def _table_parser(parser: argparse.ArgumentParser) -> None:
    _choice_options(parser)
    parser.add_argument("--store", type=Path, action="append", metavar="FILE", help="file of results; may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="CSV instead of Markdown")
    form.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write to a file instead of printing")
    parser.add_argument("--of-version", metavar="VERSION", help="use the results of this version of condshap")
    parser.set_defaults(command=make_table)


def _plot_parser(parser: argparse.ArgumentParser) -> None:
    _choice_options(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder for the PNG files")
    parser.add_argument("--store", type=Path, action="append", metavar="FILE", help="file of results; may be repeated")
    parser.add_argument("--of-version", metavar="VERSION", help="use the results of this version of condshap")
    parser.set_defaults(command=make_plots)


def _choice_options(parser: argparse.ArgumentParser) -> None:
    """Options that choose a part of a study; lists are separated by commas."""
    parser.add_argument("name", metavar="NAME", help="name of a study; 'list' shows them all")
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


def _chosen(entry: Entry, given: argparse.Namespace) -> Study:
    """Part of a study that the options ask for."""
    if not entry.study.cells:
        raise OptionError(f"this command needs a study with cells, but '{given.name}' has none: {entry.about}.")
    names = ("M", "n_train", "rho", "levels", "methods", "repetitions", "first", "quick")
    return choose(entry, Choice(**{name: getattr(given, name) for name in names}))


def _store(given: argparse.Namespace) -> Path:
    return Path(f"{given.name}.jsonl") if given.store is None else given.store


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
    """Run what a store lacks of a study."""
    from condshap.studies.running.runner import run

    study = _chosen(find_study(given.name), given)
    if given.jobs == 0:
        raise OptionError("--jobs must be at least 1, or -1 for one per core, got 0.")
    failures = run(
        study, given.jobs, _store(given), again=given.again, device=given.device, forest=given.forest,
        progress=given.progress,
    )  # fmt: skip
    for failure in failures:
        where = f"{failure.cell} | {failure.method} | repetition {failure.repetition}"
        print(f"FAILED {where}\n{failure.reason}", file=sys.stderr)
    print(f"{len(study.cells)} cells of '{study.name}' are in {_store(given)}; {len(failures)} failures.")
    return 1 if failures else 0


def make_table(given: argparse.Namespace) -> int:
    """Print or write the tables of a study."""
    from condshap.studies.pages.study_page import study_csv, study_page
    from condshap.studies.pages.summary import read_results
    from condshap.studies.pages.times_page import TIMES, times_page

    entry = find_study(given.name)
    command = f"condshap study {shlex.join(given.words)}"
    if given.name == TIMES:
        here = [path for name in STUDIES if (path := Path(f"{name}.jsonl")).is_file()]
        as_csv = given.csv or given.json
        page = times_page(given.store or here, command, as_csv=as_csv, version=given.of_version)
        return _deliver(_as_json(page) if given.json else page, given.write)
    study, stores = _chosen(entry, given), given.store or [_store(given)]
    results = read_results(study, stores, given.of_version)
    if given.repetitions is not None or given.first is not None:
        results = results.only(study.repetitions)
    if given.csv or given.json:
        text = study_csv(entry, results)
        return _deliver(_as_json(text) if given.json else text, given.write)
    return _deliver(study_page(entry, results, command, _notes(stores)), given.write)


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

        results = read_results(_chosen(entry, given), given.store or [_store(given)], given.of_version)
        if given.name == "monte-carlo-samples":
            yield save(draw_counts(results), given.out, given.name)
        else:
            for criterion in entry.criteria:
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
