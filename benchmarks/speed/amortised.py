"""Amortised explanations: error, coverage, efficiency and rows a second, for a label budget of five minutes on two cores.

Burr data with 10 features and the real table Abalone with levels, boosted trees, approach `vaeac`. A network learns from a
pool; rows that it has not seen, explained at full precision, are the truth. Labels are counted in rows, so that their CPU
seconds can be told on a busy machine; five minutes on two cores are 600 of them. Rows a second are those of one core with
the model's predictions left out; with them they stand beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import condshap as cs
from benchmarks.lib.report import parser, publish, table, yes
from condshap.amortised.calibration import NORMAL, relative_error
from condshap.amortised.labels import Course, Labels
from condshap.datasets import load_abalone
from condshap.models.predictor import Predictor
from condshap.studies.designs import burr_design

BUDGET = 600.0  # CPU seconds
BARS = {"relative error": 0.10, "rows a second": 20_000, "efficiency": 1e-9}
COVERAGE = (0.86, 0.94)
N_FAST = 20_000
_GO_ON = Course.go_on


@dataclass(frozen=True)
class Case:
    """A table with a model.

    Attributes
    ----------
    train, pool, held_out : rows that the model and the approach learn from, that the network learns from, and that judge
    labels : how many
    """

    name: str
    model: Any
    train: pd.DataFrame
    pool: pd.DataFrame
    held_out: pd.DataFrame
    labels: int


def burr(seed: int, labels: int, n_held_out: int) -> Case:
    """Burr data with 10 features."""
    design = burr_design(10, seed)
    train = design.draw(1000, seed=2 * seed)
    model = HistGradientBoostingRegressor(max_leaf_nodes=8, random_state=seed).fit(
        train, design.respond(train, seed=seed)
    )
    others = design.draw(labels + 500 + n_held_out, seed=2 * seed + 1)
    return Case("Burr, M = 10", model, train, others.iloc[n_held_out:], others.iloc[:n_held_out], labels)


def abalone(seed: int, labels: int, n_held_out: int) -> Case:
    """Abalone: seven measurements and the sex; the pool is the training rows."""
    data = load_abalone()
    order = np.random.default_rng(seed).permutation(len(data.X))
    X, y = data.X.iloc[order], data.y.iloc[order]
    held_out, train, answers = X.iloc[:n_held_out], X.iloc[n_held_out:], y.iloc[n_held_out:]
    model = HistGradientBoostingRegressor(max_leaf_nodes=8, random_state=seed, categorical_features="from_dtype")
    return Case("Abalone", model.fit(train, answers), train, train, held_out, labels)


@dataclass(frozen=True)
class Store:
    """What takes long, kept in a folder between runs, with the CPU seconds that it took; nothing is kept without one."""

    folder: Path | None
    name: str

    def explainer(self, case: Case, seed: int) -> cs.Explainer:
        """Fitted explainer."""
        path = None if self.folder is None else self.folder / f"{self.name}.explainer"
        if path is not None and path.exists():
            return cs.load_explainer(path, case.model)
        options: dict[str, Any] = {"approach": "vaeac", "seed": seed, "progress": False, "check_draws": False}
        fitted = cs.Explainer(case.model, **options).fit(case.train)
        if path is not None:
            fitted.save(path)
        return fitted

    def labels(self, course: Course, none: Labels, most: int) -> tuple[Labels, float]:
        """All labels of a course and their CPU seconds."""
        path = None if self.folder is None else self.folder / f"{self.name}-{course.most}.npz"
        if path is None or not path.exists():
            start = time.process_time()
            found = _GO_ON(course, none, most)
            kept = {"values": found.values, "counts": found.counts, "cpu": np.array(time.process_time() - start)}
            if path is not None:
                np.savez(path, **kept)
            return found, float(kept["cpu"])
        with np.load(path) as known:
            return Labels(known["values"], known["counts"]), float(known["cpu"])

    def truth(self, explainer: cs.Explainer, rows: pd.DataFrame) -> tuple[cs.Explanation, float]:
        """Held-out rows at full precision, and the CPU seconds of a row."""
        path = None if self.folder is None else self.folder / f"{self.name}.parquet"
        start = time.process_time()
        if path is not None and path.exists():
            found = cs.load_explanation(path)
            return found, found.provenance.seconds["cpu"]
        found = explainer.explain(rows)
        found.provenance.seconds["cpu"] = (time.process_time() - start) / len(rows)
        if path is not None:
            found.save(path)
        return found, found.provenance.seconds["cpu"]


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The same function, its CPU seconds added to a list."""

    def call(*given: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*given, **options)
        finally:
            spent.append(time.process_time() - start)

    return call


