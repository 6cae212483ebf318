"""Are few quasi-random samples, with K by coalition size, as good as 250 plain ones of the same fitted approach?

Answer: yes for Shapley values, in all cases but one, with 8 to 43 % of the model rows. Single v(S) are up to 2.5 times as
noisy where K is small, because they hardly matter for the Shapley values.

Both kinds of samples are unbiased, so the standard deviation over replicates is the root mean squared error. The truth is
not needed, and the same replicates serve all models at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.lib.report import parser, publish
from condshap.approaches import find_approach
from condshap.approaches.base import fit_approach
from condshap.coalitions import CoalitionPlan, make_plan
from condshap.models.predictor import Predictor
from condshap.numerics.sobol import pool_size
from condshap.precision.sample_sizes import allocate_samples
from condshap.schema import FeatureSchema
from condshap.seeding import generator
from condshap.solvers import solve_shapley
from condshap.studies.designs.burr import burr_design
from condshap.values.assignments import Part
from condshap.values.engine import ValueEngine
from condshap.values.table import Settings

SIZES, APPROACHES = (5, 10, 25), ("gaussian", "copula", "vaeac")
N_TRAIN, N_ROWS, PLAIN = 1000, 3, 250
REPLICATES = {"default": 8, "plain": 4}
FIRST_SEED = 7000  # no other seeds of the project are near


@dataclass(frozen=True)
class Together:
    """Several models as one with all of their outputs, each evaluated as the explainer would."""

    predictors: dict[str, Predictor]

    @property
    def output_names(self) -> tuple[str, ...]:
        """Name of the model behind each output."""
        return tuple(name for name, one in self.predictors.items() for _ in one.output_names)

    @property
    def units(self) -> Any:
        """Units of the columns, which are those of every model."""
        return next(iter(self.predictors.values())).units

    def predict_fast(self, rows: np.ndarray) -> np.ndarray:
        """Outputs of all models."""
        return np.column_stack([one.predict_fast(rows.copy()) for one in self.predictors.values()])


def make_models(X: np.ndarray, y: np.ndarray, schema: FeatureSchema) -> Together:
    """Forest of 500 trees, XGBoost as regressor and classifier, and a smooth function."""
    import xgboost

    weights = np.linspace(0.5, 1.5, X.shape[1]) / X.shape[1]

    def smooth(x: np.ndarray) -> np.ndarray:
        return x @ weights + np.sin(2 * x[:, 0]) * x[:, 1] + np.arctan(x[:, 2] * x[:, 3])

    options = {"n_estimators": 100, "max_depth": 4, "n_jobs": 1, "random_state": 0}
    models = {
        "forest": RandomForestRegressor(500, max_features="sqrt", min_samples_leaf=5, random_state=0).fit(X, y),
        "XGBoost": xgboost.XGBRegressor(**options).fit(X, y),
        "classifier": xgboost.XGBClassifier(**options).fit(X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))),
        "smooth": smooth,
    }
    return Together({name: Predictor.of(one, schema, X, fast_trees=True) for name, one in models.items()})


def plain_normals(n_points: int, n_dims: int, seed: int) -> np.ndarray:
    """Independent normals in the shape of a pool of nets."""
    return generator(seed, "plain").standard_normal((pool_size(n_points, n_dims), n_points, n_dims))


@contextmanager
def plain_draws(part: Part) -> Iterator[Part]:
    """Let a fitted approach draw independently."""
    with patch("condshap.numerics.gaussian.normal_nets", plain_normals):
        if part.approach.name != "vaeac":
            yield part
            return
        networks, approach = copy(part.approach.networks_), copy(part.approach)
        networks.fitted_ = replace(networks.fitted_, config=replace(networks.fitted_.config, draws="plain"))
        approach.networks_ = networks
        yield replace(part, approach=approach)


def replicate(part: Part, models: Together, rows: np.ndarray, plan: CoalitionPlan, kind: str, seed: int) -> np.ndarray:
    """Value table (C, R, O) of fresh samples."""
    K = allocate_samples(plan) if kind == "default" else np.full(len(plan.masks), PLAIN)
    moments = ValueEngine(models, Settings(progress=False)).estimate((part,), rows, plan.masks, K, seed=seed)
    return moments.means


def errors_of(tables: np.ndarray, f: np.ndarray, plan: CoalitionPlan, chosen: np.ndarray) -> dict[str, float]:
    """RMSE of phi and of v(S), and how much the noise adds to MSEv, from replicates (T, C, R, O) of one model's outputs."""
    values = tables[..., chosen]
    values[:, 0], values[:, -1] = 0.0, 0.0  # known without samples
    phi = np.stack([solve_shapley(v, np.zeros_like(v), plan).values for v in values])
    inner = values[:, plan.interior]
    noise = inner.var(axis=0, ddof=1).mean()
    msev = ((inner - f[:, chosen]) ** 2).mean() - noise  # the mean of the replicates' MSEv, less what noise adds
    return {"phi": float(np.sqrt(phi.var(axis=0, ddof=1).mean())), "v": float(np.sqrt(noise)), "msev": noise / msev}


