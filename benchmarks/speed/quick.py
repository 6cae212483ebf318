"""Small versions of what matters, as ratios, held against benchmarks/results/quick.json: exit 1 if one got much worse.

A ratio is our CPU time over that of a yardstick in the same process, each the best of several runs that take turns: the
model's own predict on the rows that were asked for, or a fixed numpy computation, or shap's KernelExplainer on the same
problem where .peers is set up. Machines differ in seconds, but much less in such ratios. Numbers of model rows are compared
too; these do not depend on the machine at all.

``--update`` stores what was found as the new level. ``--slow NAME`` does the work of a line twice, to see that the check can
fail. Processors differ in how fast they sort, multiply and jump, so on another machine than that of the levels ratios move
by up to a half. ``--before DIR`` is fair on any: DIR is a checkout of an older version, whose lines run in turn with ours.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from benchmarks.lib.measure import Asked, asked_of_models, run_alone
from benchmarks.lib.problems import compile_kernels, correlated_normals, smooth_response
from benchmarks.lib.report import parser, publish, read, table, yes
from benchmarks.speed.peers import ROOT, find_python, make_problem
from condshap.approaches import find_approach

FACTOR = 1.5
"""What got slower by more is a mistake that users notice; less than that can be the noise of a busy machine."""
TURNS = 3
"""Processes of each version that ``--before`` runs for a line."""
LEAST, MOST, ENOUGH = 3, 20, 8.0  # turns of a line, and CPU seconds after which there are no more than need be


@dataclass(frozen=True)
class Work:
    """What a line does again and again: our part, the yardstick's part, and how many rows our part asks a model for."""

    ours: Callable[[], Any]
    yardstick: Callable[[], Any]
    n_rows: int


def numpy_yardstick() -> None:
    """A fixed amount of what our code spends its time with: products, elementwise functions, sorting and gathering."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    for _ in range(3):
        np.exp(-((X @ X[:10].T) ** 2)).sum()
        X[X[:, 0].argsort()].mean(axis=0)


def with_forest(*, fast_trees: bool) -> Work:
    """Gaussian with a forest against its own predict on the very rows that were asked for."""
    X = correlated_normals(500, 7, 0.6, seed=1)
    model = RandomForestRegressor(100, max_features="sqrt", min_samples_split=6, random_state=1)
    model.fit(X, smooth_response(X, seed=2))
    asked, rows = Asked(keep=True), X.iloc[:50]
    cs.explain(asked.around(model.predict), X, rows, approach="gaussian", progress=False)
    same = pd.concat(asked.rows)
    explainer = cs.Explainer(model, approach="gaussian", progress=False, fast_trees=fast_trees, check_draws=False)
    return Work(lambda: explainer.fit(X).explain(rows), lambda: model.predict(same), asked.n_rows)


def with_numpy(approach: Any, n_rows: int = 100, **options: Any) -> Work:
    """An approach with a model that costs nearly nothing, against the numpy yardstick."""
    X = correlated_normals(1000, 8, 0.6, seed=1).to_numpy()
    options = {"check_draws": False, **options}  # which has a line of its own
    explainer = cs.Explainer(_square, approach=approach, progress=False, device="cpu", **options)
    with asked_of_models() as asked:
        explainer.fit(X).explain(X[:n_rows])
    return Work(lambda: explainer.fit(X).explain(X[:n_rows]), numpy_yardstick, asked.n_rows)


def _square(X: np.ndarray) -> np.ndarray:
    return (X @ np.linspace(-1, 1, X.shape[1])) ** 2


def drawing_with_networks() -> Work:
    """Draws of networks that were fitted before, against the numpy yardstick."""
    X = correlated_normals(500, 8, 0.6, seed=1).to_numpy()
    approach = find_approach("vaeac")(epochs=7)
    explainer = cs.Explainer(_square, approach=approach, progress=False, device="cpu", check_draws=False).fit(X)
    with asked_of_models() as asked:
        explainer.explain(X[:100])
    return Work(lambda: explainer.explain(X[:100]), numpy_yardstick, asked.n_rows)


LINES: dict[str, Callable[[], Work]] = {
    "gaussian, forest / predict": lambda: with_forest(fast_trees=True),
    "gaussian, forest, fast_trees=False / predict": lambda: with_forest(fast_trees=False),
    "independence / numpy": lambda: with_numpy("independence"),
    "empirical / numpy": lambda: with_numpy("empirical", 20),
    "gaussian / numpy": lambda: with_numpy("gaussian"),
    "gaussian, K = 250 / numpy": lambda: with_numpy("gaussian", n_samples=250),
    "copula / numpy": lambda: with_numpy("copula"),
    "ctree / numpy": lambda: with_numpy("ctree", 50),
    "vaeac, 7 epochs / numpy": lambda: with_numpy(find_approach("vaeac")(epochs=7), 10),
    "vaeac, draws / numpy": drawing_with_networks,
    "gaussian, one row and the check of draws / numpy": lambda: with_numpy("gaussian", 1, check_draws=True),
}
KERNEL = "gaussian, linear / KernelExplainer"


def cpu_of(call: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def run_line(name: str, times: int) -> dict[str, float]:
    """Ratio of a line; `times` is how often our part is done for each time it counts."""
    work = LINES[name]()
    turns: list[tuple[float, float]] = []
    while len(turns) < LEAST or (len(turns) < MOST and np.sum(turns) < ENOUGH):
        turns.append((sum(cpu_of(work.ours) for _ in range(times)), cpu_of(work.yardstick)))
    ours, yardstick = (min(seconds) for seconds in zip(*turns, strict=True))
    return {"ratio": ours / yardstick, "n_rows": work.n_rows}


def run_kernel(python: str) -> dict[str, float]:
    """Our gaussian over KernelExplainer on 20 rows of the linear problem; the best of three processes each."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        make_problem(path, seed=0)
        arguments = (str(path), "linear")
        ours = [run_alone("peers", "--line", *arguments, "gaussian", "20") for _ in range(3)]
        env = {"PYTHONPATH": str(ROOT)}
        worker = ("peers_worker", *arguments, "kernel", "20")
        theirs = [run_alone(*worker, python=python, env=env) for _ in range(3)]
    found, reference = ([json.loads(run) for run in runs] for runs in (ours, theirs))
    cpu, cpu_reference = (min(run["cpu"] for run in runs) for runs in (found, reference))
    return {"ratio": cpu / cpu_reference, "n_rows": found[0]["n_rows"]}


