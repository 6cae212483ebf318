"""How CPU seconds and memory grow with rows, samples, coalitions, features and training rows: log-log slopes.

The model is a few numpy operations on arrays, so that time and memory are ours; it is not additive, so that nothing can be
left out. Every point is a fresh process. Memory is what fit and explain hold at their peak beyond what was there before,
less the value table and its standard errors, which are results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

import condshap as cs
from benchmarks.lib.measure import measure_stages, run_alone
from benchmarks.lib.problems import compile_kernels, correlated_normals
from benchmarks.lib.report import parser, publish, table, yes
from condshap.approaches import find_approach

STEEPEST = 1.1
"""Exponent of growth that still counts as proportional: ten times the rows may take 12.6 times as long, no more."""
FLATNESS = 1.1
"""Memory beyond inputs and results must not grow with the rows; 10 % is what such measurements scatter by."""
BUDGET_MIB = 1024
"""Memory that every laptop has to spare: 10,000 rows with 10 features must fit in, results included."""


@dataclass(frozen=True)
class Point:
    """Size of a problem; None for condshap's own choice of samples and coalitions."""

    approach: str = "gaussian"
    rows: int = 100
    n_features: int = 10
    n_samples: int | None = None
    n_train: int = 1000
    n_coalitions: int | None = None


@dataclass(frozen=True)
class Curve:
    """Points that differ in one size, `along`.

    Attributes
    ----------
    seconds : what is looked at, "cpu_explain" or "cpu" for fit and explain
    has_bar : whether the slope must be at most `STEEPEST`
    first : the slope is over points from this size on
    """

    about: str
    along: str
    sizes: tuple[int, ...]
    point: Point
    seconds: str = "cpu_explain"
    has_bar: bool = True
    first: int = 0

    @property
    def points(self) -> list[Point]:
        """All points of the curve."""
        return [Point(**{**asdict(self.point), self.along: size}) for size in self.sizes]


SMALL = {"n_features": 7, "n_samples": 32}
COALITIONS, TRAINING = (50, 200, 1024, 4096), (100, 1000, 10_000, 100_000)
CURVES = {
    "rows": (
        Curve("gaussian, M = 10, all 1024 coalitions, default K", "rows", (10, 100, 1000, 10_000), Point()),
        Curve("vaeac, M = 7, K = 32", "rows", (10, 100, 1000), Point("vaeac", **SMALL)),
        Curve("ctree, M = 7, K = 32", "rows", (10, 100, 1000), Point("ctree", **SMALL)),
    ),
    "K": (
        Curve("gaussian, M = 10, 100 rows", "n_samples", (16, 64, 256, 1024), Point()),
        Curve("vaeac, M = 7, 100 rows", "n_samples", (16, 64, 256, 1024), Point("vaeac", n_features=7)),
    ),
    "coalitions": (
        Curve("gaussian, M = 12, K = 32, 100 rows", "n_coalitions", COALITIONS, Point(n_features=12, n_samples=32)),
        Curve(
            "vaeac, M = 12, K = 16, 100 rows", "n_coalitions", COALITIONS, Point("vaeac", n_features=12, n_samples=16)
        ),
        Curve("ctree, M = 12, K = 16, 20 rows", "n_coalitions", COALITIONS, Point("ctree", 20, 12, 16)),
    ),
    "M": (
        Curve(
            "gaussian, K = 32, 100 rows, 1000 coalitions (32 of M = 5, 1024 of M = 10)",
            "n_features", (5, 10, 25, 50, 100), Point(n_samples=32), "cpu", False, 10,
        ),
    ),
    "N_train": (
        Curve("gaussian, M = 10, 100 rows", "n_train", TRAINING, Point(), "cpu", False),
        Curve("independence, M = 10, 10 rows", "n_train", TRAINING, Point("independence", 10), "cpu", False),
        Curve("ctree, M = 5, 10 rows", "n_train", TRAINING, Point("ctree", 10, 5), "cpu", False),
    ),
}  # fmt: skip


def cheap_model(X: np.ndarray) -> np.ndarray:
    """A square of a weighted sum, (n,): cheap, and no sum of functions of single features."""
    score = X @ np.linspace(-1.0, 1.0, X.shape[1])
    return score * score


