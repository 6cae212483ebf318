"""Call -> CPU seconds, peak memory and what the model was asked for, the same way in every benchmark.

Nothing here needs condshap before it is asked about it: the peers are measured by this file in an environment of their own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""BLAS gets one thread: CPU seconds of waiting threads on a busy machine say nothing about the code."""


@dataclass(frozen=True)
class Measured:
    """Result of a call, its CPU and wall seconds, and the most memory it held beyond what was there before, in MiB."""

    result: Any
    cpu: float
    wall: float
    peak_mib: float


def resident_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(call: Callable[[], Any]) -> Measured:
    """Run a call once; memory is sampled every 2 ms by a thread."""
    before = resident_mib()
    peak = before
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        result = call()
    finally:
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        done.set()
        watcher.join()
    return Measured(result, cpu, wall, peak - before)


def measure_stages(explainer: Any, X_train: Any, X: Any) -> tuple[Measured, float]:
    """Fit and explain as one call, and the CPU seconds of the fit alone."""
    cpu_fit = 0.0

    def fit_and_explain() -> Any:
        nonlocal cpu_fit
        start = time.process_time()
        explainer.fit(X_train)
        cpu_fit = time.process_time() - start
        return explainer.explain(X)

    return measure(fit_and_explain), cpu_fit


def best(runs: Iterable[Measured]) -> Measured:
    """Take the run with the least CPU time, with the largest peak of all: other work on the machine only ever adds."""
    every = list(runs)
    quickest = min(every, key=lambda run: run.cpu)
    return replace(quickest, peak_mib=max(run.peak_mib for run in every))


def machine(*, gpu: bool = False) -> str:
    """One line on processor, accelerator if asked for, and versions, to stand above a table."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), name)
    parts = [name, f"{os.cpu_count()} cores", *([gpu_name()] if gpu else [])]
    import condshap

    return f"{', '.join(parts)}; Python {platform.python_version()}, condshap {condshap.__version__}"


def gpu_name() -> str:
    """Name of the accelerator that torch sees."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator"


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def run_alone(
    name: str,
    *arguments: str,
    python: str = sys.executable,
    env: Mapping[str, str] | None = None,
    checkout: Path | None = None,
) -> str:
    """Run a benchmark in a fresh process, so that memory and caches of one case do not help another; what it prints.

    With `checkout`, benchmark and library are those of that folder.
    """
    command = [python, "-m", "benchmarks", name, *arguments]
    own = {} if checkout is None else {"PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])}
    settings = os.environ | ONE_THREAD | own | dict(env or {})
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=settings, cwd=checkout).stdout


@dataclass
class Asked:
    """How often a model was called, for how many rows, and with `keep` the rows (n, M) themselves, as they came."""

    calls: int = 0
    n_rows: int = 0
    keep: bool = False
    rows: list[Any] = field(default_factory=list)

    def note(self, X: Any) -> None:
        """Note one call."""
        self.calls, self.n_rows = self.calls + 1, self.n_rows + len(X)
        if self.keep:
            self.rows.append(X.copy())

    def around(self, predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Function that predicts and notes it."""

        def noted(X: Any) -> Any:
            self.note(X)
            return predict(X)

        return noted


@contextmanager
def asked_of_models() -> Iterator[Asked]:
    """Count what condshap asks of models, by whatever way, without changing the models: trees stay known as trees."""
    from condshap.models.predictor import Predictor

    asked, whole = Asked(), {name: getattr(Predictor, name) for name in ("__call__", "predict_fast")}
    here = threading.local()

    def counted(name: str) -> Callable[..., Any]:
        def call(self: Any, rows: Any, *rest: Any, **options: Any) -> Any:
            if getattr(here, "inside", False):  # samples of other models than trees go on to __call__
                return whole[name](self, rows, *rest, **options)
            here.inside = True
            try:
                asked.note(rows)
                return whole[name](self, rows, *rest, **options)
            finally:
                here.inside = False

        return call

    for name in whole:
        setattr(Predictor, name, counted(name))
    try:
        yield asked
    finally:
        for name, function in whole.items():
            setattr(Predictor, name, function)