def teach(explainer: cs.Explainer, case: Case, seed: int, store: Store) -> tuple[cs.FastExplainer, dict[str, float]]:
    """Fast explainer, and CPU seconds of labels and of everything else."""
    seconds = {"labels": 0.0, "others": 0.0}

    def go_on(course: Course, labels: Labels, most: int) -> Labels:
        before = time.process_time()
        found, seconds["labels"] = store.labels(course, labels, most)
        seconds["others"] -= time.process_time() - before
        return found

    start = time.process_time()
    with patch.object(Course, "go_on", go_on):
        fast = explainer.amortise(case.pool, budget=f"{case.labels} rows", seed=seed)
    seconds["others"] += time.process_time() - start
    return fast, seconds


def rows_a_second(fast: cs.FastExplainer, rows: pd.DataFrame) -> dict[str, float]:
    """Rows a second of CPU time: with the model, and without its predictions."""
    many = rows.iloc[np.arange(N_FAST) % len(rows)].reset_index(drop=True)
    fast.explain(many.iloc[:1000])
    whole, inside = [], []
    for _ in range(3):
        spent: list[float] = []
        model: list[float] = []
        with patch.object(Predictor, "predict_fast", timed(Predictor.predict_fast, model)):
            timed(fast.explain, spent)(many)
        whole.append(sum(spent))
        inside.append(sum(model))
    own: list[float] = []
    timed(fast._predict, own)(fast.schema_.encode(many))
    best = int(np.argmin(whole))
    return {"with the model": N_FAST / whole[best], "without": N_FAST / (whole[best] - inside[best] - sum(own))}


def judge(case: Case, seed: int, store: Store) -> dict[str, Any]:
    """Everything about a case."""
    explainer = store.explainer(case, seed)
    fast, seconds = teach(explainer, case, seed, store)
    truth, full_seconds = store.truth(explainer, case.held_out)
    found = fast.explain(case.held_out)
    error = relative_error(found.values[..., None], truth.values[..., None])
    inside = np.abs(found.values - truth.values) <= NORMAL * found.std_errors
    gaps = found.base_values + found.values.sum(axis=1) - found.predictions
    speed = rows_a_second(fast, case.held_out)
    return {
        "case": case.name,
        "labels": fast.learned.facts["labels"],
        "label CPU seconds": seconds["labels"],
        "other CPU seconds": seconds["others"],
        "relative error": float(error),
        "interval": error.interval(),
        "reported": float(fast.error),
        "noise of the truth": float(np.abs(truth.std_errors).mean() * np.sqrt(2 / np.pi) / np.abs(truth.values).mean()),
        "coverage": float(inside.mean()),
        "coverage by player": [float(inside[:, j].mean()) for j in range(inside.shape[1])],
        "unlike": float(found.unlike_pool.mean()),
        "efficiency": float(np.abs(gaps).max()),
        "rows a second": speed["without"],
        "rows a second with the model": speed["with the model"],
        "full rows a CPU second": 1 / full_seconds,
        "held out": len(case.held_out),
        "seed": seed,
    }


def line(one: dict[str, Any]) -> dict[str, str]:
    """Line of the table."""
    low, high = one["interval"]
    holds = (
        one["relative error"] <= BARS["relative error"]
        and one["label CPU seconds"] <= BUDGET
        and one["rows a second"] >= BARS["rows a second"]
        and COVERAGE[0] <= one["coverage"] <= COVERAGE[1]
        and one["efficiency"] <= BARS["efficiency"]
    )
    return {
        "table": one["case"],
        "labels": f"{one['labels']:,}",
        "their CPU seconds": f"{one['label CPU seconds']:.0f}",
        "other CPU seconds": f"{one['other CPU seconds']:.0f}",
        "relative error": f"{one['relative error']:.3f} ({low:.3f} to {high:.3f})",
        "as reported": f"{one['reported']:.3f}",
        "90 % intervals cover": f"{one['coverage']:.1%}",
        "efficiency": f"{one['efficiency']:.0e}",
        "rows a second": f"{one['rows a second']:,.0f}",
        "with the model": f"{one['rows a second with the model']:,.0f}",
        "explain": f"{one['full rows a CPU second']:.0f}",
        "holds": yes(holds),
    }


CASES: dict[str, Callable[[int, int, int], Case]] = {"burr": burr, "abalone": abalone}


def main(arguments: list[str] | None = None) -> None:
    own = parser("amortised", __doc__)
    own.add_argument("--case", choices=CASES, action="append", help="only this one; may be given several times")
    own.add_argument("--labels", type=int, default=6000)
    own.add_argument("--held-out", type=int, default=500)
    own.add_argument("--seed", type=int, default=1)
    own.add_argument("--keep", type=Path, help="folder for fits, labels and true values, which are not made twice")
    given = own.parse_args(arguments)
    found = []
    for name in given.case or CASES:
        case = CASES[name](given.seed, given.labels, given.held_out)
        found.append(judge(case, given.seed, Store(given.keep, f"{name}-{given.seed}")))
    publish("amortised", found, table([line(one) for one in found]), write=given.write)


if __name__ == "__main__":
    main()
