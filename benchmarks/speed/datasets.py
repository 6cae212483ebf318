"""Datasets: peak memory, rows a second by approach and model, what a second worker gains, and what scheduling costs.

Peak memory is that of a process of its own, imports included. Rows a second are of CPU time on one core, from the parts of
a compact run. Runs with one worker and with two alternate. On a machine that others use, their wall seconds say little: what
two workers would gain with a core for each follows from the share of the time that they are busy with parts, and from their
CPU seconds.
Scheduling costs what the wall seconds of a run with one worker are above those that its parts took inside it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

import condshap as cs
from benchmarks.lib.measure import ONE_THREAD
from benchmarks.lib.problems import correlated_normals, smooth_response
from benchmarks.lib.report import parser, publish, table

N_FEATURES, N_TRAIN = 10, 2000
LIMIT_MIB = 1536
KINDS = ("memory", "rates", "workers", "overhead")


def boosted(X: pd.DataFrame, n_trees: int = 50) -> Any:
    """Boosted trees."""
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=n_trees, max_depth=4, n_jobs=1).fit(X, smooth_response(X, seed=0))


def forest(X: pd.DataFrame) -> Any:
    """Forest of scikit-learn."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, smooth_response(X, seed=0))


def products(X: Any) -> Any:
    """Model of a few operations that is not threaded."""
    X = np.asarray(X)
    return X[:, 0] * X[:, 1] + np.abs(X[:, 2])


