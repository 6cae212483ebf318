"""Explanations made by hand: their numbers are known, and drawing needs no model."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

from collections.abc import Callable, Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from condshap import Explanation, ValueTable
from condshap.explanation import Provenance


def build(
    values: Any,
    *,
    errors: Any = 0.05,
    base: float = 10.0,
    data: Any = None,
    names: list[str] | None = None,
    groups: dict[str, list[int]] | None = None,
    outputs: list[str] | None = None,
    approach: str = "gaussian",
    table: ValueTable | None = None,
) -> Explanation:
    """Explanation with given Shapley values (R, P) or (R, P, O)."""
    values = np.array(values, dtype=float)  # a copy: tests change explanations
    R, P = values.shape[:2]
    names = names or [f"feature {j}" for j in range(P)]
    membership = tuple(tuple(m) for m in groups.values()) if groups else tuple((j,) for j in range(P))
    features = [f"column {j}" for j in range(1 + max(max(m) for m in membership))] if groups else names
    if data is None:
        data = pd.DataFrame(np.random.default_rng(5).normal(size=(R, len(features))), columns=features)
    bases = np.full((R, *values.shape[2:]), base)
    predictions = bases + values.sum(axis=1)
    if table is None:
        masks = np.array([[False] * P, [True] * P])
        table = ValueTable(masks, np.stack([bases, predictions]), np.zeros((2, *bases.shape)), 0)
    provenance = Provenance(approach, {}, 0, (), 2, True, 0, "mean", {}, {})
    return Explanation(
        values, bases, predictions, np.broadcast_to(np.asarray(errors, float), values.shape).copy(), table, data,
        tuple(features), tuple(groups or names), tuple(outputs or ["prediction"]), membership, provenance,
    )  # fmt: skip


def build_wide(
    n_features: int, *, n_rows: int = 80, long_names: bool = False, seed: int = 0, **options: Any
) -> Explanation:
    """Explanation of many rows with numbers, levels and gaps; names have 40 characters on demand."""
    rng = np.random.default_rng(seed)
    names = [f"{'A rather long name of a feature ' if long_names else 'feature'} {j:02d}" for j in range(n_features)]
    names = [f"{name:_<40.40}" if long_names else name for name in names]
    columns: dict[str, Any] = {name: rng.normal(size=n_rows) for name in names}
    columns[names[0]] = pd.Categorical(rng.choice(["red", "green", "deep blue"], n_rows))
    columns[names[1]][::7] = np.nan
    shrink = 0.85 ** np.arange(n_features)
    values = rng.normal(size=(n_rows, n_features)) * shrink
    return build(values, errors=0.1 * shrink, data=pd.DataFrame(columns), names=names, **options)


@pytest.fixture
def explain() -> Callable[..., Explanation]:
    return build


@pytest.fixture
def explain_wide() -> Callable[..., Explanation]:
    return build_wide


@pytest.fixture(autouse=True)
def no_figures_are_left() -> Iterator[None]:
    yield
    plt.close("all")
