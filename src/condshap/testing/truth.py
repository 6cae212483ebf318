"""Mean, covariance -> an approach whose answers are known exactly, for tests of everything else."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, ConditionalSampler, DrawnRows
from condshap.coalitions import CoalitionPlan
from condshap.numerics.gaussian import NormalModel, draw_conditional
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import Streams
from condshap.types import Floats, Masks, RowKeys, Rows


class GaussianTruth(BaseEstimator):  # type: ignore[misc]
    """Approach that knows the distribution: normal with this mean (M,) and covariance (M, M). For tests.

    `exact_values` gives v(S) of a linear model in closed form.
    """

    name: ClassVar[str] = "gaussian truth"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False

    def __init__(self, mean: Floats, covariance: Floats) -> None:
        self.mean = mean
        self.covariance = covariance

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> ConditionalSampler:
        """Learn nothing from the training rows: everything is known."""
        scale = np.sqrt(np.diag(self.covariance))
        self.model_ = NormalModel(np.asarray(self.mean), scale, self.covariance / np.outer(scale, scale))
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M)."""
        rows = draw_conditional(self.model_, X, masks, n_samples, Streams(keys, seed, self.name))
        return DrawnRows(rows, error_factor=None)

    def exact_values(self, coefficients: Floats, X: Rows, masks: Masks) -> Floats:
        """E[x' coefficients | x_S], shape (C, R), from the regression of the unknown on the known features."""
        values = np.empty((len(masks), len(X)))
        for c, mask in enumerate(masks):
            known, unknown = np.flatnonzero(mask), np.flatnonzero(~mask)
            inner = self.covariance[np.ix_(known, known)]
            slopes = (
                np.linalg.solve(inner, self.covariance[np.ix_(known, unknown)])
                if len(known)
                else np.empty((0, len(unknown)))
            )
            expected = self.mean[unknown] + (X[:, known] - self.mean[known]) @ slopes
            values[c] = X[:, known] @ coefficients[known] + expected @ coefficients[unknown]
        return values
