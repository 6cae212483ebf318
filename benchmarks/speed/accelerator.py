"""Whole explanations on an accelerator: wall seconds from an unfitted explainer to the explanation, in fresh processes.

Seconds include loading torch, starting the accelerator, compiling its kernels, and training; the model was fitted before.
Every line runs on the accelerator and, unless that takes minutes, on the CPU of the same machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np

from benchmarks.lib.measure import machine, run_alone
from benchmarks.lib.report import parser, publish, rows_of, yes

HEADS = (
    "explanation",
    "where",
    "fit s",
    "explain s",
    "total s",
    "at most s",
    "holds",
    "million model rows",
    "against the CPU",
)


@dataclass(frozen=True)
class Case:
    """One explanation of 100 rows of Burr data.

    Attributes
    ----------
    model : "forest" of 500 trees, or "function", which is not on the device
    most : wall seconds that one waits for at a keyboard: a quarter of a minute, two minutes for 100 features; None for no
        such claim
    on_cpu : whether the CPU does it as well, for comparison
    """

    approach: str
    n_features: int = 10
    n_train: int = 1000
    n_coalitions: int | None = None
    n_samples: int | None = None
    model: str = "forest"
    most: float | None = None
    on_cpu: bool = True

    @property
    def title(self) -> str:
        """What stands in the table."""
        coalitions = self.n_coalitions or 2**self.n_features
        samples = "default K" if self.n_samples is None else f"K = {self.n_samples}"
        size = f"M = {self.n_features}, N = {self.n_train}, {coalitions} coalitions"
        return f"{self.approach}, {size}, {samples}, {self.model}"


CASES = (
    Case("vaeac", most=15, on_cpu=False),
    Case("vaeac", n_samples=250, most=15, on_cpu=False),
    Case("vaeac", 100, 10_000, 1000, most=120, on_cpu=False),
    Case("gaussian"),
    Case("copula", on_cpu=False),
    Case("ctree", on_cpu=False),
    Case("gaussian", n_samples=250, on_cpu=False),
    Case("gaussian", n_samples=250, model="function"),
    Case("gaussian", 100, 10_000, 1000, on_cpu=False),
)


def smooth(rows: Any) -> Any:
    """Return outputs of a model that takes arrays and has no trees."""
    rows = np.asarray(rows)
    return np.sin(rows[:, 0]) * rows[:, 1] + np.abs(rows[:, 2:]).sum(axis=1)


def pose(case: Case, folder: Path) -> Path:
    """Store the problem of a case, fitted model included, unless another case has done so."""
    from sklearn.ensemble import RandomForestRegressor

    from condshap.studies.designs import burr_design
    from condshap.studies.problems.cells import draw_coalitions

    path = folder / f"{case.n_features}-{case.n_train}.joblib"
    if not path.exists():
        design = burr_design(case.n_features, 0)
        X_train, X = design.draw(case.n_train, seed=1), design.draw(100, seed=2)
        y = design.respond(X_train, seed=3)
        forest = RandomForestRegressor(500, max_features="sqrt", min_samples_split=6, random_state=0, n_jobs=-1)
        model = forest.fit(X_train, y).set_params(n_jobs=1)
        plan, _ = draw_coalitions(case.n_features, case.n_coalitions, 0)
        joblib.dump((model, X_train, X, plan, float(y.mean())), path)
    return path


def explain(case: Case, path: Path, device: str) -> dict[str, Any]:
    """Explain in this process."""
    model, X_train, X, plan, base_value = joblib.load(path)
    start = time.perf_counter()
    import condshap as cs

    explainer = cs.Explainer(
        model if case.model == "forest" else smooth,
        approach=case.approach,
        n_samples=case.n_samples,
        coalitions=plan,
        base_value=base_value,
        device=device,
        progress=False,
    ).fit(X_train)
    fitted = time.perf_counter()
    found = explainer.explain(X)
    done = time.perf_counter()
    rows = int(found.value_table.n_evaluations)
    values, errors = found.values.tolist(), found.std_errors.tolist()
    return {"fit": fitted - start, "explain": done - fitted, "rows": rows, "values": values, "errors": errors}


def lines(number: int, folder: Path) -> list[str]:
    """Measure a case on the accelerator and, for comparison, on the CPU; lines of the table."""
    case = CASES[number]
    path = pose(case, folder)
    devices = ("cuda", "cpu") if case.on_cpu else ("cuda",)
    runs = {one: json.loads(run_alone("accelerator", "--one", str(number), one, str(path))) for one in devices}
    return [table_line(case, device, run, runs.get("cpu")) for device, run in runs.items()]


def table_line(case: Case, device: str, run: dict[str, Any], on_cpu: dict[str, Any] | None) -> str:
    """Seconds and, where both ran, how far the Shapley values are apart, in their standard errors."""
    total = run["fit"] + run["explain"]
    most = case.most if device == "cuda" else None
    apart = ""
    if device == "cuda" and on_cpu is not None:
        far = np.abs(np.subtract(run["values"], on_cpu["values"]))
        apart = f"values differ by {far.max():.1e} at most"
    figures = [f"{run['fit']:.1f}", f"{run['explain']:.2f}", f"{total:.1f}"]
    judged = ["" if most is None else f"{most:g}", "" if most is None else yes(total <= most)]
    rows = f"{run['rows'] / 1e6:.2f}"
    return f"| {' | '.join([case.title, device, *figures, *judged, rows, apart])} |"


def main() -> None:
    options = parser("accelerator", __doc__)
    options.add_argument(
        "--only", nargs="+", type=int, metavar="N", default=range(len(CASES)), help="these cases, from 0"
    )
    options.add_argument("--one", nargs=3, metavar=("N", "DEVICE", "PROBLEM"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        number, device, path = given.one
        json.dump(explain(CASES[int(number)], Path(path), device), sys.stdout)
        return
    text = [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    with TemporaryDirectory() as folder:
        for number in given.only:
            some = lines(number, Path(folder))
            print("\n".join(some), file=sys.stderr, flush=True)
            text += some
    table = "\n".join(text)
    publish("accelerator", rows_of(table), table, write=given.write, about=machine(gpu=True))


if __name__ == "__main__":
    main()
