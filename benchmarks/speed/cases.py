"""The paper's cases with condshap's defaults: CPU seconds, model rows, memory and error, beside the paper's and R's times.

Three groups of tables, of which --only chooses some:

cases     Burr M = 5, 25, 100 and Abalone with a forest of 500 trees, mixed M = 4, 6, 25 with a linear model
forest    Burr M = 10, N = 1000, 100 rows, all 1024 coalitions, a forest of 500 trees: our time against the time that
          scikit-learn's own predict takes for the very rows that we asked for
overhead  what explain costs beyond the model's own predictions on the same rows, every approach, with few rows explained

Every line is a fresh process. Lines that are not measured stay as they were. The truth is computed once and kept in
benchmarks/results/cases.truth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import condshap as cs
from benchmarks.lib.measure import Asked, Measured, asked_of_models, best, measure, measure_stages, run_alone
from benchmarks.lib.others import PAPER_MINUTES, SHAPR_SECONDS
from benchmarks.lib.problems import compile_kernels
from benchmarks.lib.report import FOLDER, parser, publish, read, table, yes
from condshap.coalitions import all_coalitions, make_plan
from condshap.datasets import load_abalone
from condshap.demo.abalone import fit_forest
from condshap.evaluation import ec1
from condshap.studies.problems.cells import BurrCell, Cell, MixedCell, Problem, speed_up
from condshap.studies.problems.truths import Truth, find_truth
from condshap.studies.published import published

TRUTHS = FOLDER / "cases.truth"
N_TREES = 500


@dataclass(frozen=True)
class Case:
    """A cell of the paper's studies, the approaches that are run, and whether the truth is cheap enough."""

    title: str
    cell: Cell | None
    methods: tuple[str, ...]
    has_truth: bool = False


CONTINUOUS, MIXED = ("gaussian", "ctree", "vaeac"), ("ctree", "vaeac")
CASES = {
    "burr-5": Case("Burr M = 5, N = 1000, 100 rows, 500 trees", BurrCell(5, 1000), CONTINUOUS, True),
    "burr-10": Case("Burr M = 10, N = 1000, 100 rows, 500 trees", BurrCell(10, 1000), CONTINUOUS, True),
    "burr-25": Case("Burr M = 25, N = 1000, 100 rows, 500 trees", BurrCell(25, 1000, n_coalitions=1000), CONTINUOUS),
    "burr-100": Case(
        "Burr M = 100, N = 5000, 100 rows, 500 trees", BurrCell(100, 5000, n_coalitions=1000), ("gaussian", "vaeac")
    ),
    "mixed-4": Case("mixed M = 4, N = 1000, 500 rows, linear", MixedCell("M4", 0.5, 1000), MIXED, True),
    "mixed-6": Case("mixed M = 6, N = 1000, 500 rows, linear", MixedCell("M6", 0.5, 1000), MIXED, True),
    "mixed-25": Case(
        "mixed M = 25, N = 1000, 500 rows, linear", MixedCell("M25", 0.5, 1000, n_coalitions=1000), MIXED, True
    ),
    "abalone": Case("Abalone M = 8, N = 4077, 100 rows, 500 trees", None, MIXED),
}
FOREST_CASE = "burr-10"
SLACK = 1.15
"""An explanation should cost what the model's own predictions cost, and at most 15 % more."""
TRAINING = 30.0
"""CPU seconds that networks may take on top for training, which is paid once and not per explanation."""
MOST_ROWS = 2_000_000
"""Model rows of 100 explanations with 1024 coalitions: 20 a coalition, where 250 plain samples would be 25 million."""
MOST_CTREE = 180.0
"""CPU seconds for 1022 trees and their predictions: three minutes for what the paper gives as 46."""
ALLOWED = (
    f"At most {SLACK} times what predict takes for these rows, {TRAINING:.0f} s more where networks are trained; ctree, "
    f"which asks for more rows, {MOST_CTREE:.0f} s."
)
OVERHEAD_ROWS, OVERHEAD_REPEATS, MOST_OVERHEAD = {"burr": 5, "mixed": 50}, 2, 0.15
MORE_ROWS = {"gaussian": 4, "copula": 4, "vaeac": 4, "empirical": 3}
"""Approaches that ask for fewer model rows, or spend time on every coalition however few the rows, explain more of them."""
REGRESSIONS = ("regression_separate", "regression_surrogate")
OVERHEAD = {
    "burr": ("independence", "empirical", "gaussian", "copula", "ctree", "vaeac", *REGRESSIONS),
    "mixed": ("independence", "ctree", "vaeac"),
}


