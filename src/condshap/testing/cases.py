"""Approach -> cases: tables of every kind that it supports, on which its promises are checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from condshap.approaches.base import ConditionalSamples, fit_approach, is_sampler
from condshap.coalitions import CoalitionPlan, all_coalitions
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import row_keys
from condshap.types import Floats, Masks, Rows
from condshap.values.host import splice

N_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class Case:
    """An unfitted approach and a table of a kind that it supports: training rows (N, M), rows to explain (R, M)."""

    approach: Any
    kind: str
    schema: FeatureSchema
    train: Rows
    rows: Rows
    plan: CoalitionPlan

    def fitted(self) -> Any:
        """Fit a fresh copy of the approach."""
        return self.fit(fresh_copy(self.approach))

    def fit(self, fresh: Any) -> Any:
        """Fit this approach on the training rows."""
        return fit_approach(fresh, self.train, self.schema, plan=self.plan, seed=0, predict=outputs)

    def answer(self, fitted: Any, rows: Rows, masks: Masks, *, seed: int = 0) -> Floats:
        """Return spliced samples with their weights as the last column (C, R, 16, M + 1), or values (C, R, O).

        Fewer samples are padded, and all padding, which has weight zero, is zero.
        """
        if not is_sampler(fitted):
            return np.asarray(fitted.estimate(rows, masks))
        samples = fitted.sample(rows, masks, N_SAMPLES, keys=row_keys(rows), seed=seed)
        spliced = _spliced(samples, rows, masks)
        weights = np.ones(spliced.shape[:3]) if samples.weights is None else samples.weights
        joined = np.concatenate([spliced * (weights != 0)[..., None], weights[..., None]], axis=3)
        assert joined.shape[2] <= N_SAMPLES, f"at most {N_SAMPLES} samples were asked for, got {joined.shape[2]}"
        return np.pad(joined, [(0, 0), (0, 0), (0, N_SAMPLES - joined.shape[2]), (0, 0)])


def fresh_copy(approach: Any) -> Any:
    """Unfitted copy of an approach."""
    return clone(approach, safe=False)


def cases(approach: Any) -> Iterator[Case]:
    """Tables of every kind that the approach supports: continuous, categorical, both, and with missing values."""
    frames = {"continuous": ["a", "b", "c"], "categorical": ["d", "e", "f"], "mixed": ["a", "b", "d", "e"]}
    needed = {
        "continuous": {Kind.CONTINUOUS},
        "categorical": {Kind.CATEGORICAL},
        "mixed": {Kind.CONTINUOUS, Kind.CATEGORICAL},
    }
    table = example_table(80)
    for kind, columns in frames.items():
        if needed[kind] <= approach.supports:
            yield _case(approach, kind, table[columns])
            if approach.handles_missing:
                yield _case(approach, f"{kind} with missing", _with_gaps(table[columns]))


def example_table(n: int, seed: int = 0) -> pd.DataFrame:
    """Draw n rows of dependent features: continuous a, b, c and categorical d, e, f."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    a, b, c = (common + 0.7 * rng.normal(size=n) for _ in range(3))
    levels = np.array(["high", "low", "middle"])
    return pd.DataFrame(
        {
            "a": a,
            "b": np.exp(b),
            "c": c**3,
            "d": pd.Categorical(levels[np.digitize(common + rng.normal(size=n), [-0.5, 0.5])], categories=levels),
            "e": common + 0.5 * rng.normal(size=n) > 0,
            "f": pd.Series(np.where(common + rng.normal(size=n) > 0, "yes", "no")),
        }
    )


def _with_gaps(table: pd.DataFrame) -> pd.DataFrame:
    gaps = np.random.default_rng(5).random(table.shape) < 0.1
    gaps[:, 0] &= np.arange(len(table)) % 2 == 0
    return table.astype({c: object for c in table.columns if table[c].dtype == bool}).mask(gaps)


def _case(approach: Any, kind: str, table: pd.DataFrame) -> Case:
    schema = FeatureSchema.learn(table)
    encoded = schema.encode(table)
    return Case(approach, kind, schema, encoded[:-6], encoded[-6:], all_coalitions(table.shape[1]))


def outputs(rows: Rows) -> Floats:
    """Two outputs (n, 2) of rows (n, M): what approaches that need a model are fitted to.

    Columns are added one after the other: every row is rounded by itself, whatever its batch.
    """
    filled = np.nan_to_num(rows)
    total = np.zeros(len(rows))
    for column in filled.T:
        total += column
    return np.column_stack([total, filled[:, 0] ** 2])


def _spliced(samples: ConditionalSamples, rows: Rows, masks: Masks) -> Floats:
    parts = splice(samples, rows, masks)
    flat = parts.rows if parts.positions is None else parts.rows[parts.positions]
    return flat.reshape(*parts.shape, rows.shape[1])


def interior(case: Case) -> Masks:
    """Coalitions (C, M) of a case but for the empty and the grand one."""
    return case.plan.masks[case.plan.interior]
