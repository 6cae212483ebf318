"""Linear model -> the same function as plain numbers; samples -> what it predicts for them, without a call of the model.

For f(x) = c + sum_j g_j(x_j) the contribution function is v(S) = c + sum_S g_j(x_j) + sum_others E[g_j(X_j) | x_S]. Where
g_j is linear, or a number per level, means and probabilities are all that is needed of the conditional distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from condshap.approaches.base import ConditionalSamples, DrawnRows, Outcomes, is_sampler
from condshap.combination import Part
from condshap.exceptions import ModelError, OptionError
from condshap.linear_models import is_certainly_linear
from condshap.numerics.affine import AffineFunction
from condshap.predict import Predictor
from condshap.schema import FeatureSchema
from condshap.seeding import generator
from condshap.types import Floats, Indices, Masks, Outputs, RowKeys, Rows

_TRIALS = 64
_TOLERANCE = 1e-7  # of the spread of the predictions
_ROUNDING = 64  # units in the last place of the largest prediction


def read_function(
    predictor: Predictor, schema: FeatureSchema, rows: Rows, additive: bool | str
) -> AffineFunction | None:
    """Read a linear model by its own predictions, and prove the reading on trial rows.

    Parameters
    ----------
    rows : (n, M) a few training rows without gaps, between whose values slopes are measured
    additive : "auto" reads models that are certainly linear, True also what the user vouches for, False none

    Returns
    -------
    None where there is nothing to read; what was vouched for and does not hold is an error
    """
    vouched = additive is True
    if not vouched and (additive is False or not is_certainly_linear(predictor, schema)):
        return None
    try:
        function = _measure(predictor, schema, rows)
        trial = _splices(rows, schema)
        apart = _distance(function(trial), predictor(trial.copy()))
        unread = apart > 1 or _takes_missing_levels(predictor, schema, rows)
    except ModelError:
        if vouched:
            raise
        return None
    if apart > 1 and vouched:
        raise OptionError(
            "additive=True needs a model that is linear in every continuous feature, with a number of its own for every "
            f"level, but on {_TRIALS} rows put together from training rows its predictions are not such a sum: the largest "
            f"difference is {apart:.3g} times what rounding explains. Leave additive out."
        )
    return None if unread else function


def _measure(predictor: Predictor, schema: FeatureSchema, rows: Rows) -> AffineFunction:
    """Slopes from two values of every number, and the terms of all levels, all else as in the first row."""
    base, low, high = rows[0], rows.min(axis=0), rows.max(axis=0)
    high = np.where(high > low, high, low + np.maximum(1.0, np.abs(low)))
    tried: list[Floats] = [
        np.array([low[j], high[j]]) if feature.levels is None else np.arange(len(feature.levels), dtype=np.float64)
        for j, feature in enumerate(schema.features)
    ]
    feature = np.repeat(np.arange(len(tried)), [len(values) for values in tried])
    trial = np.repeat(base[None], len(feature) + 1, axis=0)
    trial[np.arange(len(feature)), feature] = np.concatenate(tried)
    outputs = predictor(trial.copy())
    at_base, own = outputs[-1], [outputs[:-1][feature == j] for j in range(len(tried))]
    is_number = np.array([one.levels is None for one in schema.features])
    slopes = np.stack(
        [(f[1] - f[0]) / (high[j] - low[j]) if is_number[j] else np.zeros_like(at_base) for j, f in enumerate(own)]
    )
    levels = tuple(None if is_number[j] else f - at_base for j, f in enumerate(own))
    return AffineFunction(at_base - base[is_number] @ slopes[is_number], slopes, levels)


def _splices(rows: Rows, schema: FeatureSchema) -> Rows:
    """Trial rows: values from random rows, those of numbers also between them and beyond."""
    rng = generator(0, "additive trial")
    trial = np.take_along_axis(rows, rng.integers(0, len(rows), size=(_TRIALS, rows.shape[1])), axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    anywhere = low + (high - low) * rng.uniform(-1, 2, size=trial.shape)
    is_number = np.array([feature.levels is None for feature in schema.features])
    return np.where(is_number & (rng.random(trial.shape) < 0.5), anywhere, trial)


def _distance(found: Outputs, expected: Outputs) -> float:
    """Largest difference in units of what rounding explains, which is more for a model that computes in float32."""
    with np.errstate(over="ignore"):
        is_single = bool((expected.astype(np.float32) == expected).all())
    unit = np.finfo(np.float32 if is_single else np.float64).eps
    allowed = _TOLERANCE * np.ptp(expected, axis=0) + _ROUNDING * unit * np.abs(expected).max(axis=0)
    return float((np.abs(found - expected) / np.maximum(allowed, np.finfo(np.float64).tiny)).max())


def _takes_missing_levels(predictor: Predictor, schema: FeatureSchema, rows: Rows) -> bool:
    """Encoders may treat a gap as one more level, which no table of levels has; linear models refuse all other gaps."""
    for j, feature in enumerate(schema.features):
        if feature.levels is not None:
            row = rows[:1].copy()
            row[0, j] = np.nan
            try:
                predictor(row)
            except ModelError:
                continue
            return True
    return False


def without_model(parts: Sequence[Part], function: AffineFunction | None) -> tuple[Part, ...]:
    """Parts whose samplers give outcomes, where the model is a function that is known; else the parts as they are."""
    if function is None:
        return tuple(parts)
    return tuple(
        Part(OutcomeSampler(part.approach, function), part.positions) if is_sampler(part.approach) else part
        for part in parts
    )


@dataclass(frozen=True, slots=True)
class OutcomeSampler:
    """A sampler with a linear model behind it: gives what it expects, where it can, else the model's values at samples."""

    approach: Any
    function: AffineFunction

    @property
    def name(self) -> str:
        """Of the approach."""
        return str(self.approach.name)

    @property
    def default_samples(self) -> int | None:
        """Samples that suffice: one where nothing is random."""
        if getattr(self.approach, "expects_exactly", False):
            return 1
        return getattr(self.approach, "default_samples", None)

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> Outcomes:
        """Return outcomes (C, R, K, O) for coalitions (C, M) and rows (R, M)."""
        if hasattr(self.approach, "expect"):
            outcomes: Outcomes = self.approach.expect(X, masks, n_samples, function=self.function, keys=keys, seed=seed)
        else:
            samples = self.approach.sample(X, masks, n_samples, keys=keys, seed=seed)
            outcomes = Outcomes(self._values(samples, X, masks), samples.weights, samples.error_factor)
        if not np.isfinite(outcomes.values.sum()) and not np.isfinite(outcomes.values).all():
            raise ModelError(
                f"a linear model needs complete rows, got missing or infinite values in samples of approach '{self.name}'. "
                "Impute them, or use approach='vaeac', which draws them."
            )
        return outcomes

    def _values(self, samples: ConditionalSamples, X: Rows, masks: Masks) -> Floats:
        """Values of the function at samples, (C, R, K, O)."""
        if isinstance(samples, DrawnRows):
            return self.function(samples.rows)
        given, borrowed = self.function.terms(X), self.function.terms(samples.table)
        values = [
            _sum(given, np.flatnonzero(mask))[:, None] + _sum(borrowed, np.flatnonzero(~mask))[donors]
            for mask, donors in zip(masks, samples.indices, strict=True)
        ]
        return np.stack(values) + self.function.intercept


def _sum(terms: Floats, features: Indices) -> Floats:
    """Terms (n, M, O) of some features, added in their order: (n, O)."""
    total = np.zeros((len(terms), terms.shape[2]))
    for j in features:
        total += terms[:, j]
    return total
