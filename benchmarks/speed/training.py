"""CPU time of training the default `vaeac`, over that of an older version whose source is at hand.

``--before DIR`` names a checkout of the older version: ``git worktree add DIR 9261e33``, which had neither advice, nor
warm-up, nor companions. Both train on the same tables with the same seeds, in turn, each in a process of its own with one
thread. Of the repetitions of a seed the quickest counts; networks stop early, so seeds differ, and their times are added.
``--only`` runs some of the tables and keeps what is stored of the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.lib.measure import ONE_THREAD
from benchmarks.lib.report import parser, publish, read, table
from condshap import datasets
from condshap.studies.problems.cells import BurrCell, MixedCell

WORKER = Path(__file__).with_name("training_worker.py")
NOW = Path(__file__).parents[2]
SEEDS = 2


def make_tables() -> dict[str, Callable[[int], pd.DataFrame]]:
    """Training rows of a repetition, by the name of the table; of real tables they are always the same."""
    from benchmarks.league.designs import Normal, draw_rows

    cells = {
        **{f"mixed, M = {M}, N = {n:,}": MixedCell(f"M{M}", 0.3, n, n_rows=2) for M, n in ((4, 100), (4, 1000), (6, 1000))},
        **{f"Burr, M = {M}, N = {n:,}": BurrCell(M, n, n_rows=2, n_trees=2) for M, n in ((5, 100), (5, 1000), (10, 1000))},
    }  # fmt: skip
    found: dict[str, Callable[[int], Any]] = {
        name: lambda repetition, cell=cell: cell.make_problem(repetition).X_train for name, cell in cells.items()
    }
    found["normal, M = 8, N = 1,000"] = lambda repetition: draw_rows(Normal("factor", 8, 1000), repetition)[0]
    found["penguins"] = lambda _: datasets.load_penguins().X_train
    return found


class Trainer:
    """A process that trains by one version."""

    def __init__(self, checkout: Path) -> None:
        if not (checkout / "src" / "condshap").is_dir():
            raise SystemExit(f"--before must be a checkout of condshap with a folder src/condshap, got {checkout}.")
        paths = {"PYTHONPATH": str(checkout / "src")}
        self.process = subprocess.Popen(
            [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | ONE_THREAD | paths,
        )  # fmt: skip

    def seconds(self, path: Path, seed: int) -> float:
        """CPU seconds of training on a stored table."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, seed, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def compare(
    make: Callable[[int], pd.DataFrame], versions: Sequence[Trainer], folder: Path, n_repeats: int
) -> list[dict[str, float]]:
    """Quickest seconds of every seed, before and now."""
    found = []
    for seed in range(SEEDS):
        path = folder / "table.pkl"
        make(seed).to_pickle(path)
        times = [[version.seconds(path, seed) for version in versions] for _ in range(n_repeats)]
        before, now = (min(some) for some in zip(*times, strict=True))
        found.append({"before": before, "now": now, "repeats": n_repeats})
    return found


def run(before: Path, wanted: str, n_repeats: int) -> Iterator[tuple[str, list[dict[str, float]]]]:
    """Compare on every table whose name has the text that is wanted."""
    versions = [Trainer(before), Trainer(NOW)]
    with tempfile.TemporaryDirectory() as folder:
        for name, make in make_tables().items():
            if wanted in name:
                yield name, compare(make, versions, Path(folder), n_repeats)
    for version in versions:
        version.close()


def line_of(name: str, found: Sequence[dict[str, float]]) -> dict[str, str]:
    """Sums over the seeds, their ratio and that of each seed."""
    before, now = (sum(one[key] for one in found) for key in ("before", "now"))
    each = ", ".join(f"{one['now'] / one['before']:.2f}" for one in found)
    shown = {"before, CPU s": f"{before:.1f}", "now": f"{now:.1f}", "ratio": f"{now / before:.2f}", "by seed": each}
    return {"training rows": name, **shown}


def main(arguments: list[str] | None = None) -> None:
    options = parser("training", __doc__)
    options.add_argument("--before", type=Path, required=True, metavar="DIR", help="checkout of the older version")
    options.add_argument("--only", default="", metavar="TEXT", help="tables whose names have this")
    options.add_argument("--repeats", type=int, default=2, metavar="R", help="of every seed")
    given = options.parse_args(arguments)
    sys.argv = [
        "DIR" if part == str(given.before) else part for part in sys.argv
    ]  # results name no folder of a machine
    found = {}
    for name, times in run(given.before.resolve(), given.only, given.repeats):
        found[name] = times
        print(line_of(name, times), file=sys.stderr, flush=True)
    stored = read("training")
    found = {**(stored["results"] if stored and given.only else {}), **found}
    lines = [line_of(name, found[name]) for name in make_tables() if name in found]
    publish("training", found, table(lines), write=given.write)


if __name__ == "__main__":
    main()
