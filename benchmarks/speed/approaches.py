"""What every approach costs with a linear model, beside R's shapr: CPU seconds of fit + explain and peak memory.

Two problems: Burr data with M = 10, all 1024 coalitions and 100 rows, and the paper's mixed data with M = 4 and 500 rows;
N_train = 1000 and K = 250 for both. No closed form is used for the linear model, so that the time is ours, not the model's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from benchmarks.lib.measure import best, measure, run_alone
from benchmarks.lib.report import parser, publish_rows, yes
from condshap.studies.designs import Design, burr_design, mixed_design
from condshap.types import Model

N_TRAIN = 1000
N_SAMPLES = 250
REPEATS = 2
PEAK_MIB = 1.2 * 1024
"""Memory that nobody has to think about: a laptop has it to spare beside the data."""


@dataclass(frozen=True)
class Case:
    """An approach, R shapr's CPU seconds on such a machine with one core, and the share of them that is allowed here.

    A share of 0.1 means: whoever comes from R waits a tenth of the time. It is larger where R is quick already.
    """

    approach: str
    shapr_cpu: float
    share: float


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
            Case("independence", 59, 1 / 10),
            Case("gaussian", 24, 1 / 4),
            Case("copula", 380, 1 / 10),
            Case("empirical", 237, 1 / 10),
            Case("ctree", 711, 1 / 20),
        ),
    ),
    "mixed": Problem(
        "Mixed data, M = 4 (2 numbers, 2 factors of 4 levels, rho = 0.5), 500 rows, N_train = 1000, K = 250, linear model "
        "on one-hot columns",
        lambda: mixed_design("M4", rho=0.5),
        _one_hot,
        500,
        (Case("independence", 15, 1 / 3), Case("ctree", 43, 1 / 10)),
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
    holds = ours.cpu <= case.share * case.shapr_cpu and ours.peak_mib <= PEAK_MIB
    return (
        f"| {case.approach} | {ours.cpu:.2f} | {runs[0].cpu:.2f} | {ours.peak_mib:.0f} | "
        f"{ours.result.value_table.n_evaluations:,} | {case.shapr_cpu:.0f} | {ours.cpu / case.shapr_cpu:.3f} | "
        f"{case.share:.3f} | {yes(holds)} |"
    )


def describe_problem(name: str) -> str:
    """Table of one problem, each approach measured in a process of its own."""
    problem = PROBLEMS[name]
    heads = (
        "| approach | CPU s | CPU s, first run | peak MiB beyond the data | model rows | R shapr CPU s | ratio | at most "
        "| holds |\n|" + 9 * " --- |"
    )
    lines = [run_alone("approaches", "--line", name, case.approach).strip() for case in problem.cases]
    return "\n".join([problem.title, "", heads, *lines])


def main() -> None:
    """Print all tables."""
    given = parser("approaches", __doc__)
    given.add_argument("--line", nargs=2, metavar=("PROBLEM", "APPROACH"), help="one line of a table by itself")
    options = given.parse_args()
    if options.line:
        problem = PROBLEMS[options.line[0]]
        print(run_case(problem, next(case for case in problem.cases if case.approach == options.line[1])))
        return
    publish_rows("approaches", "\n\n".join(map(describe_problem, PROBLEMS)), write=options.write)


if __name__ == "__main__":
    main()