def write_rows(folder: Path, n_rows: int, n_files: int = 4) -> Path:
    """Write rows to Parquet, a file after the other."""
    source = folder / f"rows-{n_rows}"
    source.mkdir(exist_ok=True)
    for i in range(n_files):
        some = correlated_normals(n_rows // n_files, N_FEATURES, 0.6, seed=100 + i)
        some.to_parquet(source / f"{i}.parquet", index=False)
    return source


def run_alone(n_rows: int, values: str) -> None:
    """Explain a dataset here and print peak memory and CPU seconds, and whether the numbers are those of `explain`."""
    X = correlated_normals(N_TRAIN, N_FEATURES, 0.6, seed=0)
    explainer = cs.Explainer(boosted(X), approach="gaussian", progress=False).fit(X)
    with tempfile.TemporaryDirectory() as name:
        source = write_rows(Path(name), n_rows)
        start = time.process_time()
        found = explainer.explain_dataset(source, Path(name) / "out", values=values)
        cpu = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(path.stat().st_size for path in (Path(name) / "out").glob("*.parquet"))
        chosen = np.random.default_rng(0).choice(n_rows, min(500, n_rows), replace=False)
        rows = pd.concat([pd.read_parquet(path) for path in sorted(source.iterdir())], ignore_index=True).iloc[chosen]
        again = explainer.explain(rows)
        same = found.rows(chosen)
        is_same = np.array_equal(same.values, again.values) and np.array_equal(same.std_errors, again.std_errors)
        n_parts = len(found.parts)
    print(json.dumps({"peak": peak, "cpu": cpu, "bytes": size / n_rows, "is_same": is_same, "parts": n_parts}))


def memory() -> list[dict[str, Any]]:
    """Lines about peak memory, one process each, everything at its default."""
    lines = []
    for n_rows, values in ((200_000, "compact"), (4_000, "full")):
        call = f"from benchmarks.speed.datasets import run_alone; run_alone({n_rows}, {values!r})"
        done = subprocess.run(
            [sys.executable, "-c", call], capture_output=True, text=True, check=True, env={**os.environ, **ONE_THREAD}
        )
        found = json.loads(done.stdout.splitlines()[-1])
        lines.append(
            {
                "rows": f"{n_rows:,}",
                "values": values,
                "parts": found["parts"],
                "peak memory, MiB": f"{found['peak']:.0f}",
                "limit, MiB": LIMIT_MIB,
                "CPU seconds": f"{found['cpu']:.0f}",
                "bytes a row": f"{found['bytes']:.0f}",
                "500 rows as by explain": "to the last bit" if found["is_same"] else "differ",
            }
        )
    return lines


def rates() -> list[dict[str, Any]]:
    """Rows a second of CPU time by approach and model, with everything else at its default but the epochs of networks."""
    X = correlated_normals(N_TRAIN, N_FEATURES, 0.6, seed=0)
    models = {"a few operations": products, "50 boosted trees": boosted(X), "forest of 100 trees": forest(X)}
    lines = []
    for approach, n_rows in (("gaussian", 1000), ("ctree", 50), ("vaeac", 50)):
        for title, model in models.items():
            chosen = cs.approaches.VAEAC(epochs=5) if approach == "vaeac" else approach
            options: dict[str, Any] = {"n_coalitions": 200, "check_draws": False, "progress": False}
            explainer = cs.Explainer(model, approach=chosen, **options).fit(X)
            with tempfile.TemporaryDirectory() as name:
                source = write_rows(Path(name), n_rows, 2)
                explainer.explain(X[:2])  # trees of ctree grow, compiled code is loaded
                start = time.process_time()
                explainer.explain_dataset(source, Path(name) / "out", values="compact")
                cpu = time.process_time() - start
            line = {"approach": f"`{approach}`", "model": title, "rows measured": n_rows}
            lines.append({**line, "rows a CPU second": f"{n_rows / cpu:.1f}"})
            print(lines[-1], file=sys.stderr)
    return lines


@contextmanager
def cluster_of(n_workers: int) -> Iterator[Any]:
    """Client of a local cluster whose workers have everything loaded."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=n_workers, **options) as local, Client(local) as client:
        client.run(_load)
        yield client


def _load() -> None:
    import condshap.explainer  # noqa: F401


@dataclass(frozen=True)
class Timed:
    """Wall seconds of a run, those that its parts took on their workers, added up, and CPU seconds of the workers."""

    wall: float
    inside: float
    cpu: float


def _timed(explainer: cs.Explainer, client: Any, source: Path, rows_per_part: int) -> Timed:
    """Explain a dataset on a cluster."""
    with tempfile.TemporaryDirectory() as name:
        cpu, start = sum(client.run(time.process_time).values()), time.perf_counter()
        options: dict[str, Any] = {"rows_per_part": rows_per_part, "values": "compact", "cluster": client}
        found = explainer.explain_dataset(source, Path(name) / "out", **options)
        wall = time.perf_counter() - start
        cpu = sum(client.run(time.process_time).values()) - cpu
        return Timed(wall, sum(done.seconds for done in found.parts), cpu)


def _explainer_on_one_core() -> cs.Explainer:
    X = correlated_normals(N_TRAIN, N_FEATURES, 0.6, seed=0)
    return cs.Explainer(products, approach="gaussian", n_coalitions=200, progress=False).fit(X)


def workers(n_rows: int = 3200, repeats: int = 3) -> list[dict[str, Any]]:
    """One worker and two, in turn."""
    explainer = _explainer_on_one_core()
    runs: dict[int, list[Timed]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as name, cluster_of(1) as one, cluster_of(2) as two:
        source = write_rows(Path(name), n_rows)
        for client in (one, two):
            _timed(explainer, client, source, n_rows // 16)
        load = os.getloadavg()[0]
        for _ in range(repeats):
            for n, client in ((1, one), (2, two)):
                runs[n].append(_timed(explainer, client, source, n_rows // 16))
    busy = {n: median(run.inside / run.wall / n for run in some) for n, some in runs.items()}
    cpu = {n: median(run.cpu for run in some) for n, some in runs.items()}
    walls = [one.wall / two.wall for one, two in zip(*runs.values(), strict=True)]
    return [
        {
            "workers": n,
            "wall, s": f"{median(run.wall for run in runs[n]):.1f}",
            "CPU seconds of workers": f"{cpu[n]:.2f}",
            "busy with parts": f"{busy[n]:.1%}",
            "gain by the clock": f"{median(walls):.2f}" if n == 2 else "1",
            "with a core for each": f"{n * busy[n] / busy[1] * cpu[1] / cpu[n]:.2f}",
            "processes waiting for 2 cores": f"{load:.0f}",
        }
        for n in (1, 2)
    ]


def overhead(n_parts: int = 4, wanted: float = 10.0) -> list[dict[str, Any]]:
    """Parts of about ten seconds on one worker."""
    explainer = _explainer_on_one_core()
    with tempfile.TemporaryDirectory() as name, cluster_of(1) as client:
        trial = write_rows(Path(name), 400, 1)
        _timed(explainer, client, trial, 400)
        speed = 400 / _timed(explainer, client, trial, 400).inside
        size = max(1, int(speed * wanted))
        source = write_rows(Path(name), size * n_parts, n_parts)
        run = _timed(explainer, client, source, size)
    line = {"parts": n_parts, "seconds a part": f"{run.inside / n_parts:.1f}", "wall, s": f"{run.wall:.1f}"}
    return [{**line, "scheduling, manifest and reading": f"{1 - run.inside / run.wall:.1%}"}]


def main(arguments: list[str] | None = None) -> None:
    made = parser("datasets", __doc__)
    made.add_argument("kinds", nargs="*", default=KINDS, help=f"which of {', '.join(KINDS)}; by default all")
    given = made.parse_args(arguments)
    measure = {"memory": memory, "rates": rates, "workers": workers, "overhead": overhead}
    for kind in given.kinds:
        lines = [{head: str(value) for head, value in line.items()} for line in measure[kind]()]
        publish(f"datasets-{kind}", lines, table(lines), write=given.write, page="datasets")


if __name__ == "__main__":
    main()
