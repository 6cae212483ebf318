"""Explanations whose value tables are given, for tests of interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd

import condshap as cs
from condshap.coalitions import all_coalitions, make_plan
from condshap.explanation import Explanation, Provenance


def of_table(values, masks=None, errors=0.0, *, is_exact=True, outputs=("prediction",)) -> Explanation:
    """Explanation with this value table (C, R) or (C, R, O); its Shapley values do not matter here."""
    values = np.asarray(values, dtype=float)
    P = masks.shape[1] if masks is not None else int(np.log2(len(values)))
    masks = all_coalitions(P).masks if masks is None else masks
    base, predictions = values[0], values[-1]
    names = tuple(f"player {j}" for j in range(P))
    phi = np.repeat((predictions - base)[:, None] / P, P, axis=1)
    table = cs.ValueTable(masks, values, np.broadcast_to(np.asarray(errors, float), values.shape).copy(), 0)
    data = pd.DataFrame(np.zeros((values.shape[1], P)), columns=names, index=[f"r{i}" for i in range(values.shape[1])])
    about = Provenance("gaussian", {}, 0, (), len(masks), is_exact, 0, "mean", {}, {})
    members = tuple((j,) for j in range(P))
    return Explanation(
        phi, base, predictions, np.zeros_like(phi), table, data, names, names, outputs, members, about
    )  # fmt: skip


def random_table(P, *shape, seed=0):
    return np.random.default_rng(seed).normal(size=(2**P, *shape)) + 3.0


def sampled(explanation, n_coalitions, seed=0) -> Explanation:
    """The same game with some of its coalitions."""
    P = len(explanation.player_names)
    masks = make_plan(P, n_coalitions, seed=seed).masks
    table = explanation.value_table
    place = {mask.tobytes(): i for i, mask in enumerate(table.coalitions)}
    some = [place[mask.tobytes()] for mask in masks]
    return of_table(table.values[some], masks, table.std_errors[some], is_exact=False)
