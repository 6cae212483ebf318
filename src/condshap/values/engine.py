"""Requests for samples -> moments of v(S): the only place where samples are drawn, predicted and reduced.

Whoever needs v(S), or a mean over draws, asks the engine: values of explained rows, the pilot that measures errors, further
batches for `target_error`, predictions of rows with gaps. The engine decides where that is done, on the host or on a device,
by how many workers. Blocks, jobs and bars decide when something is computed, never what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, TypeVar

import numpy as np

from condshap.approaches.base import DrawnRows, capabilities_of, is_sampler
from condshap.models.predictor import Predictor
from condshap.precision.members import MemberSpread
from condshap.runtime.memory import rows_that_fit
from condshap.runtime.progress import progress_line
from condshap.seeding import row_keys
from condshap.types import Indices, Masks, RowKeys, Rows
from condshap.values.assignments import Part
from condshap.values.host import Batch, draw, evaluate
from condshap.values.table import Moments, Settings

Sampled = TypeVar("Sampled", bound=Any)

_BLOCK_ROWS = 2**18
_MANY = 512  # samples of a pair from which on blocks are twice as large: they would have few pairs else


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Samples of an approach that are wanted, or the values of one that does not sample.

    Attributes
    ----------
    rows, keys : (r, M) and (r,) names of their random streams
    masks : (c, M) coalitions
    n_samples : of every pair of a coalition and a row
    seed : names the random streams
    own : the rows that each coalition is wanted for, None for all; moments come for one coalition after the other then.
        Drawing for all and keeping some is cheaper than a call for each coalition
    """

    approach: Any
    rows: Rows
    keys: RowKeys
    masks: Masks
    n_samples: int
    seed: int
    own: tuple[slice, ...] | None = None

    @property
    def where(self) -> dict[str, Any]:
        """Name the random streams, for an approach."""
        return {"keys": self.keys, "seed": self.seed}


