"""What training and sampling of VAEAC cost: CPU and wall seconds, each measured in a fresh process.

Burr data with M = 10 and N = 1000; sampling asks for 100 rows, all 1022
coalitions and K samples of each pair. The first call in a process comes after torch was imported and the networks were
made from their stored state; the second one has its random numbers and buffers at hand. On an accelerator the clock stops
when its work is done, and draws and predictions stay there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.lib.measure import machine, run_alone
from benchmarks.lib.report import parser, publish, rows_of, yes

if TYPE_CHECKING:
    from condshap.vaeac.ensemble import Networks

N_FEATURES, N_TRAIN, N_TREES, DESIGN_SEED = 10, 1000, 500, 1
HEADS = ("what", "CPU s", "wall s", "authors' CPU s", "at most s", "holds")


@dataclass(frozen=True)
class Size:
    """How much is done: explained rows, coalitions, trees and epochs (None for the recipe's own)."""

    n_rows: int = 100
    n_coalitions: int = 2**N_FEATURES - 2
    n_trees: int = N_TREES
    epochs: int | None = None


FULL, QUICK = Size(), Size(n_rows=5, n_coalitions=50, n_trees=20, epochs=7)


@dataclass(frozen=True)
class Seconds:
    """CPU and wall seconds of one call."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Line:
    """One line of a table: what the n-th call of a case is, what it may cost, and the authors' code on a CPU core.

    What it may cost is time that one waits for without turning to something else: half a minute for training, less than
    that for sampling; on an accelerator ten seconds and one. None where nothing is promised.
    """

    title: str
    most: float | None
    authors: float | None = None


@dataclass(frozen=True)
class Case:
    """What runs in a process of its own: a function from networks' folder, device and size, and a line for each call."""

    run: Callable[[Path, str, Size], list[Seconds]]
    lines: tuple[Line, ...]


def timed(call: Callable[[], Any], device: str) -> Seconds:
    """Run a call once; its result is let go."""
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    if device != "cpu":
        import torch

        torch.cuda.synchronize()
    return Seconds(time.process_time() - cpu, time.perf_counter() - wall)


def train_paper(_folder: Path, device: str, size: Size) -> list[Seconds]:
    """Train the paper's network by the paper's schedule: 15 restarts of 5 epochs, the best one for 195 more."""
    from condshap.vaeac.ensemble import Networks

    networks, (X, _) = Networks.paper(device=device, epochs=size.epochs), burr_rows(size)
    return [timed(lambda: networks.fit(X, [0] * N_FEATURES), device)]


def train_default(folder: Path, device: str, size: Size) -> list[Seconds]:
    """Train the default ensemble and store it, with the rows to explain, for those that sample."""
    from condshap.vaeac.config import VAEACConfig
    from condshap.vaeac.ensemble import Networks

    networks, (X, explained) = Networks(VAEACConfig(epochs=size.epochs), device=device), burr_rows(size)
    seconds = timed(lambda: networks.fit(X, [0] * N_FEATURES), device)
    arrays, about = networks.to_state()
    np.savez(folder / "networks.npz", **arrays)
    (folder / "about.json").write_text(about)
    np.save(folder / "rows.npy", explained)
    return [seconds]


def burr_rows(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Training rows (N, M) and rows to explain (R, M)."""
    from condshap.studies.designs import burr_design

    design = burr_design(N_FEATURES, seed=DESIGN_SEED)
    return design.draw(N_TRAIN, seed=1).to_numpy(), design.draw(size.n_rows, seed=2).to_numpy()


def restored(folder: Path, device: str) -> tuple[Networks, np.ndarray]:
    """Networks that `train_default` has stored, and the rows to explain."""
    from condshap.vaeac.ensemble import Networks

    with np.load(folder / "networks.npz") as arrays:
        networks = Networks.from_state(dict(arrays), (folder / "about.json").read_text(), device=device)
    return networks, np.load(folder / "rows.npy")


def proper_coalitions(size: Size) -> np.ndarray:
    """Masks (C, M) of all coalitions but the empty and the full one, or of the first of them."""
    numbers = np.arange(1, size.n_coalitions + 1)
    return (numbers[:, None] >> np.arange(N_FEATURES) & 1).astype(bool)


def sample_many(folder: Path, device: str, size: Size) -> list[Seconds]:
    """Draw 250 samples of every pair, twice."""
    return sample(folder, device, size, 250)


def sample_few(folder: Path, device: str, size: Size) -> list[Seconds]:
    """Draw 32 samples of every pair, twice."""
    return sample(folder, device, size, 32)


def sample(folder: Path, device: str, size: Size, n_samples: int) -> list[Seconds]:
    """Draw samples with networks that were just restored, and once more."""
    from condshap.vaeac.sampling.tiles import Asked

    networks, X = restored(folder, device)
    masks = proper_coalitions(size)
    return [timed(lambda: networks.draw(Asked(X, masks, n_samples)), device) for _ in range(2)]


def evaluate_forest(folder: Path, device: str, size: Size) -> list[Seconds]:
    """Evaluate a forest on 250 samples of every pair, twice."""
    from condshap.studies.designs import burr_design
    from condshap.studies.problems.cells import fit_forest
    from condshap.trees import FastTrees
    from condshap.vaeac.sampling.tiles import Asked

    design = burr_design(N_FEATURES, seed=DESIGN_SEED)
    train = design.draw(N_TRAIN, seed=1)
    forest = fit_forest(train, design.respond(train, seed=1), size.n_trees, seed=0)
    trees = FastTrees(forest, device=device)
    networks, X = restored(folder, device)
    rows = networks.draw(Asked(X, proper_coalitions(size), 250)).flatten(0, 2)
    return [timed(lambda: trees.predict_tensor(rows), device) for _ in range(2)]


SAMPLING = "sampling 25.6 million rows (100 rows x 1022 coalitions x 250), default ensemble"
FEWER = "the same pairs with K = 32 quasi-random samples"
FOREST = f"forest of {N_TREES} trees on these 25.6 million rows"
CASES = {  # by device; the default ensemble is trained before anything samples from it
    "cpu": {
        "train-paper": Case(
            train_paper, (Line("training, `VAEAC.paper()`: 15 restarts x 5 epochs, then 195, batch 64", 12, 92),)
        ),
        "train-default": Case(train_default, (Line("training, default ensemble", 25),)),
        "sample-many": Case(
            sample_many, (Line(f"{SAMPLING}, first call", 15, 380), Line(f"{SAMPLING}, second call", 15, 380))
        ),
        "sample-few": Case(sample_few, (Line(f"{FEWER}, first call", 2), Line(f"{FEWER}, second call", 2))),
    },
    "cuda": {
        "train-default": Case(train_default, (Line("training, default ensemble", 10),)),
        "sample-many": Case(
            sample_many, (Line(f"{SAMPLING}, first call", None, 380), Line(f"{SAMPLING}, second call", 1, 380))
        ),
        "forest": Case(evaluate_forest, (Line(f"{FOREST}, first call", None), Line(f"{FOREST}, second call", None))),
    },
}


def measure_case(name: str, device: str, folder: Path, *, repeats: int, quick: bool) -> list[Seconds]:
    """Seconds of every call of a case, the best of several fresh processes."""
    arguments = (name, device, str(folder), "quick" if quick else "full")
    runs = [json.loads(run_alone("vaeac_speed", "--line", *arguments)) for _ in range(repeats)]
    return [best_of([Seconds(**run[call]) for run in runs], device) for call in range(len(runs[0]))]


def best_of(runs: Sequence[Seconds], device: str) -> Seconds:
    """Run with the least seconds of the kind that counts: other work on the machine only ever adds."""
    return min(runs, key=lambda run: judged(run, device))


def judged(seconds: Seconds, device: str) -> float:
    """Seconds that count: of the CPU, or on the wall where an accelerator does the work."""
    return seconds.cpu if device == "cpu" else seconds.wall


def table_line(line: Line, seconds: Seconds, device: str, *, quick: bool) -> str:
    """One call as a line of the table."""
    authors = "-" if line.authors is None else f"{line.authors:g}"
    most = "-" if line.most is None else f"{line.most:g} {'CPU' if device == 'cpu' else 'wall'}"
    holds = "-" if line.most is None else yes(judged(seconds, device) <= line.most)
    figures = (f"{seconds.cpu:.2f}", f"{seconds.wall:.2f}", authors, most, "quick" if quick else holds)
    return f"| {' | '.join((line.title, *figures))} |"


def speed_table(device: str, *, repeats: int, quick: bool) -> str:
    """Measure all cases of a device and return their table."""
    text = ["**Tiny sizes: they show that everything runs, and nothing about speed.**\n"] if quick else []
    text += [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    with TemporaryDirectory() as folder:
        for name, case in CASES[device].items():
            found = measure_case(name, device, Path(folder), repeats=repeats, quick=quick)
            pairs = zip(case.lines, found, strict=True)
            text += [table_line(line, seconds, device, quick=quick) for line, seconds in pairs]
    return "\n".join(text)


def run_line(name: str, device: str, folder: str, size: str) -> None:
    """Run one case here, and print the seconds of its calls as JSON."""
    found = CASES[device][name].run(Path(folder), device, QUICK if size == "quick" else FULL)
    print(json.dumps([asdict(seconds) for seconds in found]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all cases of a device."""
    options = parser("vaeac_speed", __doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--repeats", type=int, default=3, help="processes of which the best counts")
    options.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that everything runs; nothing is stored"
    )
    options.add_argument("--line", nargs=4, metavar=("CASE", "DEVICE", "FOLDER", "SIZE"), help="one case by itself")
    given = options.parse_args(arguments)
    if given.line:
        run_line(*given.line)
        return
    text = speed_table(given.device, repeats=given.repeats, quick=given.quick)
    if given.quick:
        print(text)
        return
    name = "vaeac_speed" if given.device == "cpu" else "vaeac_speed_cuda"
    about = f"{machine(gpu=given.device != 'cpu')}; best of {given.repeats} processes"
    publish(name, rows_of(text), text, write=given.write, about=about, page="vaeac_speed")


if __name__ == "__main__":
    main()
