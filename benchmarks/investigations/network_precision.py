"""Would tf32, bf16 or compiled steps make networks faster on an accelerator than recorded graphs in float32 do?

Answer: too little. Graphs make training six to seven times as fast at the same accuracy; tf32 and bf16 add 6 % at most, and
compiling takes longer than it saves.

All lines come from one process. Every finished line is printed, stored and, with ``--write``, put into the page at once, and
no line is begun after ``--seconds``. The model is the design's response without noise, so the truth is the same for all
training sets.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import condshap as cs
from benchmarks.investigations.networks.arithmetic import NOT_HERE, SAMPLING, TRAINING, Arithmetic
from benchmarks.investigations.networks.sampling import Response, Sampler, clock
from benchmarks.investigations.networks.tables import sampling_table, training_table
from benchmarks.lib.measure import gpu_name, machine
from benchmarks.lib.report import FOLDER, parser, store
from benchmarks.lib.sections import write_section
from condshap.coalitions import all_coalitions
from condshap.evaluation import ec1
from condshap.studies.designs import burr_design
from condshap.studies.problems.cells import Problem
from condshap.studies.problems.truths import compute_truth
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.ensemble import Networks

NAME = "network_precision"
DESIGN_SEED, FIRST_EPOCHS = 1, 2


@dataclass(frozen=True)
class Case:
    """Burr data to train on: for each seed other rows and another start; `slow` arithmetic get one seed only."""

    n_features: int
    n_train: int
    n_seeds: int
    has_truth: bool
    slow: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What stands above the table."""
        return f"Burr M = {self.n_features}, N = {self.n_train}"


@dataclass(frozen=True)
class Size:
    """How much is done: training cases, explained rows, new rows, samples K, and epochs (None for the recipe's own)."""

    cases: tuple[Case, Case]
    n_rows: int = 100
    n_new: int = 500
    n_samples: int = 250
    epochs: int | None = None


FULL = Size((Case(10, 1000, 3, has_truth=True), Case(100, 10_000, 2, has_truth=False, slow=("eager", "compiled"))))
QUICK = Size((Case(5, 150, 2, has_truth=True), Case(10, 150, 1, has_truth=False)), 5, 20, 12, epochs=4)


@contextmanager
def complaints() -> Iterator[list[str]]:
    """Collect what is logged where a step could not be recorded."""
    found: list[str] = []
    logger, handler = logging.getLogger("condshap.vaeac.training.recorded_step"), logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage().splitlines()[0])  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def training_rows(case: Case, seed: int) -> np.ndarray:
    """Rows (N, M) of one seed."""
    return burr_design(case.n_features, DESIGN_SEED).draw(case.n_train, seed=100 + seed).to_numpy()


def train(case: Case, name: str, size: Size, device: str, *, is_late: Callable[[], bool]) -> dict[str, Any]:
    """Train once for a few epochs, then for every seed, and judge the networks in float32."""
    seeds = range(1 if name in case.slow else case.n_seeds)
    trained: list[tuple[int, float, Networks]] = []

    def fit(seed: int, epochs: int | None) -> tuple[float, Networks]:
        networks, rows = Networks(VAEACConfig(epochs=epochs), device=device), training_rows(case, seed)
        return clock(lambda: networks.fit(rows, [0] * case.n_features, seed=seed), device), networks

    with TRAINING[name].use(device, size is QUICK), complaints() as logged:
        first, _ = fit(0, FIRST_EPOCHS)
        for seed in seeds:
            if not trained or not is_late():
                trained.append((seed, *fit(seed, size.epochs)))
    fits = [judge(case, seed, seconds, networks, size, device) for seed, seconds, networks in trained]
    return {"first": first, "fits": fits, "note": logged[0] if logged else ""}


def judge(case: Case, seed: int, seconds: float, networks: Networks, size: Size, device: str) -> dict[str, Any]:
    """Figures of one training: how long, how many epochs, held-out IWAE, log-density of new rows, EC1 where it is known."""
    history = networks.history
    masks = np.random.default_rng(0).random((8, case.n_features)) < 0.5
    new = burr_design(case.n_features, DESIGN_SEED).draw(size.n_new, seed=3).to_numpy()
    return {
        "seed": seed,
        "seconds": seconds,
        "epochs": len(history.vlb),
        "iwae": float(np.nanmax(history.iwae, axis=0).mean()),
        "density": float(networks.log_likelihood(new, masks).mean()),
        **({"ec1": error_of(case, seed, networks, size, device)} if case.has_truth else {}),
    }


@cache
def truth(case: Case, n_rows: int) -> tuple[Problem, Any]:
    """Rows to explain with all coalitions, and their true Shapley values (R, M)."""
    design = burr_design(case.n_features, DESIGN_SEED)
    X, plan = design.draw(n_rows, seed=2), all_coalitions(case.n_features)
    base_value = float(design.expected_response(design.draw(100_000, seed=4)).mean())
    problem = Problem(design, X, X, None, design.expected_response, base_value, plan)
    return problem, compute_truth(problem).phi