Group = Sequence[Request]
"""Requests that are predicted in one call of the model: small calls are expensive for a forest."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueEngine:
    """A model and how to compute; see `run` and `estimate`."""

    predictor: Predictor
    settings: Settings

    def run(self, groups: Sequence[Group], *, by_member: bool = False) -> Iterator[list[Moments]]:
        """Moments of every group's requests, in order: one for a request, or one for each coalition with `own` rows.

        With `by_member` they tell how far members of an ensemble differ.
        """
        runs = (list(some) for _, some in groupby(groups, key=self._goes_to_device))
        return chain.from_iterable(self._run_alike(some, by_member=by_member) for some in runs)

    def estimate(
        self,
        parts: Sequence[Part],
        X: Rows,
        masks: Masks,
        n_samples: Indices,
        *,
        seed: int,
        spread: MemberSpread | None = None,
    ) -> Moments:
        """Estimate v(S) of every interior coalition and every row of `X` (R, M).

        Parameters
        ----------
        parts : fitted approaches and the positions of the coalitions that each answers for
        masks : (C, M) coalitions, the empty one first and the grand one last; these two are left at zero
        n_samples : (C,) samples per coalition; unused by approaches that do not sample
        spread : takes up how far members of an ensemble differ
        """
        shape = (len(masks), len(X), len(self.predictor.output_names))
        found = Moments(np.zeros(shape), np.zeros(shape), np.zeros(len(masks), dtype=bool), 0)
        keys, n_evaluations = row_keys(X, self.predictor.units), 0
        blocks = [block for part in parts for block in self.plan_blocks(part, n_samples, X.shape)]
        requests = [
            (Request(b.approach, X[b.rows], keys[b.rows], masks[b.coalitions], b.n_samples, seed),) for b in blocks
        ]
        work = sum(block.n_draws for block in blocks)
        with progress_line("explaining", show=self.settings.progress, total=len(X)) as line:
            for block, (moments,) in zip(blocks, self.run(requests, by_member=spread is not None), strict=True):
                found.means[block.coalitions, block.rows] = moments.means
                found.variances[block.coalitions, block.rows] = moments.variances
                found.is_nominal[block.coalitions] = moments.is_nominal
                n_evaluations += moments.n_evaluations
                if spread is not None and moments.members is not None:
                    spread.add(block.coalitions, block.rows, moments.members, moments.means)
                line.update(len(X) * block.n_draws / work)
        return replace(found, n_evaluations=n_evaluations)

    def rows_at_once(self, n_features: int, most: int = _BLOCK_ROWS) -> int:
        """Rows of samples that fit the memory budget, shared by all workers, in one call of the model."""
        budget = self.settings.memory_budget // max(1, self.settings.n_jobs)
        return min(most, rows_that_fit(budget, n_features))

    def _goes_to_device(self, group: Group) -> bool:
        return self.settings.device is not None and all(draws_on_device(one.approach) for one in group)

    def _run_alike(self, groups: Sequence[Group], *, by_member: bool) -> Iterable[list[Moments]]:
        """Run groups that all go to the device, or none of them."""
        if self._goes_to_device(groups[0]):
            return self._run_on_device(groups)
        work = partial(_evaluate_group, predictor=self.predictor, by_member=by_member)
        n_jobs = self.settings.n_jobs
        n_jobs = min(n_jobs, len(groups)) if n_jobs > 0 else n_jobs
        if n_jobs == 1:
            return map(work, groups)
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
        found: Iterable[list[Moments]] = parallel(delayed(work)(group) for group in groups)
        return found

    def _run_on_device(self, groups: Sequence[Group]) -> Iterator[list[Moments]]:
        """Results of groups whose samples are drawn on the device, in order."""
        from condshap.models.on_device import on_device
        from condshap.values.device import draw_on_device, reduce_blocks

        assert self.settings.device is not None
        draws = (draw_on_device(request, self.settings.device) for group in groups for request in group)
        reduced = iter(reduce_blocks(chain.from_iterable(draws), on_device(self.predictor)))
        for group in groups:
            n = sum(1 if request.own is None else len(request.own) for request in group)
            yield [
                Moments(means, variances, np.full(len(means), factor is None), n_rows, members)
                for means, variances, factor, n_rows, members in (next(reduced) for _ in range(n))
            ]

    def plan_blocks(self, part: Part, n_samples: Indices, shape: tuple[int, int]) -> Iterator[Block]:
        """Blocks of a part's coalitions with the same number of samples k, times rows, that fit into memory."""
        n_rows, _ = shape
        wanted = n_samples[part.positions] if is_sampler(part.approach) else np.ones(len(part.positions), np.intp)
        for k in np.unique(wanted)[::-1]:
            positions, limit = part.positions[wanted == k], self._samples_at_once(part.approach, shape[1], int(k))
            rows_at_once = int(np.clip(limit // k, 1, n_rows))
            coalitions_at_once = max(1, limit // (int(k) * rows_at_once))
            for start in range(0, len(positions), coalitions_at_once):
                chosen = positions[start : start + coalitions_at_once]
                for first in range(0, n_rows, rows_at_once):
                    yield Block(part.approach, chosen, slice(first, min(first + rows_at_once, n_rows)), int(k))

    def _samples_at_once(self, approach: Any, n_features: int, k: int) -> int:
        """Samples of a block, with k of each pair: what fits the device, or the host's budget, if the model is there."""
        here = self.rows_at_once(n_features, _BLOCK_ROWS * (2 if k >= _MANY else 1))
        if self.settings.device is None or not draws_on_device(approach):
            return here
        from condshap.models.on_device import on_device
        from condshap.values.device import rows_at_once

        there = rows_at_once(n_features, self.settings.device)
        return there if on_device(self.predictor).keeps_rows_on_device else min(here, there)


@dataclass(frozen=True, slots=True)
class Block:
    """Coalitions of an approach, at positions (c,) in the plan, times rows, with the same number of samples."""

    approach: Any
    coalitions: Indices
    rows: slice
    n_samples: int

    @property
    def n_draws(self) -> int:
        """Samples of the block: how much work it is."""
        return len(self.coalitions) * int(self.rows.stop - self.rows.start) * self.n_samples


def draws_on_device(approach: Any) -> bool:
    """Tell whether an approach can leave its draws on a device."""
    return capabilities_of(approach).draws_on_device


def _evaluate_group(group: Group, *, predictor: Predictor, by_member: bool) -> list[Moments]:
    """Draw all requests of a group and predict them in one call; values of regressors need none."""
    first = group[0].approach
    if not is_sampler(first):
        return [_regress(request, by_member=by_member) for request in group]
    batches: list[Batch] = []
    for request in group:
        samples, rows, masks = draw(request.approach, request.rows, request.masks, request.n_samples, **request.where)
        if request.own is None:
            batches.append((samples, rows, masks))
        else:
            batches += [(cut(samples, c, own), rows[own], masks[c : c + 1]) for c, own in enumerate(request.own)]
    return evaluate(batches, predictor, by_member=by_member)


def _regress(request: Request, *, by_member: bool) -> Moments:
    """Values (c, r, O) of an approach that does not sample; nothing in them is random."""
    approach, apart = request.approach, None
    if by_member and capabilities_of(approach).has_members:
        each = np.asarray(approach.estimate_members(request.rows, request.masks))  # (E, c, r, O)
        means = np.asarray(each.mean(axis=0))
        apart = each - means
    else:
        means = np.asarray(approach.estimate(request.rows, request.masks))
    return Moments(means, np.zeros_like(means), np.zeros(len(means), dtype=bool), 0, apart)


def cut(samples: Sampled, coalition: int, rows: slice) -> Sampled:
    """Copy samples of one coalition and some of the rows; views would keep all the others in memory."""
    one = slice(coalition, coalition + 1)
    arrays = {name: getattr(samples, name, None) for name in ("rows", "indices", "values", "weights")}
    kept: dict[str, Any] = {name: array[one, rows].copy() for name, array in arrays.items() if array is not None}
    if isinstance(samples, DrawnRows) and samples.may_repeat is not None:
        kept["may_repeat"] = samples.may_repeat[one]
    if isinstance(samples.error_factor, np.ndarray):  # (C, R)
        kept["error_factor"] = samples.error_factor[one, rows]
    return replace(samples, **kept)
