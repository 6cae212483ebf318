"""Features with their own empirical margins, tied together by a Gaussian copula."""

from __future__ import annotations

from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, Capabilities, DrawnRows, Outcomes, State
from condshap.approaches.gaussian import COVARIANCES, fit_normal, restore_normal, store_normal
from condshap.coalitions import CoalitionPlan
from condshap.numerics.additive import AdditiveFunction
from condshap.numerics.chains import Chain
from condshap.numerics.gaussian import ChainedNormal, NormalModel, draw_conditional
from condshap.numerics.margins import EmpiricalMargin, KernelMargin
from condshap.options import check_choice
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import Streams
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import Floats, Masks, RowKeys, Rows

if TYPE_CHECKING:
    from condshap.numerics.device_draws import DeviceDraws

_MARGINS: dict[str, type[EmpiricalMargin] | type[KernelMargin]] = {"empirical": EmpiricalMargin, "kde": KernelMargin}


class Copula(BaseEstimator):  # type: ignore[misc]
    """Gaussian copula: normal scores of the training rows are multivariate normal, margins stay as observed.

    Parameters
    ----------
    margins : "empirical" or "kde"
        Empirical margins give tied values their average rank and a value outside the training range the score half a rank
        beyond the last one; samples never leave the training range. Kernel density margins are smooth and reach a little
        beyond it.
    covariance : "sample" or "ledoit_wolf", of the normal scores

    Notes
    -----
    Appendix A of the paper; Aas, Jullum and Løland (2021). Scores use rank / (N + 1); samples go back through the
    linearly interpolated empirical quantiles.
    """

    name: ClassVar[str] = "copula"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        draws_on_device=True, expects=True, is_storable=True, checks_options=True,
        follows_chains=True,
    )  # fmt: skip

    def __init__(self, margins: str = "empirical", covariance: str = "sample") -> None:
        self.margins = margins
        self.covariance = covariance

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse unknown margins and covariances."""
        check_choice("margins", self.margins, tuple(_MARGINS))
        check_choice("covariance", self.covariance, COVARIANCES)

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Copula:
        """Learn every column's margin and the correlation of the normal scores from training rows (N, M)."""
        self.check_options(X, schema, plan=plan)
        self.margins_ = [_MARGINS[self.margins].learn(column) for column in X.T]
        correlation = fit_normal(self._scores(X), self.name, covariance=self.covariance).correlation
        varies = (X.min(axis=0) < X.max(axis=0)).astype(np.float64)
        self.model_ = NormalModel(np.zeros(X.shape[1]), varies, correlation)
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M)."""
        return DrawnRows(self._draw(X, masks, n_samples, keys, seed), error_factor=None)

    def _draw(
        self, X: Rows, masks: Masks, n_samples: int, keys: RowKeys, seed: int, *, margins_only: bool = False
    ) -> Floats:
        scores, streams = self._scores(X), Streams(keys, seed, self.name)
        rows = draw_conditional(self.model_, scores, masks, n_samples, streams, margins_only=margins_only)
        for j, margin in enumerate(self.margins_):
            known = masks[:, j]
            rows[known, :, :, j] = X[:, j, None]
            rows[~known, :, :, j] = margin.from_scores(rows[~known, :, :, j])
        return rows

    def expect(
        self, X: Rows, masks: Masks, n_samples: int, *, function: AdditiveFunction, keys: RowKeys, seed: int
    ) -> Outcomes:
        """Values at draws of the conditional margins, shape (C, R, K, O)."""
        rows = self._draw(X, masks, n_samples, keys, seed, margins_only=True)
        return Outcomes(function(rows), error_factor=None)

    def sample_on(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int, device: str) -> DeviceDraws:
        """Draw the same on a device."""
        import torch

        from condshap.numerics.device_draws import DeviceDraws, draw_normal, from_scores

        scores, streams = self._scores(X), Streams(keys, seed, self.name)
        rows = draw_normal(self.model_, scores, masks, n_samples, streams, device=device)
        given = torch.as_tensor(X, device=device)
        for j, margin in enumerate(self.margins_):
            known = torch.as_tensor(masks[:, j], device=device)[:, None, None]
            rows[..., j] = torch.where(known, given[None, :, None, j], from_scores(margin, rows[..., j]))
        return DeviceDraws(rows)

    def along(self, chain: Chain) -> Copula:
        """Copy that draws along a causal chain: maps of the components are composed, so one draw does it all."""
        chained = copy(self)
        model = self.model_
        chained.model_ = ChainedNormal(model.mean, model.scale, model.correlation, chain)
        return chained

    def to_state(self) -> State:
        """Store the margin of every column and the correlation of the normal scores."""
        arrays: dict[str, npt.NDArray[Any]] = store_normal(self.model_)
        for j, margin in enumerate(self.margins_):
            arrays |= {f"margins/{j}/{field.name}": getattr(margin, field.name) for field in fields(margin)}
        return stored_options(self).extended(arrays)

    @classmethod
    def from_state(cls, state: State) -> Copula:
        """Inverse of `to_state`."""
        approach = cls(**restored_options(state))
        approach.model_ = restore_normal(state.arrays)
        kind = _MARGINS[approach.margins]
        approach.margins_ = [
            kind(**{field.name: state.arrays[f"margins/{j}/{field.name}"] for field in fields(kind)})
            for j in range(len(approach.model_.mean))
        ]
        return approach

    def _scores(self, X: Rows) -> Rows:
        return np.column_stack([margin.to_scores(X[:, j]) for j, margin in enumerate(self.margins_)])


APPROACH = Copula
