"""What every approach costs with a linear model, beside R's shapr: CPU seconds of fit + explain and peak memory.

Run ``python -m benchmarks.approaches``; the tables go into benchmarks/README.md. Two problems: Burr data with M = 10, all
1024 coalitions and 100 rows, and the paper's mixed data with M = 4 and 500 rows; N_train = 1000 and K = 250 for both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from benchmarks.measure import best, measure, run_alone
from benchmarks.report import publish_tables
from condshap.studies.designs import Design, burr_design, mixed_design
from condshap.types import Model

N_TRAIN = 1000
N_SAMPLES = 250
REPEATS = 2
PEAK_BAR_MIB = 1.2 * 1024


@dataclass(frozen=True)
class Case:
    """An approach, R shapr's CPU seconds on such a machine with one core, and the seconds that are allowed here."""

    approach: str
    shapr_cpu: float
    bar: float


@dataclass(frozen=True)
class Problem:
    """A table of cases: how its design and model are made, the rows to explain, and the cases."""

    title: str
    make_design: Callable[[], Design]
    make_model: Callable[[], Model]
    n_rows: int
    cases: tuple[Case, ...]


def _one_hot() -> Model:
    factors = make_column_selector(dtype_include="category")
    columns = make_column_transformer((OneHotEncoder(drop="first"), factors), remainder="passthrough")
    return make_pipeline(columns, LinearRegression())


PROBLEMS = {
    "burr": Problem(
        "Burr data, M = 10, all 1024 coalitions, 100 rows, N_train = 1000, K = 250, linear model",
        lambda: burr_design(10, seed=1),
        LinearRegression,
        100,
        (
            Case("independence", 59, 5.9),
            Case("gaussian", 24, 6.0),
            Case("copula", 380, 38.0),
            Case("empirical", 237, 23.7),
            Case("ctree", 711, 35.55),
        ),
    ),
    "mixed": Problem(
        "Mixed data, M = 4 (2 numbers, 2 factors of 4 levels, rho = 0.5), 500 rows, N_train = 1000, K = 250, linear model "
        "on one-hot columns",
        lambda: mixed_design("M4", rho=0.5),
        _one_hot,
        500,
        (Case("independence", 15, 5.0), Case("ctree", 43, 5.0)),
    ),
}


def run_case(problem: Problem, case: Case) -> str:
    """Measure one approach and say how it compares, as a line of the table."""
    design = problem.make_design()
    X_train, X = design.draw(N_TRAIN, seed=1), design.draw(problem.n_rows, seed=2)
    model = problem.make_model().fit(X_train, design.respond(X_train, seed=1))
    explainer = cs.Explainer(
        model, approach=case.approach, n_samples=N_SAMPLES, progress=False, additive=False
    )  # sampling is measured
    runs = [measure(lambda: explainer.fit(X_train).explain(X)) for _ in range(REPEATS)]
    ours = best(runs)
    holds = ours.cpu <= case.bar and ours.peak_mib <= PEAK_BAR_MIB
    return (
        f"| {case.approach} | {ours.cpu:.2f} | {runs[0].cpu:.2f} | {ours.peak_mib:.0f} | "
        f"{ours.result.value_table.n_evaluations:,} | {case.shapr_cpu:.0f} | {ours.cpu / case.shapr_cpu:.3f} | "
        f"{case.bar:g} s, {case.bar / case.shapr_cpu:.3f} | {'yes' if holds else '**no**'} |"
    )


def describe_problem(name: str) -> str:
    """Table of one problem, each approach measured in a process of its own."""
    problem = PROBLEMS[name]
    heads = (
        "| approach | CPU s | CPU s, first run | peak MiB beyond the data | model rows | R shapr CPU s | ratio | bar | "
        "holds |\n|" + 9 * " --- |"
    )
    lines = [run_alone("benchmarks.approaches", name, case.approach).strip() for case in problem.cases]
    return "\n".join([problem.title, "", heads, *lines])


def main() -> None:
    """Print all tables; with a problem and an approach as arguments, the line of that case."""
    if len(sys.argv) == 3:
        problem = PROBLEMS[sys.argv[1]]
        print(run_case(problem, next(case for case in problem.cases if case.approach == sys.argv[2])))
        return
    publish_tables("approaches", "\n\n".join(map(describe_problem, PROBLEMS)))


if __name__ == "__main__":
    main()