def make_problem(name: str) -> Problem:
    """Data and model of a case, with the coalitions that are condshap's default."""
    cell = CASES[name].cell
    if cell is None:
        data = load_abalone()
        model = fit_forest(data, N_TREES)
        model[-1].set_params(n_jobs=1)
        plan = all_coalitions(data.X.shape[1])
        return Problem(None, data.X_train, data.X_test, None, model, float(data.y_train.mean()), plan)
    problem = cell.make_problem(0)
    return replace(problem, plan=make_plan(problem.X.shape[1], None, seed=0))


def make_explainer(problem: Problem, method: str, model: Any = None) -> cs.Explainer:
    """Explainer with nothing but defaults, on the CPU."""
    return cs.Explainer(
        problem.model if model is None else model,
        approach=method,
        base_value=problem.base_value,
        progress=False,
        device="cpu",
    )


def run_case(name: str, method: str) -> dict[str, Any]:
    """Fit and explain; what it cost, and the values."""
    problem = make_problem(name)
    explainer = make_explainer(problem, method)
    with asked_of_models() as asked:
        ran, cpu_fit = measure_stages(explainer, problem.X_train, problem.X)
    assert np.array_equal(explainer.plan_.masks, problem.plan.masks)
    asked_for = {"n_rows": asked.n_rows, "calls": asked.calls, "values": ran.result.values.tolist()}
    return {"cpu": ran.cpu, "cpu_fit": cpu_fit, "wall": ran.wall, "peak_mib": ran.peak_mib, **asked_for}


def run_forest(method: str) -> dict[str, Any]:
    """The forest case by condshap's own trees, by scikit-learn's predict, and predict alone on the very same rows."""
    found = run_case(FOREST_CASE, method)
    if method == "ctree":  # its bar is on seconds alone
        return found
    problem, asked = make_problem(FOREST_CASE), Asked(keep=True)
    explainer = make_explainer(problem, method, asked.around(problem.model.predict))
    slow = measure(lambda: explainer.fit(problem.X_train).explain(problem.X))
    rows = pd.concat(asked.rows)
    alone = measure(lambda: problem.model.predict(rows))
    same = np.array_equal(slow.result.values, found["values"])
    return {**found, "cpu_slow": slow.cpu, "cpu_predict": alone.cpu, "recorded_rows": len(rows), "same_values": same}


def run_overhead(design: str, method: str) -> dict[str, Any]:
    """CPU seconds of explain, and of predict on the rows that it asked for; the best of some runs each."""
    problem = overhead_problem(design, method)
    asked = Asked(keep=True)
    explainer = make_explainer(problem, method, asked.around(problem.model.predict)).fit(problem.X_train)
    explains: list[Measured] = []
    alone: list[Measured] = []
    for _ in range(OVERHEAD_REPEATS):
        asked.rows.clear()
        explains.append(measure(lambda: explainer.explain(problem.X)))
        rows = pd.concat(asked.rows)
        alone.append(measure(partial(problem.model.predict, rows)))
    cpu, predict = best(explains).cpu, best(alone).cpu
    counts = {"explained": len(problem.X), "n_rows": len(rows), "calls": len(asked.rows)}
    return {"cpu": cpu, "cpu_predict": predict, **counts}


def overhead_problem(design: str, method: str) -> Problem:
    """Few rows of a case, explained for a forest of 500 trees."""
    if design == "burr":
        problem = make_problem("burr-10")
    else:
        problem = make_problem("mixed-4")
        problem = replace(problem, model=fit_mixed_forest(problem))
    return replace(problem, X=problem.X.iloc[: MORE_ROWS.get(method, 1) * OVERHEAD_ROWS[design]])


