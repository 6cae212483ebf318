"""Results of a benchmark -> JSON with machine, versions, command and date, and its tables on screen or on the page."""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.measure import machine
from benchmarks.sections import write_section
from condshap.storage.writing import write_whole

FOLDER = Path(__file__).parent / "results"
PAGE = Path(__file__).parent / "README.md"
PACKAGES = ("condshap", "numpy", "scipy", "scikit-learn", "pandas", "torch", "numba")


def parser(name: str, about: str | None) -> argparse.ArgumentParser:
    """Parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--write", action="store_true", help="put the tables into their section of benchmarks/README.md")
    return made


def about_this_run(name: str) -> dict[str, Any]:
    """Machine, versions, command and date."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", name, *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **installed_versions(PACKAGES)},
    }


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def store(name: str, results: Any, folder: Path = FOLDER) -> Path:
    """Write results and all about the run to NAME.json."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    write_whole(path, json.dumps({**about_this_run(name), "results": results}, indent=1) + "\n", "results")
    return path


def read(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """What `store` has written, None if there is no such file."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def publish_tables(name: str, text: str) -> None:
    """Print the tables of a benchmark that has no other results, and store their lines."""
    print(f"{machine()}\n\n{text}")
    store(name, rows_of(text))


def publish(name: str, results: Any, text: str, *, write: bool) -> None:
    """Store results, print their tables, and put these into the section of that name if asked for."""
    path = store(name, results)
    text = f"{machine()}\n\n{text}"
    print(text)
    if write:
        write_section(PAGE, name, text)
    print(f"\nResults: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}", file=sys.stderr)


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
    """Whether a bar holds, such that a failure stands out."""
    return "yes" if holds else "**no**"
