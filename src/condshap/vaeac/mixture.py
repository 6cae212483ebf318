"""Networks, their companions and blind draws as one distribution: members share the samples out by their votes.

Member 0 is the networks together, the last one draws blindly, as if nothing were known, and companions stand between them.
Columns that repeat others exactly were not learned; they follow from what is drawn. Those that others determine are drawn
and then put right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from condshap.numerics.additive import AdditiveFunction
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.vaeac.columns.hierarchies import Hierarchies
from condshap.vaeac.columns.repeats import Repeats
from condshap.vaeac.companions import Companions
from condshap.vaeac.ensemble import Networks, as_array
from condshap.vaeac.levels_again import draw_levels_again, fill_levels_again, many_levels
from condshap.vaeac.sampling.tiles import Asked

_DRAWS_EACH = 4  # of a companion, behind each of its expectations
_WAYS = 4  # combinations of levels per sample up to which samples are looked through for equal ones


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Members that share samples out.

    Attributes
    ----------
    votes : (2 + L,) how much the networks, L companions and blind draws count
    repeats : how columns follow from those that were learned; None where none does
    hierarchies : which of those that were learned determine others; None where none does
    """

    networks: Networks
    companions: Companions
    votes: Floats
    repeats: Repeats | None
    hierarchies: Hierarchies | None

    def sample(
        self,
        X: Rows,
        masks: Masks,
        n_samples: int,
        *,
        keys: RowKeys,
        seed: int,
        fill_missing: bool,
        device: str | None = None,
    ) -> Any:
        """Draw x_unknown | x_known, (C, R, K, M): an array, or a tensor on `device` if there is one."""
        asked = Asked(X, masks, n_samples, keys, seed, fill_missing)
        return self._expanded(asked, lambda learned: self._sample_learned(learned, self._draw, device))

    def sample_start(
        self, X: Rows, mask: Masks, n_samples: int, *, keys: RowKeys, seed: int, fill_missing: bool
    ) -> Floats:
        """Draw the same for one coalition (M,), up to rounding, one by one as `sample_each` does: (1, R, K, M)."""
        asked = Asked(X, mask[None], n_samples, keys, seed, fill_missing)
        drawn: Floats = self._expanded(
            asked, lambda learned: self._sample_learned(learned, self._draw_one_by_one, None)
        )
        return drawn

    def _expanded(self, asked: Asked, draw: Callable[[Asked], Any]) -> Any:
        """Draws (C, R, K, M) of all features, by a function that draws those that were learned."""
        if self.repeats is None:
            return draw(asked)
        rows: Any = None
        X, masks, keys = asked.X, asked.masks, asked.keys
        assert keys is not None
        for q in self.repeats.questions(X, masks):
            drawn = draw(replace(asked, X=q.rows, masks=q.masks, keys=keys[q.at], fill_missing=True))
            whole = self.repeats.expand(
                drawn, X[q.at], masks[q.asked], fill_missing=asked.fill_missing
            )  # puts gaps back
            if rows is None:
                shape = (len(masks), len(X), asked.n_samples, X.shape[1])
                rows = np.empty(shape) if isinstance(whole, np.ndarray) else whole.new_empty(shape)
            rows[q.asked[:, None], q.at] = whole
        return rows

    def sample_each(self, X: Rows, mask: Masks, *, keys: RowKeys, seed: int, fill_missing: bool) -> Rows:
        """Draw once for each of K rows of R pairs (R, K, M) and a coalition (M,): the k-th by whom `sample` asks for it."""
        (R, K, M), out = X.shape, np.empty_like(X)
        for member, e, points in self._members_of_points(K):
            flat, names = X[:, points].copy().reshape(-1, M), np.repeat(keys, points.stop - points.start)
            which = np.tile(np.arange(points.start, points.stop), R)
            blind = member == len(self.votes) - 1
            asked = Asked(flat, mask[None], 1, names, seed, fill_missing, blind, which, K)
            out[:, points] = self._draw_each(member, e, asked).reshape(R, -1, M)
        return out

    def _members_of_points(self, n_points: int) -> Iterator[tuple[int, int, slice]]:
        """Members, for networks which of them, and the points of each, as `sample` shares them out; none is empty."""
        start = 0
        for member, n in self._shares(n_points):
            for e, own in [(-1, n)] if self._is_companion(member) else enumerate(self.networks.shares(n).tolist()):
                if own:
                    yield member, e, slice(start, start + own)
                start += own

    def _draw_each(self, member: int, e: int, asked: Asked) -> Rows:
        """One draw of a member for each row (n, M)."""
        if self.repeats is None:
            return self._draw_each_learned(member, e, asked)
        rows, names, points = np.empty_like(asked.X), asked.keys, asked.points
        assert names is not None
        assert points is not None
        for q in self.repeats.questions(asked.X, asked.masks):
            own = replace(asked, X=q.rows, masks=q.masks, keys=names[q.at], fill_missing=True, points=points[q.at])
            drawn = self._draw_each_learned(member, e, own)[None, :, None]
            rows[q.at] = self.repeats.expand(drawn, asked.X[q.at], asked.masks, fill_missing=asked.fill_missing)[
                0, :, 0
            ]
        return rows

    def _draw_each_learned(self, member: int, e: int, asked: Asked) -> Rows:
        """One draw of a member for each row (n, m) of the features that were learned, in place of the rows."""
        known = _known(asked)
        if e < 0:
            drawn = as_array(self._draw(member, asked))[0, :, 0]
        else:
            self.networks.fill_each(asked, e)
            fill_levels_again(self.networks, asked, e)
            drawn = asked.X
        if self.hierarchies is None:
            return drawn
        return np.asarray(self.hierarchies.keep_to(drawn[None, :, None], known, asked.points)[0, :, 0])

    def expect(
        self,
        function: AdditiveFunction,
        X: Rows,
        masks: Masks,
        n_samples: int,
        *,
        keys: RowKeys,
        seed: int,
        fill_missing: bool,
    ) -> Floats:
        """E[function(X) | x_known, z] for K latents z, (C, R, K, O); where columns follow from others, at draws."""
        if self.repeats is not None or self.hierarchies is not None:
            return function(self.sample(X, masks, n_samples, keys=keys, seed=seed, fill_missing=fill_missing))
        asked = Asked(X, masks, n_samples, keys, seed, fill_missing)
        expected = [self._expect(member, function, share) for member, share in self._shared(asked)]
        return expected[0] if len(expected) == 1 else np.concatenate(expected, axis=2)

    def weights(self, n_samples: int) -> Floats | None:
        """Weights (K,) of the shares side by side, None if they are equal."""
        shares = self._shares(n_samples)
        total = sum(self.votes[member] for member, _ in shares)
        each = [
            (np.full(n, 1 / n) if self._is_companion(member) else self.networks.weights(n)) * self.votes[member] / total
            for member, n in shares
        ]
        weights = np.concatenate(each)
        return None if np.ptp(weights) == 0 else weights

    def members(self, n_samples: int) -> Indices | None:
        """Which network drew each of K samples, -1 for companions and blind draws; None where not two of them drew."""
        shares = ((member, self.networks.shares(n), n) for member, n in self._shares(n_samples))
        drawn = [np.repeat(np.arange(len(own)), own) if member == 0 else np.full(n, -1) for member, own, n in shares]
        members = np.concatenate(drawn)
        return members if members.max() > 0 else None

    def may_repeat(self, masks: Masks, n_samples: int) -> Masks:
        """Coalitions (C,) of which equal rows are likely: no feature is continuous, or the unknown ones have few values."""
        n_levels = np.array(self.networks.fitted_.columns.layout.n_levels, dtype=np.float64)
        masks = masks if self.repeats is None else self.repeats.reduce_masks(masks)
        if (n_levels > 0).all():
            return np.ones(len(masks), dtype=bool)
        ways = np.where(masks, 1.0, np.where(n_levels > 0, n_levels, np.inf)).prod(axis=1)
        return np.asarray(ways <= _WAYS * n_samples)

    def _shares(self, n_samples: int) -> list[tuple[int, int]]:
        """Members and how many of K samples each draws; none of them is empty."""
        return [(member, n) for member, n in enumerate(share_out(self.votes, n_samples)) if n]

    def _is_companion(self, member: int) -> bool:
        return 0 < member < len(self.votes) - 1

    def _shared(self, asked: Asked) -> list[tuple[int, Asked]]:
        """Members, and what is asked of each: its share of the samples, blindly of the last one."""
        last = len(self.votes) - 1
        return [
            (member, replace(asked, n_samples=n, blind=member == last)) for member, n in self._shares(asked.n_samples)
        ]

    def _sample_learned(self, asked: Asked, draw: Callable[[int, Asked], torch.Tensor], device: str | None) -> Any:
        """Draws (C, R, K, m) of the features that were learned, share by share."""
        drawn = [draw(member, share) for member, share in self._shared(asked)]
        if device is not None:
            whole: Any = torch.cat([part.to(device) for part in drawn], dim=2)
        else:
            arrays = [as_array(part) for part in drawn]
            whole = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=2)
        return whole if self.hierarchies is None else self.hierarchies.keep_to(whole, _known(asked))

    def _draw(self, member: int, asked: Asked) -> torch.Tensor:
        """One share of the draws, (C, R, n, m)."""
        if self._is_companion(member):
            return self.companions.draw(member - 1, asked)
        drawn = self.networks.draw(asked)
        is_single = asked.points is not None
        return drawn if asked.blind or is_single else self._with_levels(drawn, asked)

    def _with_levels(self, drawn: torch.Tensor, asked: Asked) -> torch.Tensor:
        """Draws of the networks with hidden levels of many drawn again."""
        if not many_levels(self.networks):
            return drawn
        return torch.from_numpy(draw_levels_again(self.networks, as_array(drawn), asked))

    def _draw_one_by_one(self, member: int, asked: Asked) -> torch.Tensor:
        """One share of the draws for one coalition, (1, R, n, m)."""
        if self._is_companion(member) or not self.networks.draws_singles:
            return self._draw(member, asked)
        assert asked.keys is not None
        (R, m), n, start = asked.X.shape, asked.n_samples, 0
        out = np.empty((1, R, n, m))
        for e, own in enumerate(self.networks.shares(n).tolist()):
            if own:
                points, rows = np.tile(np.arange(start, start + own), R), np.repeat(asked.X, own, axis=0)
                each = replace(asked, X=rows, n_samples=1, keys=np.repeat(asked.keys, own), points=points, n_points=n)
                self.networks.fill_each(each, e)
                out[0, :, start : start + own] = rows.reshape(R, own, m)
            start += own
        return self._with_levels(torch.from_numpy(out), asked)

    def _expect(self, member: int, function: AdditiveFunction, asked: Asked) -> Floats:
        """One share of the expectations, (C, R, n, O)."""
        if self._is_companion(member):  # its draws cost little where no model is asked
            n = asked.n_samples
            values = function(as_array(self._draw(member, replace(asked, n_samples=_DRAWS_EACH * n))))
            return np.asarray(values.reshape(*values.shape[:2], n, _DRAWS_EACH, -1).mean(axis=3))
        return self.networks.expect(function, asked)


def _known(asked: Asked) -> Masks:
    """What stays as it is, (C, R, m)."""
    known = np.broadcast_to(asked.masks[:, None], (len(asked.masks), *asked.X.shape))
    return known & ~np.isnan(asked.X) if asked.fill_missing else known


def share_out(votes: Floats, n_samples: int) -> list[int]:
    """How many of K samples each member draws: by its votes, at least one if it has any and there are enough.

    >>> share_out(np.array([0.9, 0.1]), 16), share_out(np.array([1.0, 0.0]), 16), share_out(np.array([0.5, 0.5]), 1)
    ([14, 2], [16, 0], [1, 0])
    """
    order = np.argsort(-votes, kind="stable")[: max(1, n_samples)]
    asked = np.zeros(len(votes))
    asked[order] = votes[order]
    asked /= asked.sum()
    counts = np.where(asked > 0, np.maximum(np.rint(asked * n_samples), 1), 0).astype(int)
    counts[order[0]] += n_samples - counts.sum()
    return [int(n) for n in counts]