def run(n_features: int) -> list[dict[str, object]]:
    """All approaches and models at one number of features."""
    design = burr_design(n_features, seed=FIRST_SEED)
    frame = design.draw(N_TRAIN + N_ROWS, seed=FIRST_SEED + n_features)
    X = frame.to_numpy()
    y = design.respond(frame, seed=FIRST_SEED + n_features)
    train, rows = X[:N_TRAIN].copy(), X[N_TRAIN:].copy()
    schema = FeatureSchema.learn(train)
    models = make_models(train, y[:N_TRAIN], schema)
    plan = make_plan(n_features, None if n_features <= 10 else 1000, seed=FIRST_SEED)
    f, names = models.predict_fast(rows), np.array(models.output_names)
    lines = []
    for name in APPROACHES:
        start = time.process_time()
        approach = find_approach(name)()
        fit_approach(approach, train, schema, plan=plan, seed=FIRST_SEED, predict=models.predict_fast)
        part = Part(approach, np.arange(len(plan.masks))[plan.interior])
        tables = {}
        for kind, n in REPLICATES.items():
            with plain_draws(part) if kind == "plain" else _as_it_is(part) as drawing:
                seeds = range(FIRST_SEED, FIRST_SEED + n)
                tables[kind] = np.stack([replicate(drawing, models, rows, plan, kind, seed) for seed in seeds])
        K = allocate_samples(plan)[plan.interior]
        for model in models.predictors:
            found = {kind: errors_of(table.copy(), f, plan, names == model) for kind, table in tables.items()}
            lines.append({"M": n_features, "approach": name, "model": model, "mean_K": float(K.mean()), **found})
        print(f"M = {n_features}, {name}: {time.process_time() - start:.0f} CPU s", file=sys.stderr)
    return lines


@contextmanager
def _as_it_is(part: Part) -> Iterator[Part]:
    yield part


def table_of(lines: list[dict[str, object]]) -> str:
    """Markdown table: ratios of default to plain."""
    head = (
        "| M | approach | model | samples a pair: default, plain | RMSE of phi: default / plain | RMSE of v(S) | "
        "noise in MSEv, % |"
    )
    rule = "| --- | --- | --- | --- | --- | --- | --- |"
    body = []
    for line in lines:
        default, plain = line["default"], line["plain"]
        phi = f"{default['phi']:.2g} / {plain['phi']:.2g} = {default['phi'] / plain['phi']:.2f}"
        v = f"{default['v']:.2g} / {plain['v']:.2g} = {default['v'] / plain['v']:.2f}"
        msev = f"{100 * default['msev']:.2f}, {100 * plain['msev']:.2f}"
        body.append(
            f"| {line['M']} | {line['approach']} | {line['model']} | {line['mean_K']:.1f}, {PLAIN} | {phi} | {v} | {msev} |"
        )
    return "\n".join([head, rule, *body])


def main() -> None:
    """Print the table; it is stored if it is complete."""
    given = parser("sampling", __doc__)
    given.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="M", help="numbers of features")
    options = given.parse_args()
    lines = [line for size in options.sizes for line in run(size)]
    if options.sizes == list(SIZES):
        publish("sampling", lines, table_of(lines), write=options.write)
    else:
        print(table_of(lines))


if __name__ == "__main__":
    main()