def error_of(case: Case, seed: int, networks: Networks, size: Size, device: str) -> float:
    """EC1 of an explanation by networks that are trained already, with the default number of samples."""
    problem, phi = truth(case, size.n_rows)
    explainer = cs.Explainer(
        Response(burr_design(case.n_features, DESIGN_SEED)).to(device),
        approach="vaeac",
        coalitions=problem.plan,
        base_value=problem.base_value,
        device=device,
        seed=seed,
        progress=False,
    )
    with patch.object(Networks, "fit", return_value=networks):
        explainer.fit(training_rows(case, seed))
    return float(ec1(phi, explainer.explain(problem.X.to_numpy()).values.reshape(phi.shape)))


def steps(size: Size, device: str, is_late: Callable[[], bool]) -> Iterator[tuple[str, str, str, Callable[[], Any]]]:
    """Everything that is measured, as (table, name, why not, call); compiling last, because it may take long."""
    small, large = size.cases
    samplers: list[Sampler] = []

    def sampler() -> Sampler:
        if not samplers:
            design = burr_design(small.n_features, DESIGN_SEED)
            networks = Networks(VAEACConfig(epochs=size.epochs), device=device)
            networks.fit(training_rows(small, 0), [0] * small.n_features)
            samplers.append(Sampler(networks, design, design.draw(size.n_rows, seed=2).to_numpy(), size.n_samples))
        return samplers[0]

    def missing(arithmetic: Arithmetic) -> str:
        return NOT_HERE if arithmetic.only_cuda and device != "cuda" else ""

    def training(case: Case, names: Sequence[str]) -> Iterator[tuple[str, str, str, Callable[[], Any]]]:
        for name in names:
            call = lambda name=name: train(case, name, size, device, is_late=is_late)  # noqa: E731
            yield case.title, name, missing(TRAINING[name]), call

    yield from training(small, ("eager", "graphs", "tf32", "bf16"))
    for name, arithmetic in SAMPLING.items():
        yield "sampling", name, missing(arithmetic), lambda one=arithmetic: sampler().measure(one)
    yield "sampling", "other", "", lambda: sampler().other_numbers()
    yield from training(large, ("graphs", "tf32", "bf16", "eager"))
    yield from training(small, ("compiled",))
    yield from training(large, ("compiled",))


def attempt(call: Callable[[], Any], why_not: str) -> dict[str, Any]:
    """Measure, or say in one line why that was not possible: the other lines are still wanted."""
    if why_not:
        return {"note": why_not}
    try:
        return dict(call())
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"note": f"{type(error).__name__}: {lines[0][:160]}"}


def page(found: dict[str, dict[str, Any]], size: Size, device: str) -> str:
    """All tables with what is known so far."""
    text = [machine(gpu=device == "cuda")]
    if size is QUICK:
        text += ["**Tiny sizes: they show that everything runs, and nothing about speed or accuracy.**"]
    baseline = "graphs" if device == "cuda" else "eager"
    for case in size.cases:
        text += [f"### Training, {case.title}", training_table(found.get(case.title, {}), baseline)]
    million = size.n_rows * (2 ** size.cases[0].n_features - 2) * size.n_samples / 1e6
    text += [
        f"### Sampling {million:.3g} million rows, {size.cases[0].title}",
        sampling_table(found.get("sampling", {})),
    ]
    return "\n\n".join(text)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(NAME, __doc__)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    options.add_argument("--seconds", type=float, default=180.0, help="begin no line after so many")
    options.add_argument(
        "--results", type=Path, metavar="FOLDER", help="where results are stored; a quick run keeps none"
    )
    given = options.parse_args(arguments)
    size, end = QUICK if given.quick else FULL, time.perf_counter() + given.seconds

    def is_late() -> bool:
        return time.perf_counter() > end

    folder = given.results or (None if given.quick else FOLDER)
    found: dict[str, dict[str, Any]] = {}
    print(
        f"starting the device: {clock(lambda: torch.eye(64, device=given.device).pow(2), given.device):.1f} s",
        flush=True,
    )
    for table, name, why_not, call in steps(size, given.device, is_late):
        start = time.perf_counter()
        line = attempt(call, why_not or (f"not begun within {given.seconds:g} s" if is_late() else ""))
        found.setdefault(table, {})[name] = line
        print(f"{table}, {name} ({time.perf_counter() - start:.1f} s): {line}", flush=True)
        if folder:
            store(NAME, {"device": gpu_name() if given.device == "cuda" else "cpu", "found": found}, folder)
        if folder and given.write:
            write_section(folder / f"{NAME}.md", NAME, page(found, size, given.device))
    print(f"\n{page(found, size, given.device)}")


if __name__ == "__main__":
    main()
