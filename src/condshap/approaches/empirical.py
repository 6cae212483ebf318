"""Training rows as donors, weighted by how close their known features are."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import CONTINUOUS_ONLY, ENOUGH_ROWS, Capabilities, Donors, State
from condshap.approaches.gaussian import fit_normal, given_normal, restore_normal, store_normal
from condshap.coalitions import CoalitionPlan
from condshap.exceptions import OptionError
from condshap.numerics.aicc import best_bandwidths
from condshap.numerics.kernels import nearest_donors, squared_distances, whitening
from condshap.numerics.subsets import random_subsets
from condshap.options import as_number, check_choice
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import derive_seed, hash_words, row_keys, stream_words
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import LARGEST, Floats, Indices, Masks, Outputs, RowKeys, Rows

_BANDWIDTHS = ("fixed", "aicc", "aicc_by_size")
_NUMBERS = 2**19  # held at a time while donors are chosen: 4 MiB, which stays in the cache


class Empirical(BaseEstimator):  # type: ignore[misc]
    """Kernel weights exp(-D^2 / (2 sigma^2)) in a scaled Mahalanobis distance of the known features.

    Nothing is random: it uses the closest donors that together hold the share `eta` of the weight, at most ``n_samples``. Of
    more than 50,000 training rows, a random part of that size are donors.

    Parameters
    ----------
    sigma : bandwidth, for ``bandwidth="fixed"``
    eta : share of the weight to keep, in (0, 1]
    bandwidth : "fixed", or chosen by the corrected Akaike criterion: "aicc" for every coalition and explained row,
        "aicc_by_size" for every coalition size and explained row, over all of the plan's coalitions of that size.
        Both call the model N times per coalition and row.
    covariance : (M, M) for the distances, instead of that of the training rows

    Notes
    -----
    Appendix A of the paper. D^2 is the Mahalanobis distance divided by ``|S|^2``, as the reference implementation has it;
    Aas, Jullum and Løland (2021) print ``|S|``.
    """

    name: ClassVar[str] = "empirical"
    supports: ClassVar[frozenset[Kind]] = CONTINUOUS_ONLY
    handles_missing: ClassVar[bool] = False

    def __init__(
        self, sigma: float = 0.1, eta: float = 0.95, bandwidth: str = "fixed", covariance: Floats | None = None
    ) -> None:
        self.sigma = sigma
        self.eta = eta
        self.bandwidth = bandwidth
        self.covariance = covariance

    @property
    def needs_model(self) -> bool:
        """The criterion looks at predictions."""
        return self.bandwidth != "fixed"

    @property
    def capabilities(self) -> Capabilities:
        """Bandwidths by a criterion are found for every row that is explained, by calls of the model."""
        return Capabilities(
            default_samples=250,
            knows_error=True,
            is_storable=True,
            checks_options=True,
            compares_all_rows=True,
            asks_model_to_sample=self.needs_model,
            draws_each=True,
            most_rows=ENOUGH_ROWS,
        )

    def check_options(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan) -> None:
        """Refuse a bandwidth, a share or a covariance that is none of rows (N, M)."""
        check_choice("bandwidth", self.bandwidth, _BANDWIDTHS)
        if not 1 / LARGEST <= as_number(self.sigma) <= LARGEST:
            raise OptionError(f"sigma must be positive, from {1 / LARGEST:g} to {LARGEST:g}, got {self.sigma!r}.")
        if not 0 < as_number(self.eta) <= 1:
            raise OptionError(f"eta must be above 0 and at most 1, got {self.eta!r}.")
        if self.covariance is not None:
            given_normal(X, self.covariance)

    def fit(
        self,
        X: Rows,
        schema: FeatureSchema,
        *,
        plan: CoalitionPlan,
        seed: int,
        predict: Callable[[Rows], Outputs] | None = None,
    ) -> Empirical:
        """Keep the training rows (N, M) and their covariance."""
        self.check_options(X, schema, plan=plan)
        known = fit_normal(X, self.name) if self.covariance is None else given_normal(X, self.covariance)
        self.model_ = known
        self.rows_ = X
        self.masks_ = plan.masks[plan.interior]
        self.predict_ = predict
        self.pooled_: dict[tuple[int, int], float] = {}
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> Donors:
        """Weigh the training rows for every coalition and row."""
        parts = [
            self._donors(X, mask, n_samples) if mask.any() else [self._anyone(mask, n_samples, keys, seed)]
            for mask in masks
        ]
        width = max(chosen.shape[1] for part in parts for chosen, _ in part)
        indices = np.zeros((len(masks), len(X), width), dtype=np.intp)
        weights = np.zeros(indices.shape)
        for c, part in enumerate(parts):
            start = 0
            for chosen, weight in part:
                some = (c, slice(start, start + len(chosen)), slice(chosen.shape[1]))
                indices[some], weights[some] = chosen, weight
                start += len(chosen)
        return Donors(indices, self.rows_, weights, error_factor=0.0, may_repeat=False)

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int) -> Rows:
        """Choose one donor by weight for each of the rows (R, K, M)."""
        from condshap.numerics.nearest import pick_weighted  # numba takes a while to load

        flat, names = X.reshape(-1, X.shape[2]), hash_words(keys[:, None], np.arange(X.shape[1])[None]).ravel()
        words = stream_words(seed, f"{self.name} each", mask[None], names)[0]
        shares = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        whiten = whitening(mask, self.model_)
        points, queries = (rows[:, mask] @ whiten.T for rows in (self.rows_, flat))
        rate, most = max(1, int(mask.sum())) ** -2 / (2 * float(self.sigma) ** 2), self.capabilities.default_samples
        assert most is not None
        chosen = pick_weighted(np.ascontiguousarray(points.T), queries, rate, float(self.eta), most, shares)
        return np.where(mask, X, self.rows_[chosen].reshape(X.shape))

    def to_state(self) -> State:
        """Store the training rows, their covariance and the coalitions; bandwidths found so far are found again."""
        arrays = {"rows": self.rows_, "masks": self.masks_, **store_normal(self.model_)}
        return stored_options(self).extended(arrays)

    @classmethod
    def from_state(cls, state: State, *, predict: Callable[[Rows], Outputs] | None = None) -> Empirical:
        """Inverse of `to_state`."""
        approach = cls(**restored_options(state))
        approach.model_ = restore_normal(state.arrays)
        approach.rows_, approach.masks_ = state.arrays["rows"], state.arrays["masks"]
        approach.predict_ = predict if approach.needs_model else None
        approach.pooled_ = {}
        return approach

    def _donors(self, X: Rows, mask: Masks, n_samples: int) -> list[tuple[Indices, Floats]]:
        """Donors and weights of a coalition (M,), in chunks of rows: distances to all training rows are many numbers."""
        sigma = self._sigma(X, mask)
        at_once = max(1, _NUMBERS // (len(self.rows_) * (int(mask.sum()) + 4)))
        chunks = (slice(start, start + at_once) for start in range(0, len(X), at_once))
        return [
            nearest_donors(self._distances(X[some], mask), sigma[some], float(self.eta), n_samples) for some in chunks
        ]

    def _anyone(self, mask: Masks, n_samples: int, keys: RowKeys, seed: int) -> tuple[Indices, Floats]:
        """Donors and weights where nothing is known, as in the first step of a causal chain: all are equally near."""
        words = stream_words(seed, f"{self.name} anyone", mask[None], keys)[0]
        n_train = len(self.rows_)
        chosen = random_subsets(words, min(n_samples, n_train), n_train, derive_seed(seed, self.name))
        return chosen, np.ones(chosen.shape)

    def _distances(self, X: Rows, mask: Masks) -> Floats:
        """Scaled squared distances (R, N) between rows and training rows in the known features."""
        return np.asarray(squared_distances(X, self.rows_, mask, self.model_) / max(1, mask.sum()) ** 2)

    def _sigma(self, X: Rows, mask: Masks) -> Floats:
        """Bandwidth (R,) of every row for a coalition."""
        if self.bandwidth == "fixed":
            return np.full(len(X), float(self.sigma))
        if self.bandwidth == "aicc":
            return self._search(X, mask[None])
        size = int(mask.sum())
        keys = row_keys(X).tolist()
        new = [i for i, key in enumerate(keys) if (size, key) not in self.pooled_]
        if new:
            same_size = self.masks_[self.masks_.sum(axis=1) == size]
            found = self._search(X[new], same_size if len(same_size) else mask[None])
            self.pooled_.update({(size, keys[i]): float(h) for i, h in zip(new, found, strict=True)})
        return np.array([self.pooled_[size, key] for key in keys])

    def _search(self, X: Rows, masks: Masks) -> Floats:
        """Bandwidths (R,) that minimise the criterion summed over coalitions (c, M)."""
        assert self.predict_ is not None
        train, predict = self.rows_, self.predict_
        hats = [squared_distances(train, train, mask, self.model_) / max(1, mask.sum()) ** 2 for mask in masks]
        responses = []
        for mask in masks:
            spliced = np.where(mask, X[:, None, :], train[None, :, :])  # (R, N, M)
            outputs = predict(spliced.reshape(-1, X.shape[1]))
            responses.append(outputs.reshape(len(X), len(train), -1))
        return best_bandwidths(hats, responses)


APPROACH = Empirical
