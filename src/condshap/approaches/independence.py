"""Unknown features drawn from the training rows, as if they did not depend on the known ones."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from condshap.approaches.base import ALL_KINDS, Capabilities, Donors, Outcomes, State
from condshap.coalitions import CoalitionPlan
from condshap.numerics.additive import AdditiveFunction, sum_terms
from condshap.numerics.subsets import random_subsets
from condshap.schema import FeatureSchema, Kind
from condshap.seeding import derive_seed, hash_words, stream_words
from condshap.storage.plain_values import restored_options, stored_options
from condshap.types import Masks, RowKeys, Rows


class Independence(BaseEstimator):  # type: ignore[misc]
    """Marginal distribution of the unknown features: ``n_samples`` training rows, or all of them.

    Draws are without replacement, so with as many samples as training rows nothing is random. Missing values of donors
    are used as they are, so the model must accept them.

    Notes
    -----
    Appendix A of the paper. This is what most software computes; with dependent features it answers a different question.
    """

    name: ClassVar[str] = "independence"
    supports: ClassVar[frozenset[Kind]] = ALL_KINDS
    handles_missing: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False
    capabilities: ClassVar[Capabilities] = Capabilities(
        default_samples=128, knows_error=True, expects=True, expects_exactly=True, is_storable=True, ignores_dependence=True,
        draws_each=True,
    )  # fmt: skip

    def fit(self, X: Rows, schema: FeatureSchema, *, plan: CoalitionPlan, seed: int) -> Independence:
        """Keep the training rows (N, M)."""
        self.rows_ = X
        return self

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> Donors:
        """Choose min(n_samples, N) donors for every coalition and row."""
        n_train = len(self.rows_)
        shape = (len(masks), len(X))
        if n_samples >= n_train:
            everyone = np.broadcast_to(np.arange(n_train), (*shape, n_train))
            return Donors(everyone, self.rows_, error_factor=0.0, may_repeat=False)
        words = stream_words(seed, self.name, masks, keys)
        indices = random_subsets(words, n_samples, n_train, derive_seed(seed, self.name))
        return Donors(indices, self.rows_, error_factor=1 - n_samples / n_train, may_repeat=False)

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int) -> Rows:
        """Choose one donor for each of the rows (R, K, M), whatever is known of it."""
        names = hash_words(keys[:, None], np.arange(X.shape[1])[None])
        words = stream_words(seed, f"{self.name} each", mask[None], names.ravel())[0]
        chosen = (words % np.uint64(len(self.rows_))).astype(np.intp).reshape(names.shape)
        drawn = self.rows_[chosen]
        drawn[..., mask] = X[..., mask]
        return np.asarray(drawn)

    def expect(
        self,
        X: Rows,
        masks: Masks,
        n_samples: int,
        *,
        function: AdditiveFunction,
        keys: RowKeys,
        seed: int,
    ) -> Outcomes:
        """Means over all training rows, shape (C, R, 1, O)."""
        average = function.terms(self.rows_).mean(axis=0)
        expected = function.intercept + sum_terms(function.terms(X), masks, average)
        return Outcomes(expected[:, :, None])

    def to_state(self) -> State:
        """Store the training rows."""
        return stored_options(self).extended({"rows": self.rows_})

    @classmethod
    def from_state(cls, state: State) -> Independence:
        """Inverse of `to_state`."""
        approach = cls(**restored_options(state))
        approach.rows_ = state.arrays["rows"]
        return approach


APPROACH = Independence
