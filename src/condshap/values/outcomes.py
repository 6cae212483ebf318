"""Additive model, approach -> outcomes in place of samples: the model need not be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condshap.approaches.base import (
    Capabilities,
    ConditionalSamples,
    DrawnRows,
    Outcomes,
    capabilities_of,
    is_sampler,
)
from condshap.exceptions import ModelError
from condshap.numerics.additive import AdditiveFunction, add_terms
from condshap.types import Floats, Masks, RowKeys, Rows
from condshap.values.assignments import Part, Wrapped


def without_model(parts: Sequence[Part], function: AdditiveFunction | None) -> tuple[Part, ...]:
    """Parts whose samplers give outcomes, where the model is a function that is known; else the parts as they are."""
    if function is None:
        return tuple(parts)
    return tuple(
        Part(OutcomeSampler(part.approach, function), part.positions) if is_sampler(part.approach) else part
        for part in parts
    )


@dataclass(frozen=True, slots=True)
class OutcomeSampler(Wrapped):
    """A sampler with an additive model behind it: gives what it expects, where it can, else the values at samples."""

    function: AdditiveFunction

    @property
    def capabilities(self) -> Capabilities:
        """One sample suffices where nothing is random."""
        own = capabilities_of(self.approach)
        if own.expects_exactly:
            return Capabilities(default_samples=1, knows_error=True)
        return Capabilities(default_samples=own.default_samples, knows_error=own.knows_error)

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> Outcomes:
        """Return outcomes (C, R, K, O) for coalitions (C, M) and rows (R, M)."""
        if capabilities_of(self.approach).expects:
            outcomes: Outcomes = self.approach.expect(X, masks, n_samples, function=self.function, keys=keys, seed=seed)
        else:
            samples = self.approach.sample(X, masks, n_samples, keys=keys, seed=seed)
            outcomes = Outcomes(self._values(samples, X, masks), samples.weights, samples.error_factor)
        if not np.isfinite(outcomes.values.sum()) and not np.isfinite(outcomes.values).all():
            raise ModelError(
                f"this model needs complete rows, got missing or infinite values in samples of approach '{self.name}'. "
                "Impute them, or use approach='vaeac', which draws them."
            )
        return outcomes

    def _values(self, samples: ConditionalSamples, X: Rows, masks: Masks) -> Floats:
        """Values of the function at samples, (C, R, K, O)."""
        if isinstance(samples, DrawnRows):
            return self.function(samples.rows)
        given, borrowed = self.function.terms(X), self.function.terms(samples.table)
        values = [
            add_terms(given, mask)[:, None] + add_terms(borrowed, ~mask)[donors]
            for mask, donors in zip(masks, samples.indices, strict=True)
        ]
        return np.stack(values) + self.function.intercept
