"""Encoded rows, predictions -> what networks read: numbers on two scales, one-hot levels, flags of gaps, predictions.

The scales and one-hot blocks are those of vaeac. Two of them serve better than one: normal scores spread crowded values out,
z-scores keep their distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from condshap.approaches.base import State
from condshap.schema import FeatureSchema
from condshap.types import Floats, Masks, Rows
from condshap.vaeac.columns.encoding import Layout, ScoreScale, StandardScale

Inputs = npt.NDArray[np.float32]
"""(n, D) rows as networks read them."""


@dataclass(frozen=True, eq=False)
class RowEncoding:
    """Learned from the pool: where features are found, both scales of numbers, and which gaps and levels it has.

    Attributes
    ----------
    layout : of the M features, as in vaeac
    standard, scores : scales of the continuous features
    with_gaps : (M,) features that have gaps in the pool, in the layout's order; others get no flag
    with_level : (L,) levels of all features that are in the pool
    outputs : scale of predictions and hints
    """

    layout: Layout
    standard: StandardScale
    scores: ScoreScale
    with_gaps: Masks
    with_level: Masks
    outputs: StandardScale

    @classmethod
    def learn(cls, schema: FeatureSchema, rows: Rows, told: Floats) -> RowEncoding:
        """Learn from rows (N, M) of the pool, and predictions and hints for them (N, H)."""
        layout = Layout.of([len(feature.levels or ()) for feature in schema.features])
        ordered = rows[:, list(layout.order)]
        numbers = ordered[:, : layout.n_continuous].copy()
        empty = np.isnan(numbers).all(axis=0)
        numbers[:, empty] = 0.0  # nothing but gaps: a constant that no row has
        standard, scores = StandardScale.learn(numbers, cut=True), ScoreScale.learn(numbers)
        with_gaps = np.asarray(np.isnan(ordered).any(axis=0))
        with_level = np.asarray(_one_hot(layout, ordered).any(axis=0))
        return cls(layout, standard, scores, with_gaps, with_level, StandardScale.learn(told, cut=True))

    def inputs(self, rows: Rows, told: Floats) -> Inputs:
        """Rows (n, M) with predictions and hints (n, H) as networks read them, (n, D)."""
        z, scores, rest = self._parts(rows)
        return np.concatenate([z, scores, rest, self.outputs.encode(told)], axis=1, dtype=np.float32)

    def places(self, rows: Rows) -> Inputs:
        """Rows (n, M) where distances between them mean something, (n, D'): far numbers crowd, other levels are 1 apart."""
        z, scores, rest = self._parts(rows)
        squeezed = np.sign(z) * np.log1p(np.abs(z))
        return np.concatenate([squeezed, scores, rest * np.sqrt(0.5)], axis=1, dtype=np.float32)

    def is_new(self, rows: Rows) -> Masks:
        """Rows (n, M) with a gap or level that the pool has nowhere, or a number beyond what networks are told, (n,)."""
        ordered, n = rows[:, list(self.layout.order)], self.layout.n_continuous
        new_gaps = np.isnan(ordered) & ~self.with_gaps
        new_levels = (_one_hot(self.layout, ordered) > 0) & ~self.with_level
        numbers, standard = ordered[:, :n], self.standard
        z = standard.encode(numbers)
        is_cut = (z <= standard.limits[0]) | (z >= standard.limits[1])
        was_constant = (standard.sd == 0) & ~np.isnan(numbers) & (numbers != standard.mean)
        return np.asarray(np.concatenate([new_gaps, new_levels, is_cut, was_constant], axis=1).any(axis=1))

    def _parts(self, rows: Rows) -> tuple[Floats, Floats, Floats]:
        """z-scores and normal scores, zero for gaps, and one-hot levels beside flags of gaps."""
        ordered = rows[:, list(self.layout.order)]
        gaps, n = np.isnan(ordered), self.layout.n_continuous
        z, scores = (np.where(gaps[:, :n], 0.0, s.encode(ordered[:, :n])) for s in (self.standard, self.scores))
        one_hot = _one_hot(self.layout, ordered)
        return z, scores, np.concatenate([one_hot, gaps[:, self.with_gaps]], axis=1, dtype=np.float64)

    def to_state(self) -> State:
        """All of it as arrays."""
        scales: dict[str, Any] = {"standard": self.standard, "outputs": self.outputs}
        arrays = {
            f"{name}/{key}": getattr(one, key) for name, one in scales.items() for key in ("mean", "sd", "limits")
        }
        return State(
            {
                **arrays,
                "scores/values": self.scores.values,
                "scores/scores": self.scores.scores,
                "with_gaps": self.with_gaps,
                "with_level": self.with_level,
                "n_levels": np.array(self.layout.n_levels, dtype=np.int64),
            },
            {},
        )

    @classmethod
    def from_state(cls, state: State) -> RowEncoding:
        """Inverse of `to_state`."""
        own = state.arrays
        standard, outputs = (
            StandardScale(*(own[f"{name}/{key}"] for key in ("mean", "sd", "limits")))
            for name in ("standard", "outputs")
        )
        scores = ScoreScale(own["scores/values"], own["scores/scores"])
        return cls(Layout.of(own["n_levels"]), standard, scores, own["with_gaps"], own["with_level"], outputs)


def _one_hot(layout: Layout, ordered: Rows) -> Inputs:
    """Levels (n, L) of rows in the layout's order, zeros for gaps."""
    codes = ordered[:, layout.n_continuous :]
    known = ~np.isnan(codes)
    return layout.one_hot(np.where(known, codes, 0.0).astype(np.intp), known)
