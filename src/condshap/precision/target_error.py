"""Plan, target -> samples per coalition; rows whose errors are still too large -> further batches of samples.

Shapley values are phi = A v, so their Monte Carlo variance is sum_S A_jS^2 Var v(S). At fit, training rows tell the
variances of v(S), and K goes to coalitions in proportion to influence times standard deviation (Neyman allocation). A row
that is not precise enough by then gets more batches of the same K, each randomised anew, where they help it most. What a
row gets depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condshap.exceptions import OptionError
from condshap.numerics.sobol import nearest_power_of_two
from condshap.runtime.announcing import announce
from condshap.runtime.progress import progress_line
from condshap.seeding import derive_seed, generator, row_keys
from condshap.types import Floats, Indices, Masks, Rows
from condshap.values.assignments import Part
from condshap.values.engine import Request, ValueEngine
from condshap.values.table import Moments

_LEAST, _MOST = 16, 4096  # samples of a batch: larger nets would need too much room
_CAP = 2**16  # samples of a pair in all
_PILOT_ROWS = 8
_ROUNDS, _HALVINGS = 8, 40


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """The target, and what it depends on.

    Attributes
    ----------
    target : largest Monte Carlo standard error of a Shapley value, in units of the prediction
    influence : (P, C) squared influence A_jS^2 of v(S) on the Shapley values
    n_samples : (C,) samples of a batch
    factors : (C, O) variance of a batch's mean over that of independent blocks
    """

    target: float
    influence: Floats
    n_samples: Indices
    factors: Floats


def choose_samples(
    parts: Sequence[Part],
    engine: ValueEngine,
    X: Rows,
    masks: Masks,
    aim: Aim,
    *,
    seed: int,
) -> Indices:
    """Samples per coalition, (C,), with which a typical training row of `X` (N, M) reaches the target; powers of two.

    Where nothing is random, and where an approach does not sample, K stays what it is.
    """
    rng = generator(seed, "target pilot")
    rows = X[rng.choice(len(X), size=min(len(X), _PILOT_ROWS), replace=False)]
    moments = engine.estimate(parts, rows, masks, aim.n_samples, seed=seed)
    of_one = moments.honest(aim.factors).mean(axis=1) * aim.n_samples[:, None]  # (C, O) variance of a single sample
    if np.isnan(of_one).any():
        raise OptionError(
            f"target_error={aim.target:g} needs at least 2 samples of every coalition to begin with, because a single "
            "sample says nothing about its own error, but an approach draws 1. Raise its default_samples."
        )
    importance = np.sqrt((aim.influence.sum(axis=0)[:, None] * of_one).max(axis=1))  # (C,)
    is_random = importance > 0
    share = np.where(is_random, importance, 1.0)
    factor = (aim.influence @ (of_one / share[:, None])).max() / aim.target**2
    wanted = nearest_power_of_two(np.clip(factor * share, _LEAST, _MOST))
    most = np.full(len(masks), _MOST)
    for part in parts:
        if part.can.samples and part.can.default_samples is not None:
            most[part.positions] = min(_MOST, len(X))  # donors are drawn without replacement
    return np.where(is_random, np.minimum(wanted, most), aim.n_samples).astype(np.intp)


def reach_target(
    parts: Sequence[Part],
    engine: ValueEngine,
    X: Rows,
    masks: Masks,
    moments: Moments,
    aim: Aim,
    *,
    seed: int,
) -> Moments:
    """Add batches to rows of `X` (R, M) until all their Monte Carlo errors are at most the target; changes `moments`.

    A warning tells of rows that would need a coalition with more than 2^16 samples.
    """
    counts = np.ones((len(masks), len(X)), dtype=np.intp)
    for _ in range(_ROUNDS):
        wanted = _batches_wanted(moments.honest(aim.factors) * counts[:, :, None], counts, aim)
        if (wanted == counts).all():
            break
        n_rows, work = int((wanted > counts).any(axis=0).sum()), aim.n_samples @ (wanted - counts).sum(axis=1)
        with progress_line("explaining, more samples", show=engine.settings.progress, total=n_rows) as line:
            for b in range(counts.min(), wanted.max()):
                needs = (counts <= b) & (b < wanted)
                more = list(_pairs_of_batch(parts, needs, aim.n_samples, engine.rows_at_once(X.shape[1])))
                moments = _add_batch(b, engine, X, masks, moments, more, seed)
                line.update(n_rows * (aim.n_samples @ needs.sum(axis=1)) / work)
        counts = wanted
    _warn_if_missed(np.sqrt(_worst(moments.honest(aim.factors), aim)), aim.target)
    return moments


def _worst(variances: Floats, aim: Aim) -> Floats:
    """Largest variance over Shapley values and outputs of every row, (R,), from variances of v(S) (C, R, O)."""
    return np.asarray((aim.influence @ _row_by_row(variances)).max(axis=(1, 2)))


def _row_by_row(variances: Floats) -> Floats:
    """Variances (C, R, O) as (R, C, O): a product per row, so that other rows do not change its last bits."""
    return np.ascontiguousarray(variances.transpose(1, 0, 2))


def _batches_wanted(of_batch: Floats, counts: Indices, aim: Aim) -> Indices:
    """Batches per pair (C, R) that bring every row to the target, at least those there are (C, R).

    Row by row, the smallest multiple of sqrt(influence * variance of a batch / cost of a batch) that suffices, or the
    largest one, at which the first coalition has all the samples that a pair may have.
    """
    wanted, cost = counts.copy(), np.maximum(aim.n_samples, 1)
    for r, own in enumerate(_row_by_row(of_batch)):
        have = counts[:, r]
        if _is_reached(own, have, aim):
            continue
        importance = np.sqrt((aim.influence.sum(axis=0)[:, None] * own).max(axis=1) / cost)
        low, high = 0.0, float((_CAP / (importance * cost)[importance > 0]).min())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            enough = _is_reached(own, np.maximum(have, np.ceil(middle * importance)), aim)
            low, high = (low, middle) if enough else (middle, high)
        wanted[:, r] = np.maximum(have, np.ceil(high * importance))
    return wanted


def _is_reached(of_batch: Floats, n_batches: Floats | Indices, aim: Aim) -> bool:
    """Tell whether a row reaches the target with so many batches (C,) of these variances (C, O)."""
    return bool((aim.influence @ (of_batch / n_batches[:, None])).max() <= aim.target**2)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """A coalition with the rows (r,) that need a batch of it."""

    approach: Any
    coalition: int
    rows: Indices
    n_samples: int


def _add_batch(
    b: int, engine: ValueEngine, X: Rows, masks: Masks, moments: Moments, groups: list[list[_Pairs]], seed: int
) -> Moments:
    """Average batch b of some pairs in: it comes from a stream of its own."""
    keys, stream = row_keys(X, engine.predictor.units), derive_seed(seed, f"batch {b}")
    means, variances, evaluated = moments.means, moments.variances, moments.n_evaluations
    requests = [
        [Request(p.approach, X[p.rows], keys[p.rows], masks[[p.coalition]], p.n_samples, stream) for p in group]
        for group in groups
    ]
    for group, results in zip(groups, engine.run(requests), strict=True):
        for pairs, found in zip(group, results, strict=True):
            c, rows = pairs.coalition, pairs.rows
            means[c, rows] = (b * means[c, rows] + found.means[0]) / (b + 1)
            variances[c, rows] = (b**2 * variances[c, rows] + found.variances[0]) / (b + 1) ** 2
            evaluated += found.n_evaluations
    return replace(moments, n_evaluations=evaluated)


def _pairs_of_batch(parts: Sequence[Part], needs: Masks, n_samples: Indices, limit: int) -> Iterator[list[_Pairs]]:
    """Coalitions with the rows (C, R) that need a batch, part by part, as many as make up to `limit` samples."""
    for part in parts:
        group: list[_Pairs] = []
        size = 0
        for c in part.positions:
            k = int(n_samples[c])
            rows, at_once = np.flatnonzero(needs[c]), max(1, limit // max(1, k))
            for start in range(0, len(rows), at_once):
                some = rows[start : start + at_once]
                group.append(_Pairs(part.approach, int(c), some, k))
                size += len(some) * k
                if size >= limit:
                    yield group
                    group, size = [], 0
        if group:
            yield group


def _warn_if_missed(errors: Floats, target: float) -> None:
    missed = errors > target
    if missed.any():
        announce(
            f"target_error={target:g} was not reached for {int(missed.sum())} of {len(errors)} rows, even with {_CAP} "
            f"samples for the coalition that needs most; the largest Monte Carlo standard error is {errors.max():.3g}. "
            "Choose a larger target_error.",
        )
