"""Samples, model -> value table: v(S) with standard errors, in blocks of bounded memory.

v(S) is the weighted mean of f over the samples of a coalition and a row (eq. 3 of the paper). Only means and variances
are kept; samples never are. Blocks, jobs and bars decide when something is computed, never what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from condshap.approaches.base import ConditionalSampler, ConditionalSamples, Donors, DrawnRows, Outcomes, is_sampler
from condshap.models.predictor import Predictor
from condshap.numerics.blocks import block_variances, variance_scale
from condshap.numerics.splicing import Spliced, splice_donors, splice_drawn
from condshap.precision.members import MemberSpread, member_deviations
from condshap.runtime.progress import make_bar
from condshap.runtime.threads import single_threaded_blas
from condshap.seeding import row_keys
from condshap.types import Floats, Indices, Masks, Outputs, RowKeys, Rows, Values
from condshap.values.assignments import Part

if TYPE_CHECKING:
    from condshap.models.on_device import DeviceModel
    from condshap.numerics.device_draws import DeviceDraws

_BLOCK_ROWS = 2**18
_MANY = 512  # samples of a pair from which on blocks are twice as large: they would have few pairs else
_COPIES = 5  # a block's rows exist about this often: samples, normals or donors, the model's table and its own copies


@dataclass(frozen=True, slots=True, eq=False)
class ValueTable:
    """The contribution function for C coalitions and the explained rows.

    Attributes
    ----------
    coalitions : (C, P) bool, True = in S; empty first, grand last
    values : (C, R), or (C, R, O) when the model has several outputs
    std_errors : Monte Carlo standard errors of `values`, same shape; NaN where a single sample cannot tell
    n_evaluations : number of rows that the model was asked to predict
    """

    coalitions: Masks
    values: Floats
    std_errors: Floats
    n_evaluations: int


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compute: memory in bytes, joblib workers, whether to show a bar; none has a say in the numbers.

    `device` is a torch device on which samples are drawn, evaluated and averaged where approach and model can, None for
    NumPy alone. Its numbers are others by rounding, as those of another machine.
    """

    memory_budget: int = 2**30
    n_jobs: int = 1
    progress: bool | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Moments:
    """Means (C, R, O) over samples and their variances (C, R, O).

    Where `is_nominal` (C,) is True, the variances are those of independent blocks of samples, see
    `condshap.numerics.blocks`: a measured factor has yet to turn them into honest ones.
    """

    means: Values
    variances: Values
    is_nominal: Masks
    n_evaluations: int
    members: Values | None = None
    """How far means of the members of an ensemble are from that of all, (E, C, R, O), where that was asked for."""


@dataclass(frozen=True, slots=True)
class _Block:
    part: Part
    coalitions: Indices
    rows: slice
    n_samples: int


def estimate_values(
    parts: Sequence[Part],
    predictor: Predictor,
    X: Rows,
    masks: Masks,
    n_samples: Indices,
    *,
    seed: int,
    settings: Settings,
    spread: MemberSpread | None = None,
) -> Moments:
    """Estimate v(S) of every interior coalition and every row of `X` (R, M).

    Parameters
    ----------
    parts : fitted approaches and the positions of the coalitions that each answers for
    masks : (C, M) coalitions, the empty one first and the grand one last; these two are left at zero
    n_samples : (C,) samples per coalition; unused by approaches that do not sample
    """
    shape = (len(masks), len(X), len(predictor.output_names))
    means, variances = np.zeros(shape), np.zeros(shape)
    is_nominal, n_evaluations = np.zeros(len(masks), dtype=bool), 0
    keys = row_keys(X, predictor.units)

    def work(block: _Block) -> Moments:
        chosen, rows = masks[block.coalitions], X[block.rows]
        batch = draw(block.part.approach, rows, chosen, block.n_samples, keys[block.rows], seed)
        return evaluate([batch], predictor, by_member=spread is not None)[0]

    for part in parts:
        if not is_sampler(part.approach):
            means[part.positions] = _regress(part, X, masks, spread)
    samplers = [part for part in parts if is_sampler(part.approach)]
    here = [part for part in samplers if not _draws_there(part, settings)]
    there = [part for part in samplers if _draws_there(part, settings)]
    near = partial(_limit, X, settings)
    blocks = [block for part in here for block in _plan_blocks(part, n_samples, X.shape, near)]
    results = _run(work, blocks, settings)
    if there:
        from condshap.models.on_device import on_device

        model = on_device(predictor)
        far = partial(_far_limit, X, settings, is_there=model.keeps_rows_on_device)
        more = [block for part in there for block in _plan_blocks(part, n_samples, X.shape, far)]
        results = chain(results, _run_there(more, model, X, masks, keys, seed, settings))
        blocks = [*blocks, *more]
    for block, moments in zip(blocks, results, strict=True):
        means[block.coalitions, block.rows] = moments.means
        variances[block.coalitions, block.rows] = moments.variances
        is_nominal[block.coalitions] = moments.is_nominal
        n_evaluations += moments.n_evaluations
        if spread is not None and moments.members is not None:
            spread.add(block.coalitions, block.rows, moments.members)
    return Moments(means, variances, is_nominal, n_evaluations)


