"""Features as one multivariate normal distribution, conditioned in closed form."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, Capabilities, DrawnRows, Outcomes, State
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import CondShapWarning, OptionError
from condshap.numerics.additive import AdditiveFunction, AffineFunction, add_terms
from condshap.numerics.chains import Chain
from condshap.numerics.curves import CurvedFunction
from condshap.numerics.gaussian import (
    ChainedNormal,
    NormalModel,
    conditional_margins,
    correlation_of,
    draw_conditional,
    expect_conditional,
    floor_eigenvalues,
)
from condshap.options import check_choice, floats_or_nan
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import Streams
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import LARGEST, SMALLEST_RANGE, Floats, Masks, RowKeys, Rows

if TYPE_CHECKING:
    from condshap.numerics.device_draws import DeviceDraws

COVARIANCES = ("sample", "ledoit_wolf")


class Gaussian(BaseEstimator):  # type: ignore[misc]
    """Multivariate normal distribution, by default with the training rows' mean and covariance.

    A covariance that cannot be inverted is shrunk, with a warning: by Ledoit and Wolf's rule if there are no more rows than
    features, otherwise by the smallest share of the identity that makes it safe.

    Parameters
    ----------
    mean : (M,), by default that of the training rows
    covariance : "sample", "ledoit_wolf", or (M, M)

    Notes
    -----
    Appendix A of the paper; Aas, Jullum and Løland (2021). Samples are randomised quasi-Monte Carlo draws.
    """

    name: ClassVar[str] = "gaussian"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        draws_on_device=True, expects=True, expects_exactly=True, is_storable=True,
        checks_options=True, follows_chains=True,
    )  # fmt: skip

    def __init__(self, mean: Floats | None = None, covariance: str | Floats = "sample") -> None:
        self.mean = mean
        self.covariance = covariance

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse a covariance or mean that is none of rows (N, M)."""
        if isinstance(self.covariance, str):
            check_choice("covariance", self.covariance, COVARIANCES)
        else:
            given_normal(X, self.covariance)
        if self.mean is not None:
            _given_mean(self.mean, X.shape[1])

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Gaussian:
        """Estimate mean, scale and correlation from training rows (N, M), or take them as given."""
        if isinstance(self.covariance, str):
            model = fit_normal(X, self.name, covariance=self.covariance)
        else:
            model = given_normal(X, self.covariance)
        self.model_ = model if self.mean is None else replace(model, mean=_given_mean(self.mean, X.shape[1]))
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M)."""
        rows = draw_conditional(self.model_, X, masks, n_samples, Streams(keys, seed, self.name))
        return DrawnRows(rows, error_factor=None)

    def sample_on(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int, device: str) -> DeviceDraws:
        """Draw the same on a device."""
        from condshap.numerics.device_draws import DeviceDraws, draw_normal

        streams = Streams(keys, seed, self.name)
        return DeviceDraws(draw_normal(self.model_, X, masks, n_samples, streams, device=device))

    def expect(
        self, X: Rows, masks: Masks, n_samples: int, *, function: AdditiveFunction, keys: RowKeys, seed: int
    ) -> Outcomes:
        """Expectations under the conditional margins in closed form, shape (C, R, 1, O)."""
        if isinstance(function, AffineFunction):
            expected = function.intercept + expect_conditional(self.model_, X, masks, function.slopes)
            return Outcomes(expected[:, :, None])
        assert isinstance(function, CurvedFunction)
        own = function.terms(X)
        values = np.empty((len(masks), len(X), 1, own.shape[2]))
        for total, mask in zip(values[:, :, 0], masks, strict=True):
            total[:] = function.intercept + add_terms(own, mask)
            for j, mean, sd in zip(*conditional_margins(self.model_, X, mask), strict=True):
                function.add_expected(j, mean, sd, total)
        return Outcomes(values)

    def along(self, chain: Chain) -> Gaussian:
        """Copy that draws along a causal chain: maps of the components are composed, so one draw does it all."""
        chained = copy(self)
        model = self.model_
        chained.model_ = ChainedNormal(model.mean, model.scale, model.correlation, chain)
        return chained

    def to_state(self) -> State:
        """Store mean, scale and correlation."""
        return stored_options(self).extended(store_normal(self.model_))

    @classmethod
    def from_state(cls, state: State) -> Gaussian:
        """Inverse of `to_state`."""
        approach = cls(**restored_options(state))
        approach.model_ = restore_normal(state.arrays)
        return approach


def store_normal(model: NormalModel) -> dict[str, npt.NDArray[Any]]:
    """Arrays of a normal distribution, by name."""
    return {f"normal/{field.name}": getattr(model, field.name) for field in fields(model)}


def restore_normal(arrays: Mapping[str, npt.NDArray[Any]]) -> NormalModel:
    """Inverse of `store_normal`."""
    return NormalModel(**{field.name: arrays[f"normal/{field.name}"] for field in fields(NormalModel)})


def fit_normal(X: Rows, approach: str, *, covariance: str = "sample") -> NormalModel:
    """Normal distribution of rows (N, M), shrunk where that is asked for or where its correlation matrix is singular."""
    check_choice("covariance", covariance, COVARIANCES)
    mean, scale, correlation = correlation_of(X)
    if covariance == "ledoit_wolf":
        correlation, _ = _ledoit_wolf(X, mean, scale, correlation)
    elif len(X) <= X.shape[1]:
        correlation, share = _ledoit_wolf(X, mean, scale, correlation)
        _announce(approach, f"{len(X)} training rows are too few for {X.shape[1]} features", share)
    correlation, share = floor_eigenvalues(correlation)
    if share > 0:
        _announce(approach, "some features are linear combinations of others", share)
    return NormalModel(mean, scale, correlation)


def given_normal(X: Rows, covariance: Floats) -> NormalModel:
    """Normal distribution with the mean of rows (N, M) and a given covariance (M, M)."""
    given = floats_or_nan(covariance)
    n_features = X.shape[1]
    if given.shape != (n_features, n_features) or not np.isfinite(given).all() or not _is_symmetric(given):
        raise OptionError(
            f"covariance must be a symmetric finite matrix of shape ({n_features}, {n_features}), got shape {given.shape}."
        )
    sizes = np.abs(np.diag(given)[np.diag(given) != 0])
    if not ((sizes >= SMALLEST_RANGE**2) & (sizes <= LARGEST**2)).all():
        raise OptionError(
            f"covariance must have variances of 0 or between {SMALLEST_RANGE**2:g} and {LARGEST**2:g}, got variances "
            f"from {sizes.min():.3g} to {sizes.max():.3g}. Rescale the features."
        )
    scale = np.sqrt(np.maximum(np.diag(given), 0.0))
    divisor = np.where(scale > 0, scale, 1.0)
    correlation = given / np.outer(divisor, divisor)
    np.fill_diagonal(correlation, 1.0)
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest < -1e-8 or (np.diag(given) < 0).any():
        raise OptionError(
            f"covariance must be positive semi-definite, got a smallest eigenvalue of {smallest:.3g} in its correlations."
        )
    return NormalModel(X.mean(axis=0), scale, floor_eigenvalues(correlation)[0])


def _is_symmetric(matrix: Floats) -> bool:
    """Tell whether a matrix (M, M) is symmetric up to rounding, in units of its diagonal."""
    sizes = np.sqrt(np.abs(np.diag(matrix)))
    return bool((np.abs(matrix - matrix.T) <= 1e-8 * (np.outer(sizes, sizes) + np.abs(matrix.T))).all())


def _given_mean(mean: Floats, n_features: int) -> Floats:
    given = floats_or_nan(mean)
    if given.shape != (n_features,) or not np.isfinite(given).all():
        raise OptionError(f"mean must be {n_features} finite numbers, one per feature, got {mean!r}.")
    return given


def _ledoit_wolf(X: Rows, mean: Floats, scale: Floats, correlation: Floats) -> tuple[Floats, float]:
    """Correlation matrix shrunk towards the identity, and the share of the identity in it."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    standard = (X - mean) / np.where(scale > 0, scale, 1.0)
    share = float(ledoit_wolf_shrinkage(standard, assume_centered=True))
    if len(X) <= X.shape[1]:
        share = max(share, 1 / len(X))  # the rule itself breaks down when nearly every row is an outlier
    return (1 - share) * correlation + share * np.eye(X.shape[1]), share


def _announce(approach: str, reason: str, share: float) -> None:
    warnings.warn(
        f"approach '{approach}': the covariance matrix is singular because {reason}; it was shrunk towards independence "
        f"by {share:.2g}. More rows, fewer features or groups would help.",
        CondShapWarning,
        stacklevel=2,
    )


APPROACH = Gaussian