@dataclass(frozen=True)
class Compared:
    """A quantity of a line, now and as it is committed; None for what was not measured."""

    name: str
    what: str
    now: float | None
    before: float | None

    @property
    def change(self) -> float | None:
        """How many times larger it is now, None if that cannot be said."""
        return self.now / self.before if self.now is not None and self.before else None

    @property
    def is_worse(self) -> bool:
        """More than 1.5 times larger than the committed one."""
        return self.change is not None and self.change > FACTOR


def compare(now: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]]) -> list[Compared]:
    """All quantities that either side has."""
    names = list(dict.fromkeys([*now, *before]))
    return [
        Compared(name, what, now.get(name, {}).get(what), before.get(name, {}).get(what))
        for name in names
        for what in ("ratio", "n_rows")
    ]


def describe(compared: list[Compared], other: str = "committed") -> str:
    """Table of the comparison with the levels that are called `other`."""
    return table([_cells(one, other) for one in compared])


def _cells(one: Compared, other: str) -> dict[str, str]:
    judged = "not measured" if one.now is None else "new" if one.before is None else yes(not one.is_worse)
    return {
        "line": one.name,
        "what": {"ratio": "CPU ratio", "n_rows": "model rows"}[one.what],
        "now": _number(one.now),
        other: _number(one.before),
        "change": "-" if one.change is None else f"{one.change:.2f}",
        f"at most {FACTOR}": judged,
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def verdict(compared: list[Compared]) -> str:
    """Sentence on what got worse."""
    worse = [f"{one.name} ({one.what}: {one.change:.2f} times)" for one in compared if one.is_worse]
    return f"Worse by more than {FACTOR}: {'; '.join(worse)}." if worse else "Nothing got much worse."


def run_all(names: list[str], slow: str | None) -> dict[str, dict[str, float]]:
    """All lines, each in a fresh process."""
    found = {}
    for name in (name for name in names if name != KERNEL):
        print(name, file=sys.stderr, flush=True)
        found[name] = json.loads(run_alone("quick", "--line", name, "2" if name == slow else "1"))
    python = find_python(install=False)
    if python is not None and KERNEL in names:
        found[KERNEL] = run_kernel(python)
    return found


def run_in_turns(names: list[str], checkout: Path) -> list[dict[str, dict[str, float]]]:
    """All lines but KernelExplainer's, now and by an older version, each the best of processes that take turns."""
    now: dict[str, dict[str, float]] = {}
    before: dict[str, dict[str, float]] = {}
    for name in (name for name in names if name != KERNEL):
        print(name, file=sys.stderr, flush=True)
        for _ in range(TURNS):
            for found, folder in ((before, checkout), (now, None)):
                line = json.loads(run_alone("quick", "--line", name, "1", checkout=folder))
                line["ratio"] = min(line["ratio"], found.get(name, line)["ratio"])
                found[name] = line
    return [now, before]


def tell_change(names: list[str], checkout: Path, *, write: bool) -> int:
    """Compare with an older version, in turns."""
    if not (checkout / "benchmarks" / "speed" / "quick.py").is_file():
        raise SystemExit(f"--before must be a checkout of condshap with this benchmark in it, got {checkout}.")
    found = now, before = run_in_turns(names, checkout.resolve())
    compared = compare(now, before)
    publish("quick-before", found, describe(compared, "before"), page="quick", write=write)
    print(verdict(compared))
    return int(any(one.is_worse for one in compared))


def main() -> int:
    """Run, compare and tell."""
    given = parser("quick", __doc__)
    names = [*LINES, KERNEL]
    given.add_argument("--update", action="store_true", help="store what is found as the level to hold")
    given.add_argument("--only", nargs="+", choices=names, default=names, metavar="LINE", help="; ".join(names))
    given.add_argument("--slow", choices=list(LINES), metavar="LINE", help="do the work of this line twice")
    given.add_argument("--line", nargs=2, help="one line by itself, as JSON: NAME TIMES")
    given.add_argument("--before", type=Path, metavar="DIR", help="compare with this checkout of an older version")
    options = given.parse_args()
    if options.line:
        print(json.dumps(run_line(options.line[0], int(options.line[1]))))
        return 0
    compile_kernels()
    if options.before:
        return tell_change(options.only, options.before, write=options.write)
    found = run_all(options.only, options.slow)
    committed = (read("quick") or {"results": {}})["results"]
    compared = compare(found, {name: line for name, line in committed.items() if name in options.only})
    text = f"{describe(compared)}\n\n{verdict(compared)}"
    if options.update:
        publish("quick", {**committed, **found}, text, write=options.write)
        return 0
    print(text)
    return int(any(one.is_worse for one in compared))


if __name__ == "__main__":
    sys.exit(main())
