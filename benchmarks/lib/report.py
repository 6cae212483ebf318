"""Results of a benchmark -> NAME.json with machine, versions, command and date, and tables on screen and in NAME.md.

A page of ``benchmarks/results`` has text written by hand and, between marks, the tables that ``--write`` puts there.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.lib.measure import installed_versions, machine
from benchmarks.lib.sections import write_section, write_text

FOLDER = Path(__file__).parents[1] / "results"
PACKAGES = ("condshap", "numpy", "scipy", "scikit-learn", "pandas", "torch", "numba")


def page_of(name: str) -> Path:
    """Page of a benchmark."""
    return FOLDER / f"{name}.md"


def parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """Parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--write", action="store_true", help=f"put the tables into benchmarks/results/{name}.md")
    return made


def about_this_run(name: str) -> dict[str, Any]:
    """Machine, versions, command and date."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", name, *map(without_place, sys.argv[1:])]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **installed_versions(PACKAGES)},
    }


def without_place(argument: str) -> str:
    """A folder of this machine tells others nothing.

    >>> without_place("/home/somebody/old"), without_place("--write")
    ('DIR', '--write')
    """
    return "DIR" if Path(argument).is_absolute() else argument


def store(name: str, results: Any, folder: Path = FOLDER, *, benchmark: str | None = None) -> Path:
    """Write results and all about the run to NAME.json; the `benchmark` may have another name than its results."""
    path = folder / f"{name}.json"
    write_text(path, json.dumps({**about_this_run(benchmark or name), "results": results}, indent=1) + "\n")
    return path


def read(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What `store` has written, None if there is no such file."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def publish(name: str, results: Any, text: str, *, write: bool, about: str = "", page: str | None = None) -> None:
    """Store results, print their tables, and put these into the section of that name if asked for.

    Parameters
    ----------
    name : of the JSON and of the section
    about : machine and versions; by default those of this process
    page : name of the page, if it is not that of the section
    """
    path = store(name, results, benchmark=page)
    text = f"{about or machine()}\n\n{text}"
    print(text)
    if write:
        write_section(page_of(page or name), name, text)
    print(f"\nResults: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}", file=sys.stderr)


def publish_rows(name: str, text: str, *, write: bool) -> None:
    """Publish the tables of a benchmark that has no other results: their lines are stored."""
    publish(name, rows_of(text), text, write=write)


def table(lines: Sequence[dict[str, str]]) -> str:
    """Markdown table of lines that all have the same columns."""
    heads = list(lines[0])
    rows = [f"| {' | '.join(parts)} |" for parts in (heads, *(line.values() for line in lines))]
    rows.insert(1, f"|{' --- |' * len(heads)}")
    return "\n".join(rows)


def rows_of(text: str) -> list[dict[str, str]]:
    """Lines of all Markdown tables in a text, by the heads of their columns."""
    rows, heads, last = [], None, ""
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = None
        elif line.startswith("| ---"):
            heads = last.strip("|").split("|")
        elif heads is not None:
            cells = zip(heads, line.strip("|").split("|"), strict=True)
            rows.append({head.strip(): cell.strip() for head, cell in cells})
        last = line
    return rows


def yes(holds: bool) -> str:
    """Whether something holds, such that a failure stands out."""
    return "yes" if holds else "**no**"