def fit_mixed_forest(problem: Problem) -> Any:
    """Forest of 500 trees that reads levels as codes, grown on predictions of the linear model with noise."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    codes = (OrdinalEncoder(), make_column_selector(dtype_include="category"))
    forest = RandomForestRegressor(N_TREES, max_features="sqrt", min_samples_split=6, random_state=0, n_jobs=1)
    noise = np.random.default_rng(0).normal(size=len(problem.X_train))
    model = make_pipeline(make_column_transformer(codes, remainder="passthrough"), forest)
    return model.fit(problem.X_train, problem.model.predict(problem.X_train) + noise)


def alone(*arguments: str) -> dict[str, Any]:
    """Run one line in a fresh process."""
    found = json.loads(run_alone("cases", "--line", *arguments))
    shown = {name: value for name, value in found.items() if name != "values"}
    print(" ".join(arguments), shown, file=sys.stderr, flush=True)
    return found


def truth_of(name: str) -> Truth | None:
    """Truth of a case, if it is cheap."""
    case = CASES[name]
    if not case.has_truth or case.cell is None:
        return None
    return find_truth(case.cell, 0, speed_up(make_problem(name), "cpu"), TRUTHS)


def run_cases(names: Sequence[str], methods: Sequence[str]) -> list[dict[str, Any]]:
    """All lines of these cases, with errors against the truth."""
    found = []
    for name in names:
        truth = truth_of(name)
        for method in (m for m in CASES[name].methods if m in methods):
            line = alone("forest", method) if name == FOREST_CASE else alone("case", name, method)
            values = np.array(line.pop("values"))
            error = None if truth is None else float(ec1(truth.phi, values))
            found.append({"case": name, "method": method, **line, "ec1": error})
    return found


def cases_table(found: Sequence[dict[str, Any]]) -> str:
    """Table of cases beside the figures of others."""
    return table([case_cells(line) for line in found])


def case_cells(line: dict[str, Any]) -> dict[str, str]:
    """One line of the table of cases."""
    name, method = line["case"], line["method"]
    paper = PAPER_MINUTES.get((name, method))
    cell = CASES[name].cell
    paper_ec1 = None if cell is None else published(cell, method)
    return {
        "case": CASES[name].title,
        "approach": method,
        "CPU s": f"{line['cpu']:.1f}",
        "of which fit": f"{line['cpu_fit']:.1f}",
        "wall s": f"{line['wall']:.1f}",
        "model rows": f"{line['n_rows']:,}",
        "predict calls": f"{line['calls']:,}",
        "peak MiB": f"{line['peak_mib']:.0f}",
        "EC1": "-" if line["ec1"] is None else f"{line['ec1']:.4f}",
        "paper's EC1": "-" if paper_ec1 is None else f"{paper_ec1:.4f}",
        "paper's CPU s": "-" if paper is None else f"{60 * paper:.0f}",
        "ours / paper's": "-" if paper is None else f"{line['cpu'] / 60 / paper:.3f}",
        "R shapr's CPU s": SHAPR_SECONDS.get((name, method), "-"),
    }


def forest_text(found: Sequence[dict[str, Any]]) -> str:
    """Table of the forest case: what it costs, and what it may cost."""
    return table([cells for line in found for cells in forest_cells(line)])


def forest_cells(line: dict[str, Any]) -> list[dict[str, str]]:
    """Lines of one approach: by our trees, and by scikit-learn's predict."""
    training = TRAINING if line["method"] == "vaeac" else 0.0
    predict = line.get("cpu_predict")
    most = MOST_CTREE if predict is None else SLACK * predict + training
    runs = [("condshap's trees", "cpu"), *([] if predict is None else [("fast_trees=False", "cpu_slow")])]
    return [
        {
            "approach": line["method"],
            "evaluated by": title,
            "model rows": f"{line['n_rows']:,}",
            f"at most {MOST_ROWS:,}": "-" if predict is None else yes(line["n_rows"] <= MOST_ROWS),
            "CPU s, fit + explain": f"{line[key]:.1f}",
            "of which fit": f"{line['cpu_fit']:.1f}" if key == "cpu" else "-",
            "predict alone on these rows, CPU s": "-" if predict is None else f"{predict:.1f}",
            "microseconds a row": "-" if predict is None else f"{1e6 * predict / line['recorded_rows']:.1f}",
            "at most s": f"{most:.1f}",
            "holds": yes(line[key] <= most),
        }
        for title, key in runs
    ]


