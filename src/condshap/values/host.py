"""Samples, model -> moments of v(S), with NumPy.

v(S) is the weighted mean of f over the samples of a coalition and a row (eq. 3 of the paper). Only means and variances
are kept; samples never are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from condshap.approaches.base import ConditionalSampler, ConditionalSamples, Donors, DrawnRows, Outcomes
from condshap.models.predictor import Predictor
from condshap.numerics.blocks import block_variances, variance_scale
from condshap.numerics.splicing import Spliced, splice_donors, splice_drawn
from condshap.precision.members import member_deviations
from condshap.runtime.threads import single_threaded_blas
from condshap.types import Floats, Masks, Outputs, RowKeys, Rows
from condshap.values.table import Moments

Batch: TypeAlias = tuple[ConditionalSamples | Outcomes, Rows, Masks]
"""Samples, or what an additive model makes of them, with the rows (R, M) and coalitions (C, M) that they were made for."""


def draw(sampler: ConditionalSampler, X: Rows, masks: Masks, n_samples: int, keys: RowKeys, seed: int) -> Batch:
    """Ask a sampler for a batch."""
    with single_threaded_blas():
        return sampler.sample(X, masks, n_samples, keys=keys, seed=seed), X, masks


def evaluate(batches: Sequence[Batch], predictor: Predictor, *, by_member: bool = False) -> list[Moments]:
    """Predict several batches of samples in one call of the model and reduce each to its moments."""
    if isinstance(batches[0][0], Outcomes):
        outcomes = (batch[0] for batch in batches if isinstance(batch[0], Outcomes))
        return [_reduce_outcomes(one, by_member=by_member) for one in outcomes]
    spliced = [splice(samples, X, masks) for samples, X, masks in batches if not isinstance(samples, Outcomes)]
    rows = spliced[0].rows if len(spliced) == 1 else np.concatenate([part.rows for part in spliced])
    outputs = predictor.predict_fast(rows)
    ends = np.cumsum([len(part.rows) for part in spliced])
    pieces = np.split(outputs, ends[:-1])
    return [
        _reduce(piece, part, batch[0], by_member=by_member)
        for piece, part, batch in zip(pieces, spliced, batches, strict=True)
    ]


def splice(samples: ConditionalSamples, X: Rows, masks: Masks) -> Spliced:
    """Rows for the model: drawn ones as they are, donors with the known columns put in, each different row once."""
    if isinstance(samples, DrawnRows):
        return splice_drawn(samples.rows, samples.may_repeat)
    return splice_donors(samples.indices, samples.table, samples.weights, X, masks, may_repeat=samples.may_repeat)


def _reduce_outcomes(outcomes: Outcomes, *, by_member: bool) -> Moments:
    """Moments of what no model was asked for."""
    f = outcomes.values
    flat = f.reshape(-1, f.shape[3])
    return replace(_reduce(flat, Spliced(flat, None, f.shape[:3]), outcomes, by_member=by_member), n_evaluations=0)


def _reduce(outputs: Outputs, spliced: Spliced, samples: ConditionalSamples | Outcomes, *, by_member: bool) -> Moments:
    """Weighted means over samples and their variances, and how far those of members differ."""
    f = (outputs if spliced.positions is None else outputs[spliced.positions]).reshape(*spliced.shape, -1)
    weights = None if samples.weights is None else _normalised(samples.weights)
    means = f.mean(axis=2) if weights is None else _in_order(weights * f)
    if isinstance(samples.error_factor, float) and samples.error_factor == 0.0:  # nothing is random
        return Moments(means, np.zeros_like(means), np.zeros(len(means), dtype=bool), len(outputs))
    is_measured = samples.error_factor is None
    if is_measured and not isinstance(samples, Donors):  # donors are in no order that means anything
        variances = block_variances(f, means, weights)
    else:
        concentration = np.array(1.0 / spliced.shape[2]) if weights is None else _in_order(weights**2)
        variances = _squared_deviations(f, means, weights) * variance_scale(concentration)
    if samples.error_factor is not None:
        factors = np.broadcast_to(samples.error_factor, means.shape[:2])[..., None]
        variances = np.where(factors == 0.0, 0.0, variances * factors)  # all donors were taken
    members = None if isinstance(samples, Donors) or not by_member else samples.members
    apart = None if members is None else member_deviations(f, weights, members)
    return Moments(means, variances, np.full(len(means), is_measured), len(outputs), apart)


def _squared_deviations(f: Floats, means: Floats, weights: Floats | None) -> Floats:
    """Weighted means (C, R, O) of squared deviations of f (C, R, K, O) from its means (C, R, O)."""
    squares = f - means[:, :, None, :]
    squares *= squares
    if weights is None:
        return np.asarray(squares.sum(axis=2) / f.shape[2])
    squares *= weights
    return _in_order(squares)


def _normalised(weights: Floats) -> Floats:
    """Weights (C, R, K) that sum to 1, as (C, R, K, 1)."""
    given = weights[..., None]
    return np.asarray(given / _in_order(given.copy())[:, :, None])


def _in_order(terms: Floats) -> Floats:
    """Sums (C, R, O) of terms (C, R, K, O) one after the other, so that padding of weight zero changes no bit.

    How far samples are padded depends on the other rows of the block, and NumPy's own sum halves the terms at hand. The
    terms are overwritten.
    """
    return np.cumsum(terms, axis=2, out=terms)[:, :, -1].copy()
