"""What do conditional means and margins gain over samples where a model is linear or additive?

Answer: `gaussian`, `independence` and `ctree` have no Monte Carlo error left and ask for a twentieth of the model rows
or fewer; `vaeac` has about half the error and is no cheaper with so fast a model.

Both ways use the same fitted approach. ``--curves`` runs models that are additive but not linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

import condshap as cs
from benchmarks.lib.measure import best, measure
from benchmarks.lib.problems import correlated_normals
from benchmarks.lib.report import parser, publish
from condshap.coalitions import all_coalitions
from condshap.models.predictor import Predictor
from condshap.solvers import solve_shapley
from condshap.studies.designs.burr import burr_design
from condshap.studies.designs.mixed import mixed_design
from condshap.testing import GaussianTruth

N_FEATURES, RHO, N_TRAIN, N_ROWS = 10, 0.6, 2000, 100
DATA_SEEDS, REPEATS, REPLICATES = range(5), 3, 8
MODES = {"samples": False, "means": "auto"}
CURVE_MODES = {"samples": "samples", "means": "margins"}
CURVE_FEATURES, CURVE_ROWS, CURVE_REPLICATES = 8, 30, 4


def gaussian_line(seed: int) -> dict[str, object]:
    """Explain 100 rows of equicorrelated normals, all 1024 coalitions: error against the truth, and CPU seconds."""
    X = correlated_normals(N_TRAIN + N_ROWS, N_FEATURES, RHO, seed=seed)
    train, rows = X[:N_TRAIN], X[N_TRAIN:]
    noise = np.random.default_rng(100 + seed).normal(size=N_TRAIN)
    model = LinearRegression().fit(train, train.to_numpy() @ np.linspace(0.5, 1.5, N_FEATURES) + noise)
    plan = all_coalitions(N_FEATURES)
    covariance = np.full((N_FEATURES, N_FEATURES), RHO) + (1 - RHO) * np.eye(N_FEATURES)
    truth = GaussianTruth(np.zeros(N_FEATURES), covariance).exact_values(model.coef_, rows.to_numpy(), plan.masks)
    v = (truth + model.intercept_)[..., None]
    phi = solve_shapley(v, np.zeros_like(v), plan).values[..., 0]
    line: dict[str, object] = {"seed": seed}
    for mode, additive in MODES.items():

        def explain(additive: bool | str = additive) -> cs.Explanation:
            explainer = cs.Explainer(model, approach="gaussian", progress=False, additive=additive)
            return explainer.fit(train).explain(rows)

        run = best(measure(explain) for _ in range(REPEATS))
        error = np.abs(run.result.values - phi).mean() / np.abs(phi).mean()
        line[mode] = {"rel": error, "cpu": run.cpu, "rows": run.result.value_table.n_evaluations}
    return line


def vaeac_line(name: str) -> dict[str, object]:
    """Monte Carlo error of phi of a default vaeac over replicates of its samples, and what it says of itself."""
    design = burr_design(10, seed=7000) if name == "Burr, M = 10" else mixed_design("M6", rho=0.5)
    X = design.draw(1010, seed=7001)
    train, rows, y = X[:1000], X[1000:], design.respond(X, seed=7002)[:1000]
    factors = make_column_selector(dtype_include="category")
    encode = make_column_transformer((OneHotEncoder(drop="first"), factors), remainder="passthrough")
    model = make_pipeline(encode, LinearRegression()).fit(train, y)
    line: dict[str, object] = {"problem": name}
    for mode, additive in MODES.items():
        explainer = cs.Explainer(model, approach="vaeac", progress=False, additive=additive).fit(train)
        runs = []
        for seed in range(7100, 7100 + REPLICATES):
            explainer.seed = seed
            runs.append(measure(lambda explainer=explainer: explainer.explain(rows)))
        spread = np.stack([run.result.values for run in runs]).var(axis=0, ddof=1)
        stated = np.stack([run.result.std_errors for run in runs]) ** 2
        line[mode] = {
            "rmse": float(np.sqrt(spread.mean())),
            "stated": float(np.sqrt(stated.mean())),
            "cpu": best(runs).cpu,
            "rows": runs[0].result.value_table.n_evaluations,
        }
    return line


def curve_model(name: str) -> Any:
    """Additive model that is not linear."""
    if name == "stumps":
        return GradientBoostingRegressor(max_depth=1, n_estimators=300, random_state=0)
    return make_pipeline(SplineTransformer(), Ridge())


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """Count the rows that models are asked to predict, by whatever stage."""
    counts, original = [0], Predictor._picked

    def counting(self: Predictor, outputs: np.ndarray, rows: np.ndarray) -> np.ndarray:
        counts[0] += len(rows)
        return original(self, outputs, rows)

    Predictor._picked = counting
    try:
        yield counts
    finally:
        Predictor._picked = original


def curve_line(name: str, approach: str) -> dict[str, object]:
    """Explain by samples and by margins, with replicates of the samples: errors of phi, CPU seconds and model rows."""
    X = correlated_normals(1000 + CURVE_ROWS, CURVE_FEATURES, RHO, seed=8000)
    train, rows = X[:1000], X[1000:]
    noise = np.random.default_rng(8001).normal(size=1000)
    model = curve_model(name).fit(train, np.sin(2 * train.to_numpy()).sum(axis=1) + noise)
    line: dict[str, object] = {"problem": name, "approach": approach}
    for mode, additive in MODES.items():
        with counted_rows() as n_rows:
            explainer = cs.Explainer(model, approach=approach, progress=False, additive=additive)
            fit = measure(lambda explainer=explainer: explainer.fit(train))
            runs, asked = [], []
            for seed in range(8100, 8100 + CURVE_REPLICATES):
                explainer.seed = seed
                runs.append(measure(lambda explainer=explainer: explainer.explain(rows)))
                asked.append(n_rows[0])  # the first one: at fit, and by one explanation
        values = np.stack([run.result.values for run in runs])
        stated = np.stack([run.result.std_errors for run in runs]) ** 2
        line[mode] = {
            "rmse": float(np.sqrt(values.var(axis=0, ddof=1).mean())),
            "stated": float(np.sqrt(stated.mean())),
            "fit": fit.cpu,
            "cpu": best(runs).cpu,
            "rows": asked[0],
        }
    return line


def curve_table(lines: list[dict[str, object]]) -> str:
    """Markdown table, two lines per model and approach."""
    head = "| model | approach | by | RMSE of phi | stated | CPU s, fit | CPU s, explain | model rows, both |"
    rule = "| --- | --- | --- | --- | --- | --- | --- | --- |"
    body = [
        f"| {line['problem']} | {line['approach']} | {CURVE_MODES[mode]} | {one['rmse']:.4f} | "
        f"{one['stated']:.4f} | {one['fit']:.2f} | {one['cpu']:.2f} | {one['rows']:,} |"
        for line in lines
        for mode, one in ((mode, line[mode]) for mode in MODES)
    ]
    return "\n".join([head, rule, *body])


def gaussian_table(lines: list[dict[str, object]]) -> str:
    """Markdown table, one line per way."""
    head = "| gaussian, by | error (rel), mean and largest of 5 data sets | CPU s, fit and explain | model rows |"
    rule = "| --- | --- | --- | --- |"
    body = []
    for mode in MODES:
        found = [line[mode] for line in lines]
        rel = [one["rel"] for one in found]
        cpu = np.median([one["cpu"] for one in found])
        body.append(f"| {mode} | {np.mean(rel):.4f}, {max(rel):.4f} | {cpu:.2f} | {found[0]['rows']:,} |")
    return "\n".join([head, rule, *body])


def vaeac_table(lines: list[dict[str, object]]) -> str:
    """Markdown table, two lines per problem."""
    head = "| vaeac | by | RMSE of phi | stated | CPU s, explain 10 rows | model rows |"
    rule = "| --- | --- | --- | --- | --- | --- |"
    body = [
        f"| {line['problem']} | {mode} | {one['rmse']:.4f} | {one['stated']:.4f} | {one['cpu']:.2f} | {one['rows']:,} |"
        for line in lines
        for mode, one in ((mode, line[mode]) for mode in MODES)
    ]
    return "\n".join([head, rule, *body])


def run_linear(*, write: bool) -> None:
    """Linear models."""
    gaussian = [gaussian_line(seed) for seed in DATA_SEEDS]
    vaeac = [vaeac_line(name) for name in ("Burr, M = 10", "mixed, M = 6")]
    text = f"{gaussian_table(gaussian)}\n\n{vaeac_table(vaeac)}"
    publish("linear", {"gaussian": gaussian, "vaeac": vaeac}, text, write=write)


def run_curves(*, write: bool) -> None:
    """Models that are additive but not linear."""
    curves = []
    for name in ("spline GAM", "stumps"):
        for approach in ("gaussian", "copula", "independence", "ctree", "vaeac"):
            curves.append(curve_line(name, approach))
            print(curve_table(curves[-1:]), flush=True)
    publish("curves", curves, curve_table(curves), write=write, page="linear")


def main() -> None:
    """Run one of the two."""
    given = parser("linear", __doc__)
    given.add_argument("--curves", action="store_true", help="models that are additive but not linear")
    options = given.parse_args()
    (run_curves if options.curves else run_linear)(write=options.write)


if __name__ == "__main__":
    main()
