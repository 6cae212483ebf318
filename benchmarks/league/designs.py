"""Normal designs beside the league: near-duplicate columns, and plain ones where ``gaussian`` is right.

Truth is the mean of the model over exact conditional draws by the true covariance. ``rel`` is mean |error of phi| over
mean |phi|.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.league.sanity import correlation, draws_given
from benchmarks.league.store import rounded
from benchmarks.lib.problems import smooth_response
from benchmarks.lib.report import table
from condshap.coalitions import CoalitionPlan, make_plan
from condshap.explainer import Explainer
from condshap.numerics.gaussian import NormalModel, draw_conditional
from condshap.seeding import Streams, row_keys
from condshap.solvers import solve_shapley
from condshap.studies.problems.truths import truth_samples
from condshap.studies.running.methods import find_method
from condshap.types import Floats

N_TREES, N_ROWS, N_REPLICATES = 150, 50, 4
RHO = 0.5


@dataclass(frozen=True)
class Normal:
    """Normal columns with a unit variance: `kind` of correlations, M features, N training rows."""

    kind: str
    M: int
    N: int

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.kind}-{self.M}-{self.N}"

    def correlations(self) -> Floats:
        """Correlation matrix (M, M)."""
        if self.kind == "duplicates":  # four columns that are nearly one, two with 0.6 to everything
            made = np.full((self.M, self.M), 0.6)
            made[:4, :4] = 0.998
        elif self.kind == "factor":
            loadings = np.linspace(0.5, 0.95, self.M)
            made = np.outer(loadings, loadings)
        else:
            made = np.full((self.M, self.M), RHO)
        np.fill_diagonal(made, 1.0)
        return made


DUPLICATES = (Normal("duplicates", 6, 1000),)
NORMALS = tuple(Normal(kind, M, N) for kind in ("equal", "factor") for M in (8, 10) for N in (100, 1000))
DESIGNS = {design.name: design for design in (*DUPLICATES, *NORMALS)}


@dataclass(frozen=True)
class Posed:
    """A repetition of a design: training rows, rows to explain, a forest, its coalitions and true values."""

    X_train: pd.DataFrame
    X: pd.DataFrame
    model: Any
    plan: CoalitionPlan
    base_value: float
    phi: Floats
    error: float


def pose(design: Normal, repetition: int) -> Posed:
    """Draw rows, fit the forest and find the truth."""
    from sklearn.ensemble import RandomForestRegressor

    X_train, X = draw_rows(design, repetition)
    forest = RandomForestRegressor(N_TREES, min_samples_leaf=5, random_state=repetition)
    forest.fit(X_train, smooth_response(X_train, seed=repetition))
    plan, base = make_plan(design.M, None, seed=0), float(forest.predict(X_train).mean())
    return Posed(X_train, X, forest, plan, base, *find_truth(design, forest, X, plan, base))


def draw_rows(design: Normal, repetition: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training rows, and rows to explain."""
    rng = np.random.default_rng([design.M, design.N, repetition])
    rows = rng.multivariate_normal(np.zeros(design.M), design.correlations(), size=design.N + N_ROWS)
    frame = pd.DataFrame(rows, columns=[f"f{j}" for j in range(design.M)])
    return frame.iloc[: design.N], frame.iloc[design.N :].reset_index(drop=True)


def find_truth(design: Normal, forest: Any, X: pd.DataFrame, plan: CoalitionPlan, base: float) -> tuple[Floats, float]:
    """Shapley values (R, M) by exact conditional draws, and their mean absolute sampling error."""
    from condshap.models.predictor import Predictor
    from condshap.schema import FeatureSchema

    schema = FeatureSchema.learn(X)
    rows = schema.encode(X)
    predictor = Predictor.of(forest, schema, rows, fast_trees=True)
    law = NormalModel(np.zeros(design.M), np.ones(design.M), design.correlations())
    counts = truth_samples(plan)
    means = np.zeros((N_REPLICATES, len(plan.masks), len(rows)))
    for c in np.arange(len(plan.masks))[plan.interior]:
        for i in range(N_REPLICATES):
            streams = Streams(row_keys(rows), 1000 + i, "league truth")
            draws = draw_conditional(law, rows, plan.masks[[c]], int(counts[c]), streams)
            f = predictor.predict_fast(draws.reshape(-1, design.M))[:, 0]
            means[i, c] = f.reshape(len(rows), -1).mean(axis=1)
    return solve(means, predictor(rows.copy())[:, 0], plan, base)


def solve(means: Floats, predictions: Floats, plan: CoalitionPlan, base: float) -> tuple[Floats, float]:
    v, errors = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))
    v[0], v[-1], errors[0], errors[-1] = base, predictions, 0.0, 0.0
    solved = solve_shapley(v[..., None], errors[..., None], plan)
    return solved.values[..., 0], float(np.sqrt(2 / np.pi) * solved.std_errors.mean())


def run_design(name: str, repetition: int, approaches: Sequence[str], tag: str = "", device: str = "cpu") -> list[Any]:
    """Lines to store, one for each approach."""
    posed = pose(DESIGNS[name], repetition)
    return [run_approach(name, repetition, posed, approach, tag, device) for approach in approaches]


def run_approach(name: str, repetition: int, posed: Posed, approach: str, tag: str, device: str) -> dict[str, Any]:
    start = time.perf_counter()
    method = find_method(approach)
    explainer = Explainer(
        posed.model,
        approach=method.make_approach(device),
        n_samples=method.n_samples,
        coalitions=posed.plan,
        base_value=posed.base_value,
        seed=repetition,
        device=device,
        progress=False,
    ).fit(posed.X_train)
    phi = explainer.explain(posed.X).values
    size, seconds = np.abs(posed.phi).mean(), time.perf_counter() - start
    draws, weights = draws_given(explainer, posed.X.to_numpy()[0], [], repetition)
    line = {"table": "designs", "model": name, "approach": f"{approach}@{tag}" if tag else approach, "seed": repetition}
    line |= {"rel": float(np.abs(phi - posed.phi).mean() / size), "corr": correlation(draws[:, :2], weights)}
    return rounded(line | {"truth": posed.error / size, "seconds": seconds, "date": f"{datetime.now(UTC):%Y-%m-%d}"})


def design_page(lines: Sequence[dict[str, Any]]) -> str:
    """Means over repetitions, and the ratio to ``gaussian`` on the repetitions that both have."""
    made = []
    for name in sorted({line["model"] for line in lines}):
        mine = [line for line in lines if line["model"] == name]
        normal = {line["seed"]: line["rel"] for line in mine if line["approach"] == "gaussian"}
        for approach in sorted({line["approach"] for line in mine}):
            made.append(design_line(name, [line for line in mine if line["approach"] == approach], normal))
    return f"## Normal designs\n\n{table(made)}\n" if made else ""


def design_line(name: str, lines: Sequence[dict[str, Any]], normal: dict[int, float]) -> dict[str, str]:
    both = [line for line in lines if line["seed"] in normal]
    over = (
        np.mean([line["rel"] for line in both]) / np.mean([normal[line["seed"]] for line in both]) if both else np.nan
    )
    means = {part: np.mean([line[part] for line in lines]) for part in ("rel", "corr", "truth", "seconds")}
    entry = {"design": name, "approach": lines[0]["approach"], "R": str(len(lines)), "rel EC1": f"{means['rel']:.3f}"}
    entry |= {"over gaussian's": f"{over:.2f}", "corr of the first two": f"{means['corr']:.3f}"}
    return entry | {"truth's error": f"{means['truth']:.4f}", "seconds": f"{means['seconds']:.1f}"}
