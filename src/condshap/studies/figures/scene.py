"""Abalone, a forest and fitted approaches -> what the figures of Section 5 show: conditional samples and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from condshap.approaches.base import Donors
from condshap.explainer import Explainer
from condshap.explanation import Explanation
from condshap.seeding import row_keys
from condshap.studies.problems.abalone import AbaloneCell, choose_three
from condshap.studies.problems.cells import speed_up
from condshap.studies.running.methods import find_method
from condshap.studies.running.runner import make_explainer
from condshap.types import Floats

METHODS = ("independence", "ctree", "vaeac")
GIVEN = "ShellWeight"
AT = (0.05, 0.2, 0.4, 0.6)
"""Values of `GIVEN`, as in the paper."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Samples of a method given that `GIVEN` has one value.

    Attributes
    ----------
    rows : (K, M) table
    weights : (K,) that sum to 1
    responses : (K,) predictions of the forest
    """

    rows: pd.DataFrame
    weights: Floats
    responses: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """All that the figures of Section 5 are made of.

    Attributes
    ----------
    X_train : training rows
    drawn : by method and value of `GIVEN`
    explanations : by method, of three rows predicted below, close to and above the base value
    """

    X_train: pd.DataFrame
    drawn: dict[tuple[str, float], Drawn]
    explanations: dict[str, Explanation]


def make_scene(
    cell: AbaloneCell, methods: Sequence[str] = METHODS, *, n_samples: int = 250, seed: int = 0, device: str = "cpu"
) -> Scene:
    """Fit the forest and the methods, explain three rows, and draw samples."""
    problem = speed_up(cell.make_problem(seed), "cpu")
    distance = np.asarray(problem.model.predict(problem.X)) - problem.base_value
    three = problem.X.iloc[choose_three(distance, problem.X["Sex"].astype(str).to_numpy())]
    row = problem.X_train.head(1)
    drawn: dict[tuple[str, float], Drawn] = {}
    explanations = {}
    for name in methods:
        explainer = make_explainer(find_method(name), problem, seed=seed, device=device).fit(problem.X_train)
        explanations[name] = explainer.explain(three)
        drawn |= {(name, value): draw_given(explainer, row, value, n_samples, seed) for value in AT}
    return Scene(problem.X_train, drawn, explanations)


def draw_given(explainer: Explainer, row: pd.DataFrame, value: float, n_samples: int, seed: int) -> Drawn:
    """Draw all other features given that `GIVEN` has a value; samples of weight 0 are left out.

    `row` is any row (1, M): what it holds of the others is not used.
    """
    schema = explainer.schema_
    rows = schema.encode(row.assign(**{GIVEN: value}))
    mask = np.array([[name == GIVEN for name in schema.names]])
    approach = explainer.parts_[0].approach
    found = approach.sample(rows, mask, n_samples, keys=row_keys(rows), seed=seed)
    samples = found.table[found.indices] if isinstance(found, Donors) else found.rows.copy()
    samples[..., mask[0]] = rows[:, None, mask[0]]
    weights = np.ones(samples.shape[2]) if found.weights is None else found.weights[0, 0]
    table: pd.DataFrame = schema.decode(samples[0, 0][weights > 0])
    kept = weights[weights > 0]
    return Drawn(table, kept / kept.sum(), np.asarray(explainer.model.predict(table)))