def overhead_table(found: Sequence[dict[str, Any]]) -> str:
    """Overhead of every approach."""
    return table([overhead_cells(line) for line in found])


def overhead_cells(line: dict[str, Any]) -> dict[str, str]:
    """Overhead of one approach; approaches that draw nothing ask for the explained rows alone, so there is no share."""
    share = line["cpu"] / line["cpu_predict"] - 1
    draws = line["method"] not in REGRESSIONS
    return {
        "data": line["design"],
        "approach": line["method"],
        "rows": str(line["explained"]),
        "explain, CPU s": f"{line['cpu']:.2f}",
        "predict alone, CPU s": f"{line['cpu_predict']:.2f}",
        "model rows": f"{line['n_rows']:,}",
        "predict calls": f"{line['calls']:,}",
        "overhead": f"{100 * share:.1f} %" if draws else "-",
        "at most": f"{100 * MOST_OVERHEAD:.0f} %" if draws else "-",
        "holds": yes(share <= MOST_OVERHEAD) if draws else "-",
    }


def describe(results: dict[str, Any]) -> str:
    """All tables that were run."""
    text = []
    if results.get("cases"):
        text += ["### Cases", cases_table(results["cases"])]
    forest = [line for line in results.get("cases", []) if line["case"] == FOREST_CASE]
    if forest:
        about = f"{CASES[FOREST_CASE].title}, all 1024 coalitions"
        text += [
            "### Beside the model's own predictions",
            f"{about}. {ALLOWED}",
            forest_text(forest),
        ]
    if results.get("overhead"):
        about = f"Few rows; explain alone, fast_trees=False; the best of {OVERHEAD_REPEATS} runs each."
        text += ["### Overhead with a forest of 500 trees", about, overhead_table(results["overhead"])]
    return "\n\n".join(text)


def with_earlier(results: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Results, and earlier ones of lines that were not measured now, in the order in which lines are defined."""

    def place(line: dict[str, Any]) -> tuple[int, int]:
        if "case" in line:
            return list(CASES).index(line["case"]), CASES[line["case"]].methods.index(line["method"])
        return list(OVERHEAD).index(line["design"]), OVERHEAD[line["design"]].index(line["method"])

    kinds = [kind for kind in ("cases", "overhead") if kind in results or kind in before]
    lines = {kind: {place(line): line for line in (*before.get(kind, []), *results.get(kind, []))} for kind in kinds}
    return {kind: [found[where] for where in sorted(found)] for kind, found in lines.items()}


def run_line(kind: str, *arguments: str) -> dict[str, Any]:
    """One line, in this process."""
    kinds: dict[str, Callable[..., dict[str, Any]]] = {"case": run_case, "forest": run_forest, "overhead": run_overhead}
    return kinds[kind](*arguments)


def main() -> None:
    """Measure what was asked for."""
    given = parser("cases", __doc__)
    choices = (*CASES, "overhead")
    given.add_argument("--only", nargs="+", choices=choices, default=choices, metavar="CASE", help=", ".join(choices))
    given.add_argument("--methods", nargs="+", default=CONTINUOUS, help="approaches of the cases")
    given.add_argument("--line", nargs="+", help="one line by itself, as JSON: case NAME METHOD, forest METHOD, ...")
    options = given.parse_args()
    if options.line:
        print(json.dumps(run_line(*options.line)))
        return
    compile_kernels()
    results: dict[str, Any] = {"cases": run_cases([name for name in CASES if name in options.only], options.methods)}
    if "overhead" in options.only:
        pairs = [(design, method) for design, methods in OVERHEAD.items() for method in methods]
        results["overhead"] = [
            {"design": design, "method": method, **alone("overhead", design, method)} for design, method in pairs
        ]
    results = with_earlier(results, (read("cases") or {}).get("results", {}))
    publish("cases", results, describe(results), write=options.write)


if __name__ == "__main__":
    main()
