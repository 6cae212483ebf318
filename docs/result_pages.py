"""Make the pages and figures of results against the paper again, from the stored results: ``python docs/result_pages.py``.

``--only pages`` or ``--only figures`` makes these alone. The figures of Abalone and of the mixture train networks, which
takes minutes, and have commands of their own in `docs/results/data/abalone.notes.md`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from condshap.studies.commands import main

ROOT = Path(__file__).parents[1]
DATA, OLDER, PAGES, FIGURES = (f"docs/results{part}" for part in ("/data", "/data/older", "", "/figures"))
TABLES = (
    "continuous-low", "continuous-high", "continuous-high-formula", "mixed-low", "mixed-high", "mixed-high-formula",
    "categorical", "monte-carlo-samples", "abalone",
)  # fmt: skip
DRAWN = (
    "continuous-low", "continuous-high", "continuous-high-formula", "mixed-low", "mixed-high-formula", "categorical",
)  # fmt: skip


def page_commands() -> dict[str, list[str]]:
    """Arguments of ``condshap study`` by the page that they write; a study without results has none."""
    stores = [name for name in TABLES if (ROOT / DATA / f"{name}.jsonl").is_file()]
    found = {
        name: ["table", name, "--store", f"{DATA}/{name}.jsonl", "--older", OLDER, "--write", f"{PAGES}/{name}.md"]
        for name in stores
    }
    all_stores = [word for name in stores for word in ("--store", f"{DATA}/{name}.jsonl")]
    times = f"{PAGES}/computation-times.md"
    found["computation-times"] = ["table", "computation-times", *all_stores, "--older", OLDER, "--write", times]
    found["summary"] = ["summary", "--store", DATA, "--older", OLDER, "--write", f"{PAGES}/summary.md"]
    return found


def figure_commands() -> list[list[str]]:
    """Arguments of ``condshap study`` that draw figures of results."""
    return [
        ["plot", name, "--store", f"{DATA}/{name}.jsonl", "--older", OLDER, "--criterion", "ec1", "--out", FIGURES]
        for name in DRAWN
        if (ROOT / DATA / f"{name}.jsonl").is_file()
    ]


def run() -> None:
    """Make what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("pages", "figures"))
    only = parser.parse_args().only
    os.chdir(ROOT)
    commands = [] if only == "figures" else list(page_commands().values())
    commands += [] if only == "pages" else figure_commands()
    for words in commands:
        if main(words):
            raise SystemExit(1)


if __name__ == "__main__":
    run()
