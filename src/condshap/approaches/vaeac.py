"""One variational autoencoder with arbitrary conditioning for all coalitions: schema -> vaeac/, draws -> encoded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import ALL_KINDS, DrawnRows
from condshap.coalitions import CoalitionPlan
from condshap.schema import FeatureSchema, Kind
from condshap.types import Masks, RowKeys, Rows

if TYPE_CHECKING:
    from condshap.vaeac import VAEACConfig

_PAPER_SAMPLES = 250


class VAEAC(BaseEstimator):  # type: ignore[misc]
    """An ensemble of small networks that learns all conditional distributions at once; features of any kind.

    Rows may have missing values, in training and when they are explained. Known features that are missing stay missing, so
    the model must accept them; unknown ones are always drawn.

    Parameters
    ----------
    config : choices about networks, training and sampling, see `condshap.vaeac.VAEACConfig`; by default from the data
    device : "cpu", "cuda" or "auto"

    Notes
    -----
    Section 3 of the paper; `VAEAC.paper` has its settings. Where not all subsets of features are asked for, the training
    masks follow the coalitions of the plan (VAEAC_C, Section 3.4), each as the complement of S.
    """

    name: ClassVar[str] = "vaeac"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    def __init__(self, config: VAEACConfig | None = None, device: str = "cpu") -> None:
        self.config = config
        self.device = device

    @classmethod
    def paper(cls, *, device: str = "cpu", **overrides: Any) -> VAEAC:
        """Return the paper's method: one network, plain draws, 250 samples; single settings may be changed."""
        from condshap.vaeac import VAEACConfig

        return cls(VAEACConfig.paper(**overrides), device)

    @property
    def default_samples(self) -> int | None:
        """As in the paper where draws are plain; by coalition size where they are quasi-Monte Carlo."""
        return _PAPER_SAMPLES if self.config is not None and self.config.draws == "plain" else None

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> VAEAC:
        """Train the networks on rows (N, M)."""
        from condshap import vaeac

        n_levels = [len(feature.levels or ()) for feature in schema.features]
        asks_for_all = len(plan.masks) == 2 ** len(schema)
        coalitions, probabilities = (None, None) if asks_for_all else plan.mask_distribution()
        networks = vaeac.Networks(self.config, device=self.device)
        self.networks_ = networks.fit(X, n_levels, coalitions=coalitions, probabilities=probabilities, seed=seed)
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown | x_known, shape (C, R, K, M); members of the ensemble share the samples out."""
        rows = self.networks_.sample(X, masks, n_samples, keys=keys, seed=seed)
        shares = self.networks_.weights(n_samples)
        weights = None if np.ptp(shares) == 0 else np.broadcast_to(shares, rows.shape[:3])
        is_plain = self.networks_.config.draws == "plain"
        return DrawnRows(rows, weights, error_factor=1.0 if is_plain else None)


APPROACH = VAEAC
