"""Rows -> predictions for a few rows near each: with one player changed, or with only one player kept.

Where a model jumps, Shapley values jump too, and features alone do not tell where. A few dozen predictions do, in place of
the thousands behind an explanation: each player alone is taken from, or put into, typical rows of the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.models.predictor import Predictor
from condshap.runtime.memory import rows_that_fit
from condshap.schema import FeatureSchema
from condshap.types import Floats, Masks, Rows

_QUANTILES, _FEW_PLAYERS = (0.1, 0.3, 0.5, 0.7, 0.9), 16  # more players are changed in the middle row only


@dataclass(frozen=True, eq=False)
class Hints:
    """Typical rows (k, M), and `membership` (P, M) of features in players."""

    typical: Rows
    membership: Masks

    @classmethod
    def learn(cls, schema: FeatureSchema, rows: Rows, membership: Masks) -> Hints:
        """Rows of quantiles of the pool (N, M), all columns at the same one; levels are the most frequent ones."""
        shares = _QUANTILES if len(membership) <= _FEW_PLAYERS else (0.5,)
        columns = []
        for j, feature in enumerate(schema.features):
            known = rows[~np.isnan(rows[:, j]), j]
            if not len(known):
                columns.append(np.full(len(shares), np.nan))
            elif feature.levels is None:  # numbers that occur, because others may be no numbers of the column
                columns.append(np.quantile(known, shares, method="nearest"))
            else:
                columns.append(np.full(len(shares), float(np.bincount(known.astype(np.intp)).argmax())))
        return cls(np.stack(columns, axis=1), membership)

    def ask(self, predictor: Predictor, rows: Rows, budget: int) -> Floats:
        """Predictions (n, 2 P k O) for rows (n, M); gaps get typical values, because models may refuse them."""
        filled = np.where(np.isnan(rows), self.typical[len(self.typical) // 2], rows)
        n_outputs = len(predictor.output_names)
        found = np.empty((len(rows), len(self.typical) * len(self.membership) * 2, n_outputs))
        at_once = max(1, rows_that_fit(budget, rows.shape[1]) // max(1, found.shape[1]))
        for start in range(0, len(rows), at_once):
            some = filled[start : start + at_once]
            asked = self._beside(some)
            outputs = predictor.predict_fast(asked.reshape(-1, rows.shape[1]))
            found[start : start + at_once] = outputs.reshape(len(some), found.shape[1], n_outputs)
        return found.reshape(len(rows), -1)

    def _beside(self, rows: Rows) -> Rows:
        """Rows (n, 2 P k, M) beside each of n rows."""
        replaced = np.concatenate([self.membership, ~self.membership])  # one player changed, then one player kept
        beside = np.where(replaced, self.typical[:, None], rows[:, None, None])  # (n, k, 2 P, M)
        return beside.reshape(len(rows), -1, rows.shape[1])
