"""Features with their own empirical margins, tied together by a Gaussian copula."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, DrawnRows
from condshap.approaches.gaussian import fit_normal
from condshap.coalitions import CoalitionPlan
from condshap.numerics.gaussian import NormalModel, draw_conditional
from condshap.numerics.margins import from_normal_scores, to_normal_scores
from condshap.schema import FeatureSchema, Kind
from condshap.types import Masks, RowKeys, Rows


class Copula(BaseEstimator):  # type: ignore[misc]
    """Gaussian copula: normal scores of the training rows are multivariate normal, margins stay as observed.

    Ties share their average rank. A value outside the training range gets the score half a rank beyond the last one,
    and samples never leave the training range.

    Notes
    -----
    Appendix A of the paper; Aas, Jullum and Løland (2021). Scores use rank / (N + 1); samples go back through the
    linearly interpolated empirical quantiles.
    """

    name: ClassVar[str] = "copula"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    default_samples: ClassVar[int | None] = None

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Copula:
        """Sort every column and estimate the correlation of the normal scores from training rows (N, M)."""
        self.sorted_ = np.sort(X, axis=0)
        scores = to_normal_scores(X, self.sorted_)
        correlation = fit_normal(scores, self.name).correlation
        varies = (self.sorted_[0] < self.sorted_[-1]).astype(np.float64)
        self.model_ = NormalModel(np.zeros(X.shape[1]), varies, correlation)
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M)."""
        scores = to_normal_scores(X, self.sorted_)
        rows = draw_conditional(self.model_, scores, masks, n_samples, keys=keys, seed=seed, stage=self.name)
        for j in range(X.shape[1]):
            known = masks[:, j]
            rows[known, :, :, j] = X[:, j, None]
            rows[~known, :, :, j] = from_normal_scores(rows[~known, :, :, j], self.sorted_[:, j])
        return DrawnRows(rows, error_factor=None)


APPROACH = Copula
