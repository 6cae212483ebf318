"""The memory budget bounds what explain holds beyond its inputs and the value table."""

import subprocess
import sys
from textwrap import dedent

import pytest

MEASURE = """
    import os, sys, threading
    from pathlib import Path

    import numpy as np

    import condshap as cs

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    approach, budget, n_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    X = np.random.default_rng(0).normal(size=(2000, 10))
    model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    explainer = cs.Explainer(model, approach=approach, n_samples=64, memory_budget=budget).fit(X)
    explainer.explain(X[:1])  # imports and pools of random numbers are there before
    peak = before = resident()
    done = threading.Event()

    def watch():
        global peak
        while not done.wait(0.001):
            peak = max(peak, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    explanation = explainer.explain(X[:n_rows])
    done.set()
    watcher.join()
    table = explanation.value_table
    print(peak - before - (table.values.nbytes + table.std_errors.nbytes) / 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")
@pytest.mark.parametrize(
    ("approach", "budget", "mebibytes"),
    [
        *((name, "32MiB", 32) for name in ("gaussian", "independence", "copula", "empirical", "ctree")),
        *((name, "128MiB", 128) for name in ("gaussian", "copula")),
    ],
)
def test_peak_memory_stays_within_the_budget(approach, budget, mebibytes):
    command = [sys.executable, "-c", dedent(MEASURE), approach, budget, "100"]
    extra = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert extra <= mebibytes