def _regress(part: Part, X: Rows, masks: Masks, spread: MemberSpread | None) -> Values:
    """Estimates (c, R, O) of an approach that does not sample."""
    approach, asked = part.approach, masks[part.positions]
    if spread is None or not hasattr(approach, "estimate_members"):
        return np.asarray(approach.estimate(X, asked))
    each = np.asarray(approach.estimate_members(X, asked))  # (E, c, R, O)
    spread.add(part.positions, slice(None), each - each.mean(axis=0))
    return np.asarray(each.mean(axis=0))


Batch: TypeAlias = tuple[ConditionalSamples | Outcomes, Rows, Masks]
"""Samples, or what an additive model makes of them, with the rows (R, M) and coalitions (C, M) that they were made for."""


def join_rows(tables: Sequence[tuple[Masks, ValueTable]]) -> ValueTable:
    """One value table of tables (C, r, O) for parts of the rows, each with where its rows are, (R,)."""
    first = tables[0][1]
    shape = (len(first.values), len(tables[0][0]), first.values.shape[2])
    values, errors = np.empty(shape), np.empty(shape)
    for some, table in tables:
        values[:, some], errors[:, some] = table.values, table.std_errors
    return ValueTable(first.coalitions, values, errors, sum(table.n_evaluations for _, table in tables))


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


def _draws_there(part: Part, settings: Settings) -> bool:
    return settings.device is not None and hasattr(part.approach, "sample_on")


def _run_there(
    blocks: Sequence[_Block],
    model: DeviceModel,
    X: Rows,
    masks: Masks,
    keys: RowKeys,
    seed: int,
    settings: Settings,
) -> Iterator[Moments]:
    """Results of blocks whose samples are drawn on the device, in order, with a bar."""
    from condshap.values.device import reduce_blocks

    def draw_there(block: _Block) -> DeviceDraws:
        rows, asked = X[block.rows], {"keys": keys[block.rows], "seed": seed, "device": settings.device}
        with single_threaded_blas():
            drawn: DeviceDraws = block.part.approach.sample_on(rows, masks[block.coalitions], block.n_samples, **asked)
        return drawn

    reduced = reduce_blocks(draw_there, model, blocks)
    for means, variances, factor, n, members in _bar(reduced, len(blocks), settings):
        yield Moments(means, variances, np.full(len(means), factor is None), n, members)


def _limit(X: Rows, settings: Settings, k: int) -> int:
    """Samples of a block that fit the memory budget, with k samples of each pair."""
    bytes_per_row = 8 * X.shape[1] * _COPIES + 64
    most = _BLOCK_ROWS * (2 if k >= _MANY else 1)
    return int(np.clip(settings.memory_budget // max(1, settings.n_jobs) // bytes_per_row, 1, most))


def _far_limit(X: Rows, settings: Settings, k: int, *, is_there: bool) -> int:
    """Samples of a block that fit the device, and the host's memory budget if the model is not on the device."""
    from condshap.values.device import rows_at_once

    assert settings.device is not None
    limit = rows_at_once(X.shape[1], settings.device)
    return limit if is_there else min(limit, _limit(X, settings, k))


def _plan_blocks(
    part: Part, n_samples: Indices, shape: tuple[int, int], limit_for: Callable[[int], int]
) -> Iterator[_Block]:
    """Blocks of a part's coalitions with the same number of samples k, times rows, with at most `limit_for(k)` samples."""
    n_rows, _ = shape
    wanted = n_samples[part.positions]
    for k in np.unique(wanted)[::-1]:
        positions, limit = part.positions[wanted == k], limit_for(int(k))
        rows_at_once = int(np.clip(limit // k, 1, n_rows))
        coalitions_at_once = max(1, limit // (int(k) * rows_at_once))
        for start in range(0, len(positions), coalitions_at_once):
            chosen = positions[start : start + coalitions_at_once]
            for first in range(0, n_rows, rows_at_once):
                yield _Block(part, chosen, slice(first, first + rows_at_once), int(k))


def _run(work: Callable[[_Block], Moments], blocks: Sequence[_Block], settings: Settings) -> Iterable[Moments]:
    """Results of all blocks in order, with a bar, by joblib when more than one worker is wanted."""
    n_jobs = min(settings.n_jobs, len(blocks)) if settings.n_jobs > 0 else settings.n_jobs
    if n_jobs in (0, 1):  # 0: a single player leaves nothing to do
        results: Iterable[Any] = map(work, blocks)
    else:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
        results = parallel(delayed(work)(block) for block in blocks)
    return _bar(results, len(blocks), settings)


def _bar(results: Iterable[Any], n_blocks: int, settings: Settings) -> Iterable[Any]:
    bar: Iterable[Any] = make_bar(results, show=settings.progress, total=n_blocks, desc="v(S)", unit="block")
    return bar
