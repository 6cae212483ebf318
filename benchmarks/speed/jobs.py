"""Overlap on the CPU: wall seconds with one worker and with two, of which one samples while the other waits for the model.

Workers are threads, so two of them are also a pipeline: the next block is sampled while the model evaluates this one. Ways
alternate, the best of several runs counts, and all must give the same numbers to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from benchmarks.lib.problems import correlated_normals
from benchmarks.lib.report import parser, publish, table

N_FEATURES, N_TRAIN, N_ROWS, N_SAMPLES, REPEATS = 10, 1000, 60, 32, 3
SECONDS_A_ROW = 4e-6


def waiting_model(X: Any) -> Any:
    """Model that is somewhere else: its caller waits, and computes nothing."""
    time.sleep(len(X) * SECONDS_A_ROW)
    return cheap_model(X)


def cheap_model(X: Any) -> Any:
    """Model of a few operations."""
    X = np.asarray(X)
    return X[:, 0] * X[:, 1] + np.abs(X[:, 2])


def seconds_by_jobs(make: Callable[[int], cs.Explainer], train: Any, rows: Any) -> dict[int, float]:
    """Best wall seconds of explain with one worker and with two."""
    explainers = {n_jobs: make(n_jobs).fit(train) for n_jobs in (1, 2)}
    seconds: dict[int, list[float]] = {1: [], 2: []}
    found = []
    for _ in range(REPEATS):
        for n_jobs, explainer in explainers.items():
            start = time.perf_counter()
            found.append(explainer.explain(rows).values)
            seconds[n_jobs].append(time.perf_counter() - start)
    if any(not np.array_equal(values, found[0]) for values in found):
        raise RuntimeError("workers must not change numbers, but they do.")
    return {n_jobs: min(times) for n_jobs, times in seconds.items()}


def main(arguments: list[str] | None = None) -> None:
    given = parser("jobs", __doc__).parse_args(arguments)
    X = correlated_normals(N_TRAIN + N_ROWS, N_FEATURES, 0.6, seed=0)
    train, rows = X[:N_TRAIN], X[N_TRAIN:]
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    forest.fit(train, (train.to_numpy() ** 2).sum(axis=1))
    models: dict[str, tuple[Any, bool]] = {
        f"waits {SECONDS_A_ROW * 1e6:g} microseconds a row": (waiting_model, True),
        "a few operations": (cheap_model, True),
        "forest of 100 trees": (forest, True),
        "forest of 100 trees, fast_trees=False": (forest, False),
    }
    lines = []
    for approach in ("gaussian", "vaeac"):
        for title, (model, fast_trees) in models.items():

            def make(n_jobs: int, name: str = approach, model: Any = model, fast: bool = fast_trees) -> cs.Explainer:
                made = cs.approaches.VAEAC(epochs=5) if name == "vaeac" else name
                return cs.Explainer(
                    model, approach=made, n_samples=N_SAMPLES, n_jobs=n_jobs, fast_trees=fast, progress=False
                )

            one, two = seconds_by_jobs(make, train, rows).values()
            line = {"approach": approach, "model": title, "one worker, s": f"{one:.2f}", "two workers, s": f"{two:.2f}"}
            lines.append({**line, "ratio": f"{two / one:.2f}"})
    publish("jobs", lines, table(lines), write=given.write)


if __name__ == "__main__":
    main()
