"""CPU seconds, peak memory and the machine, the same way in every benchmark."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import condshap


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
    return f"{', '.join(parts)}; Python {platform.python_version()}, condshap {condshap.__version__}"


def gpu_name() -> str:
    """Name of the accelerator that torch sees."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator"


def run_alone(module: str, *arguments: str) -> str:
    """Run a benchmark module in a fresh process, so that memory and caches of one case do not help another.

    BLAS gets one thread: CPU seconds of waiting threads on a busy machine say nothing about the code.
    """
    command = [sys.executable, "-m", module, *arguments]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads).stdout
