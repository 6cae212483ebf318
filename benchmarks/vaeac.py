"""How near VAEAC comes to the truth and what it costs: what its issue must show.

``python -m benchmarks.vaeac accuracy`` runs what the store lacks, ``python -m benchmarks.vaeac table`` prints the tables,
``python -m benchmarks.vaeac speed`` measures seconds. The last two take ``--write benchmarks/README.md``, which replaces
the section there. Every finished method of a repetition is one line of the store, so a run that was stopped goes on where
it was. Truths lie beside the store, in a folder of the same name with the ending .truth.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.origins import noted
from benchmarks.sections import write_section
from benchmarks.vaeac_bars import GROUPS, STUDIES, USUAL
from benchmarks.vaeac_speed import speed_table
from benchmarks.vaeac_tables import accuracy_text, shrink
from condshap.studies.runner import Study, run


def chosen_study(name: str, given: argparse.Namespace) -> Study:
    """Study as asked for on the command line."""
    study = shrink(STUDIES[name]) if given.quick else STUDIES[name]
    count = given.repetitions or (2 if given.quick else len(study.repetitions))
    first = study.repetitions[0] if given.first is None else given.first
    study = replace(study, repetitions=tuple(range(first, first + count)))
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
        with noted(given.store):
            failures += run(chosen_study(name, given), given.jobs, given.store, **options)
    for failure in failures:
        print(f"FAILED {failure.cell} | {failure.method} | {failure.repetition}\n{failure.reason}", file=sys.stderr)
    return len(failures)


def show(text: str, section: str, page: Path | None) -> None:
    """Print tables, or write them into a section of a page."""
    if page is None:
        print(text)
    else:
        write_section(page, section, text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("accuracy", "table", "speed"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(USUAL), help=",".join(GROUPS))
    parser.add_argument("--repetitions", type=int, help="how many; by default what the issue asks for")
    parser.add_argument(
        "--first", type=int, help="number of the first repetition, which seeds its data; by default the study's own"
    )
    parser.add_argument("--methods", nargs="+", help="these and no others, e.g. gaussian vaeac 'vaeac:width=64'")
    parser.add_argument(
        "--cells", nargs="+", metavar="PART", help="only cells whose key holds one of these, e.g. 'M=5 N=1000'"
    )
    parser.add_argument("--again", nargs="*", default=[], metavar="METHOD", help="run these once more")
    parser.add_argument("--jobs", type=int, default=1, help="repetitions at a time")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "auto"), help="where networks live")
    parser.add_argument("--forest", default="cpu", choices=("sklearn", "cpu", "cuda"), help="what evaluates forests")
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/vaeac.jsonl"))
    parser.add_argument("--quick", action="store_true", help="small versions of everything: to see that it runs")
    parser.add_argument("--progress", action="store_true", default=None, help="a bar even where there is no terminal")
    parser.add_argument("--repeats", type=int, default=3, help="processes of which speed takes the best")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put tables into the page and do not print them")
    given = parser.parse_args()
    unknown = [name for name in given.only if name not in GROUPS]
    if unknown:
        parser.error(f"--only takes {', '.join(GROUPS)}, got {', '.join(unknown)}")
    if given.command == "speed" and given.device == "auto":
        parser.error("speed takes --device cpu or cuda")
    return given


def main() -> None:
    given = parse()
    if given.command == "table":
        show(accuracy_text(given.store, given.only, quick=given.quick), "vaeac accuracy", given.write)
    elif given.command == "speed":
        text = speed_table(given.device, repeats=given.repeats, quick=given.quick)
        show(text, "vaeac speed" if given.device == "cpu" else "vaeac speed cuda", given.write)
    elif run_accuracy(given):
        sys.exit(1)


if __name__ == "__main__":
    main()
