"""Features as one multivariate normal distribution, conditioned in closed form."""

from __future__ import annotations

import warnings
from typing import ClassVar

from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, DrawnRows
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import CondShapWarning
from condshap.numerics.gaussian import NormalModel, correlation_of, draw_conditional, floor_eigenvalues
from condshap.schema import FeatureSchema, Kind
from condshap.types import Floats, Masks, RowKeys, Rows


class Gaussian(BaseEstimator):  # type: ignore[misc]
    """Multivariate normal distribution with the training rows' mean and covariance.

    A covariance that cannot be inverted is shrunk: by Ledoit and Wolf's rule when there are no more rows than features,
    otherwise by the least share of the identity that makes it safe. Both are announced.

    Notes
    -----
    Appendix A of the paper; Aas, Jullum and Løland (2021). Samples are randomised quasi-Monte Carlo draws.
    """

    name: ClassVar[str] = "gaussian"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    default_samples: ClassVar[int | None] = None

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Gaussian:
        """Estimate mean, scale and correlation from training rows (N, M)."""
        self.model_ = fit_normal(X, self.name)
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M)."""
        rows = draw_conditional(self.model_, X, masks, n_samples, keys=keys, seed=seed, stage=self.name)
        return DrawnRows(rows, error_factor=None)


def fit_normal(X: Rows, approach: str) -> NormalModel:
    """Normal distribution of rows (N, M), shrunk where its correlation matrix is singular."""
    mean, scale, correlation = correlation_of(X)
    if len(X) <= X.shape[1]:
        correlation, share = _ledoit_wolf(X, mean, scale)
        _announce(approach, f"{len(X)} training rows are too few for {X.shape[1]} features", share)
    correlation, share = floor_eigenvalues(correlation)
    if share > 0:
        _announce(approach, "some features are linear combinations of others", share)
    return NormalModel(mean, scale, correlation)


def _ledoit_wolf(X: Rows, mean: Floats, scale: Floats) -> tuple[Floats, float]:
    """Shrunk correlation matrix and the share of the identity in it."""
    import numpy as np
    from sklearn.covariance import ledoit_wolf

    standard = (X - mean) / np.where(scale > 0, scale, 1.0)
    _, share = ledoit_wolf(standard, assume_centered=True)
    share = max(float(share), 1 / len(X))  # the rule itself breaks down when nearly every row is an outlier
    correlation = standard.T @ standard / (len(X) - 1)
    np.fill_diagonal(correlation, 1.0)
    return (1 - share) * correlation + share * np.eye(X.shape[1]), share


def _announce(approach: str, reason: str, share: float) -> None:
    warnings.warn(
        f"approach '{approach}': the covariance matrix is singular because {reason}; it was shrunk towards independence "
        f"by {share:.2g}. More rows, fewer features or groups would help.",
        CondShapWarning,
        stacklevel=2,
    )


APPROACH = Gaussian
