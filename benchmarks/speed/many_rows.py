"""Many training rows: CPU seconds and peak memory of fit, and of explaining 10 rows, for every approach.

Every point is a fresh process with one thread; its peak is all that the process held, table, model and libraries included,
as the kernel counted it. Tables have 20 columns: 12 numbers and 8 columns of levels, or numbers or levels only where an
approach takes nothing else, and 200 coalitions of them are asked for. The model is scikit-learn's gradient boosting of 100
trees. A process that would need more than 6 GiB ends.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import condshap as cs
from benchmarks.lib.measure import run_alone
from benchmarks.lib.problems import compile_kernels
from benchmarks.lib.report import machine, parser, publish, read, table, yes
from condshap.approaches import available_approaches, find_approach
from condshap.schema import Kind

N_FEATURES, N_LEVELS, N_EXPLAINED, N_COALITIONS, N_FITTED = 20, 8, 10, 200, 20_000
SIZES = (10_000, 100_000, 1_000_000)
BUDGET_GIB, CEILING_GIB = 4.0, 6.0


@dataclass(frozen=True)
class Point:
    """An approach and a number of training rows."""

    approach: str
    n_train: int


def kinds_of(approach: str) -> str:
    """What columns the table of an approach has."""
    supports = find_approach(approach).supports
    if supports >= set(Kind):
        return "mixed"
    return "numbers" if Kind.CONTINUOUS in supports else "levels"


def draw_rows(n: int, kinds: str, seed: int) -> pd.DataFrame:
    """Draw n rows of 20 columns that depend on each other by one factor; levels are cuts of numbers."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    n_levels = {"mixed": N_LEVELS, "numbers": 0, "levels": N_FEATURES}[kinds]
    columns: dict[str, Any] = {}
    for j in range(N_FEATURES):
        own = 0.7 * common + 0.7 * rng.normal(size=n)
        if j < N_FEATURES - n_levels:
            columns[f"x{j}"] = np.exp(0.5 * own) if j % 3 == 0 else own
        else:
            count = 2 + j % 5
            codes = np.clip(np.floor((own + 2) / 4 * count), 0, count - 1).astype(np.int8)
            columns[f"c{j}"] = pd.Categorical.from_codes(codes, [f"level {k}" for k in range(count)])
    return pd.DataFrame(columns)


def response(X: pd.DataFrame) -> np.ndarray:
    """A smooth function of the columns with products."""
    Z = np.column_stack([column.cat.codes if hasattr(column, "cat") else column for _, column in X.items()])
    return np.asarray(Z @ np.linspace(-0.5, 1.0, Z.shape[1]) + Z[:, 0] * Z[:, -1] + np.sin(2 * Z[:, 1]))


def peak_gib() -> float:
    """Most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run_point(point: Point) -> dict[str, float]:
    """Fit and explain once, in this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(CEILING_GIB * 2**30),) * 2)
    kinds = kinds_of(point.approach)
    train, rows = draw_rows(point.n_train, kinds, seed=1), draw_rows(N_EXPLAINED, kinds, seed=2)
    some = train.iloc[:N_FITTED]
    model = HistGradientBoostingRegressor(max_iter=100, categorical_features="from_dtype", random_state=0)
    model.fit(some, response(some))
    before = peak_gib()
    explainer = cs.Explainer(model, approach=point.approach, progress=False, n_coalitions=N_COALITIONS, device="cpu")
    cpu, wall = time.process_time(), time.perf_counter()
    explainer.fit(train)
    cpu_fit, wall_fit, peak_fit = time.process_time() - cpu, time.perf_counter() - wall, peak_gib()
    cpu, wall = time.process_time(), time.perf_counter()
    explainer.explain(rows)
    cpu_explain, wall_explain = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "cpu_fit": cpu_fit, "wall_fit": wall_fit, "cpu_explain": cpu_explain, "wall_explain": wall_explain,
        "table_gib": before, "peak_fit_gib": peak_fit, "peak_gib": peak_gib(),
    }  # fmt: skip


def lines_of(results: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Points as lines of a table."""
    return [
        {
            "approach": one["approach"],
            "columns": kinds_of(one["approach"]),
            "training rows": f"{one['n_train']:,}",
            "fit, CPU s": f"{one['cpu_fit']:.1f}",
            "explain 10 rows, CPU s": f"{one['cpu_explain']:.1f}",
            "before fit, GiB": f"{one['table_gib']:.2f}",
            "peak of fit, GiB": f"{one['peak_fit_gib']:.2f}",
            "peak of both, GiB": f"{one['peak_gib']:.2f}",
            f"within {BUDGET_GIB:g} GiB": yes(one["peak_gib"] <= BUDGET_GIB),
        }
        for one in results
    ]


def measure(point: Point) -> dict[str, Any]:
    """Measure a point in a fresh process."""
    print(f"{point.approach}: {point.n_train:,} rows", file=sys.stderr, flush=True)
    return {**asdict(point), **json.loads(run_alone("many_rows", "--point", json.dumps(asdict(point))))}


def main() -> None:
    """Measure all points, or some anew."""
    given = parser("many_rows", __doc__)
    given.add_argument("--only", nargs="+", default=available_approaches(), metavar="APPROACH")
    given.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="ROWS")
    given.add_argument("--keep", action="store_true", help="keep the other points of the last run")
    given.add_argument("--point", help="one point by itself, as JSON")
    options = given.parse_args()
    if options.point:
        print(json.dumps(run_point(Point(**json.loads(options.point)))))
        return
    compile_kernels()
    wanted = [Point(approach, n) for approach in options.only for n in options.sizes]
    before = (read("many_rows") or {"results": []})["results"] if options.keep else []
    found = {(one["approach"], one["n_train"]): one for one in before}
    found |= {(point.approach, point.n_train): measure(point) for point in wanted}
    results = [found[key] for key in sorted(found)]
    publish("many_rows", results, table(lines_of(results)), write=options.write, about=machine())


if __name__ == "__main__":
    main()
