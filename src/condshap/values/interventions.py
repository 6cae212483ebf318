"""Approach, causal chain -> samples of x_unknown after x_known was set: one component is drawn after the other.

Every step is an ordinary conditional draw of the approach. What earlier steps have drawn is known to later ones, so known
rows differ from sample to sample there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condshap.approaches.base import Capabilities, Donors, DrawnRows, capabilities_of
from condshap.exceptions import ApproachError
from condshap.numerics.chains import Chain
from condshap.seeding import hash_words, row_keys, stage_word, stream_words
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.values.assignments import Part, Wrapped

_DONORS = 64  # of which one is chosen, where an approach does not say how many it wants
_NUMBERS = 2**22  # positions of donors at once


def intervene(parts: Sequence[Part], chain: Chain | None, *, is_fitted: bool = True) -> tuple[Part, ...]:
    """Parts that draw along a causal chain; without one the parts as they are.

    Before the fit they only tell what they will be able to do.
    """
    if chain is None:
        return tuple(parts)
    return tuple(replace(part, approach=_along(part.approach, chain, is_fitted=is_fitted)) for part in parts)


def _along(approach: Any, chain: Chain, *, is_fitted: bool) -> Any:
    if not capabilities_of(approach).follows_chains:
        return CausalSampler(approach, chain)
    return approach.along(chain) if is_fitted else approach


def check_intervenes(parts: Sequence[Part]) -> None:
    """Refuse approaches that cannot draw along a chain."""
    for part in parts:
        name = part.approach.name
        if not (part.can.samples or part.can.follows_chains):
            raise ApproachError(
                f"causal values need an approach that samples, got '{name}', which estimates conditional expectations "
                "directly. Use another approach, such as 'vaeac', or leave out confounding."
            )
        if part.can.asks_model_to_sample:
            raise ApproachError(
                f"causal values need an approach that samples without asking the model, got '{name}' with bandwidths that "
                "are chosen row by row. Use bandwidth='fixed'."
            )


@dataclass(frozen=True, slots=True)
class CausalSampler(Wrapped):
    """A sampler whose conditional draws are put together along a chain."""

    chain: Chain

    @property
    def capabilities(self) -> Capabilities:
        """As many samples as the approach wants; they stay on the host."""
        own = capabilities_of(self.approach)
        return Capabilities(default_samples=own.default_samples, fills_missing=own.fills_missing)

    def sample(self, X: Rows, masks: Masks, n_samples: int, *, keys: RowKeys, seed: int) -> DrawnRows:
        """Draw x_unknown after x_known was set, (C, R, K, M)."""
        filled = np.isnan(X) & self.capabilities.fills_missing
        patterns, which = np.unique(filled, axis=0, return_inverse=True)
        found = [
            (some, _Drawing(self, masks, n_samples, seed, gaps).run(X[some], keys[some]))
            for some, gaps in ((which.ravel() == i, gaps) for i, gaps in enumerate(patterns))
        ]
        if len(found) == 1:
            return found[0][1]
        rows = np.empty((len(masks), len(X), n_samples, X.shape[1]))
        for some, drawn in found:
            rows[:, some] = drawn.rows
        first = found[0][1]
        if first.weights is None:
            return DrawnRows(rows, None, None, first.may_repeat, first.members)
        weights = np.ones(rows.shape[:3])
        for some, drawn in found:
            weights[:, some] = drawn.weights
        return DrawnRows(rows, weights, None, first.may_repeat, first.members)


@dataclass(slots=True)
class _Drawing:
    """One call of a `CausalSampler`, for rows that lack the same features `gaps` (M,), which are drawn as well."""

    sampler: CausalSampler
    masks: Masks
    n_samples: int
    seed: int
    gaps: Masks
    weights: Floats | None = None
    members: Indices | None = None

    def run(self, X: Rows, keys: RowKeys) -> DrawnRows:
        """Draw for rows (R, M), component by component."""
        chain, masks = self.sampler.chain, self.masks
        (R, M), C, K = X.shape, len(masks), self.n_samples
        rows = np.repeat(np.broadcast_to(X, (C, R, M))[:, :, None], K, axis=2)
        names = stream_words(self.seed, "causal", masks, keys)  # coalitions that share a step share no stream
        may_repeat = np.zeros(C, dtype=bool)
        for k, component in enumerate(chain.components):
            new = component & (~masks | self.gaps)  # (C, M)
            has_moved = np.asarray(((~masks | self.gaps) & chain.components[:k].any(axis=0)).any(axis=1))
            streams = hash_words(stage_word(f"component {k}"), names)
            for given, moved, some in _alike(chain.given(k, masks), has_moved, new.any(axis=1)):
                own, known = streams[some].ravel(), rows[some].reshape(-1, K, M)
                drawn = (
                    self._draw_each(known, given, own)
                    if moved
                    else self._draw(known[:, 0], given, own, may_repeat, some)
                )
                for c, values in zip(some, drawn.reshape(len(some), R, K, M), strict=True):
                    rows[c][..., new[c]] = values[..., new[c]]
        return DrawnRows(rows, self.weights, None, may_repeat, self.members)

    def _draw(self, X: Rows, given: Masks, keys: RowKeys, may_repeat: Masks, some: Indices) -> Rows:
        """Draws (n, K, M) for rows (n, M) in which nothing is drawn yet; notes who drew them and how much they count."""
        approach, K = self.sampler.approach, self.n_samples
        if capabilities_of(approach).starts_chains:
            samples = approach.sample_start(X, given, K, keys=keys, seed=self.seed)
        else:
            samples = approach.sample(X, given[None], K, keys=keys, seed=self.seed)
        if isinstance(samples, Donors):
            wanted = capabilities_of(approach).default_samples or _DONORS
            if samples.weights is not None and wanted > K:  # the nearest ones alone are not all of them
                samples = approach.sample(X, given[None], wanted, keys=keys, seed=self.seed)
            return np.asarray(samples.table[pick_donors(samples, K, keys)])
        if samples.weights is not None:
            n_rows = len(X) // len(some)
            self.weights = np.ones((len(self.masks), n_rows, K)) if self.weights is None else self.weights
            self.weights[some] = samples.weights[0].reshape(len(some), n_rows, K)
        self.members = samples.members
        if samples.may_repeat is not None:
            may_repeat[some] |= samples.may_repeat[0]
        return np.asarray(samples.rows[0])

    def _draw_each(self, X: Rows, given: Masks, keys: RowKeys) -> Rows:
        """One draw for each of the known rows (n, K, M)."""
        approach = self.sampler.approach
        if capabilities_of(approach).draws_each:
            return np.asarray(approach.sample_each(X, given, keys=keys, seed=self.seed))
        flat, streams = X.reshape(-1, X.shape[2]), hash_words(keys[:, None], np.arange(X.shape[1])[None]).ravel()
        out = np.empty_like(flat)
        at_once = max(1, _NUMBERS // (capabilities_of(approach).default_samples or _DONORS))
        for start in range(0, len(flat), at_once):
            some = slice(start, start + at_once)
            out[some] = self._draw_once(flat[some], given, streams[some])
        return out.reshape(X.shape)

    def _draw_once(self, X: Rows, given: Masks, keys: RowKeys) -> Rows:
        """One draw for each row (n, M), (n, M)."""
        approach = self.sampler.approach
        own = capabilities_of(approach)
        if not own.compares_all_rows:
            samples = approach.sample(X, given[None], 1, keys=keys, seed=self.seed)
            if isinstance(samples, DrawnRows):
                return np.asarray(samples.rows[0, :, 0])
            samples = approach.sample(X, given[None], own.default_samples or _DONORS, keys=keys, seed=self.seed)
            return np.asarray(samples.table[pick_donors(samples, 1, keys)[:, 0]])
        _, first, which = np.unique(row_keys(X[:, given]), return_index=True, return_inverse=True)
        samples = approach.sample(
            X[first], given[None], own.default_samples or _DONORS, keys=keys[first], seed=self.seed
        )
        return np.asarray(samples.table[pick_donors(samples, 1, keys, which.ravel())[:, 0]])


def _alike(given: Masks, has_moved: Masks, wanted: Masks) -> Iterator[tuple[Masks, bool, Indices]]:
    """Coalitions that are `wanted` (C,), those together that are drawn given the same (C, M) in the same way."""
    positions = np.flatnonzero(wanted)
    if not len(positions):
        return
    both = np.column_stack([given, has_moved])[positions]
    unique, which = np.unique(both, axis=0, return_inverse=True)
    for i, one in enumerate(unique):
        yield one[:-1], bool(one[-1]), positions[which.ravel() == i]


def pick_donors(samples: Donors, n: int, keys: RowKeys, which: Indices | None = None) -> Indices:
    """Choose n donors per row by weight, (R, n): evenly spread, from a random start, in an order whose parts are even too.

    `which` (R,) says whose donors each row takes, by default its own.
    """
    indices = samples.indices[0]
    own = np.arange(len(indices)) if which is None else which
    start = (hash_words(stage_word("donors"), keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    points = (start[:, None] + _spread(n)) % 1.0
    if samples.weights is None:  # all count the same, so nothing need be searched
        within = np.minimum((points * indices.shape[1]).astype(np.intp), indices.shape[1] - 1)
        return np.asarray(indices[own[:, None], within])
    shares = np.cumsum(samples.weights[0], axis=1)
    shares /= shares[:, -1:]
    flat = (shares + np.arange(len(shares))[:, None]).ravel()  # rows one after the other, so that one search does
    found = np.searchsorted(flat, (points + own[:, None]).ravel(), side="right").reshape(points.shape)
    within = np.clip(found - own[:, None] * shares.shape[1], 0, shares.shape[1] - 1)
    return np.asarray(indices[own[:, None], within])


def _spread(n: int) -> Floats:
    """Multiples of 1 / n in the order of van der Corput: any consecutive ones are spread out.

    >>> _spread(4).tolist()
    [0.0, 0.5, 0.25, 0.75]
    """
    points, bits = np.zeros(n), np.arange(n)
    for digit in range(max(1, n.bit_length())):
        points += ((bits >> digit) & 1) * 0.5 ** (digit + 1)
    return np.asarray(np.argsort(np.argsort(points)) / n)