def run_point(point: Point) -> dict[str, float]:
    """Fit and explain; code that both need is loaded before by a tiny problem."""
    approach = find_approach("vaeac")(epochs=7) if point.approach == "vaeac" else point.approach
    make = partial(cs.Explainer, cheap_model, approach=approach, progress=False, device="cpu")
    tiny = correlated_normals(50, 3, 0.5, seed=0).to_numpy()
    make(n_samples=2).fit(tiny).explain(tiny[:2])
    train, X = (correlated_normals(n, point.n_features, 0.5, seed=n).to_numpy() for n in (point.n_train, point.rows))
    explainer = make(n_samples=point.n_samples, n_coalitions=point.n_coalitions)
    ran, cpu_fit = measure_stages(explainer, train, X)
    values = ran.result.value_table
    held = (values.values.nbytes + values.std_errors.nbytes) / 2**20
    memory = {"peak_mib": ran.peak_mib, "table_mib": held, "beyond_mib": ran.peak_mib - held}
    cost = {"cpu_fit": cpu_fit, "cpu_explain": ran.cpu - cpu_fit, "cpu": ran.cpu, "wall": ran.wall}
    return {**cost, **memory, "n_rows": values.n_evaluations}


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Exponent of growth: least squares of log cost on log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def run_curve(curve: Curve) -> dict[str, Any]:
    """Measure all points, each in a fresh process."""
    found = []
    for point, size in zip(curve.points, curve.sizes, strict=True):
        print(f"{curve.about}: {size}", file=sys.stderr, flush=True)
        found.append({"size": size, **json.loads(run_alone("growth", "--point", json.dumps(asdict(point))))})
    return {"about": curve.about, "along": curve.along, "points": found, **slopes_of(curve, found)}


def slopes_of(curve: Curve, found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Slope over all sizes that count, slope of the last step, and whether the steeper one is at most `STEEPEST`."""
    counted = [p for p in found if p["size"] >= curve.first]
    sizes, costs = [p["size"] for p in counted], [p[curve.seconds] for p in counted]
    whole, last = slope(sizes, costs), slope(sizes[-2:], costs[-2:])
    return {"slope": whole, "last_slope": last, "holds": max(whole, last) <= STEEPEST if curve.has_bar else None}


def curve_lines(found: dict[str, Any]) -> list[dict[str, str]]:
    """Points of a curve as lines of a table."""
    return [
        {
            "problem": found["about"],
            "size": f"{point['size']:,}",
            "fit, CPU s": f"{point['cpu_fit']:.2f}",
            "explain, CPU s": f"{point['cpu_explain']:.2f}",
            "model rows": f"{point['n_rows']:,}",
            "peak MiB": f"{point['peak_mib']:.0f}",
            "of which value table": f"{point['table_mib']:.0f}",
            "beyond it": f"{point['beyond_mib']:.0f}",
            "slope": f"{found['slope']:.2f}" if last else "",
            "last step": f"{found['last_slope']:.2f}" if last else "",
            f"at most {STEEPEST}": "-" if found["holds"] is None else yes(found["holds"]) if last else "",
        }
        for i, point in enumerate(found["points"])
        for last in (i == len(found["points"]) - 1,)
    ]


def memory_bars(found: dict[str, Any]) -> str:
    """Whether memory stays within its limits, on the first curve over rows."""
    by_size = {point["size"]: point for point in found["points"]}
    few, many = by_size[100]["beyond_mib"], by_size[10_000]["beyond_mib"]
    peak = by_size[10_000]["peak_mib"]
    return (
        f"- Memory beyond inputs and value table, {found['about']}: {few:.0f} MiB with 100 rows, {many:.0f} MiB with "
        f"10,000; flat within 10 %: {yes(many <= FLATNESS * few)}.\n"
        f"- 10,000 rows x M = 10 x 1024 coalitions: {peak:.0f} MiB at the peak, value table included; within the budget of "
        f"{BUDGET_MIB} MiB: {yes(peak <= BUDGET_MIB)}."
    )


def describe(results: dict[str, list[dict[str, Any]]]) -> str:
    """Tables of all curves and what is asked of memory."""
    text = []
    for name, curves in results.items():
        text += [f"### {name}", table([line for found in curves for line in curve_lines(found)])]
    return "\n\n".join([*text, *([memory_bars(results["rows"][0])] if "rows" in results else [])])


def main() -> None:
    """Measure the curves."""
    given = parser("growth", __doc__)
    given.add_argument(
        "--only", nargs="+", choices=CURVES, default=tuple(CURVES), metavar="SIZE", help=", ".join(CURVES)
    )
    given.add_argument("--point", help="one point by itself, as JSON")
    options = given.parse_args()
    if options.point:
        print(json.dumps(run_point(Point(**json.loads(options.point)))))
        return
    compile_kernels()
    results = {name: [run_curve(curve) for curve in CURVES[name]] for name in options.only}
    publish("growth", results, describe(results), write=options.write)


if __name__ == "__main__":
    main()
