"""Rows that are each asked about once -> draws of one member, on the CPU: what is known differs from draw to draw.

Of a coalition all rows have the same mask, and advice is linear in what is known. So both become part of the first layer,
which then takes the known columns alone, and the last layer gives the heads of the unknown features alone. That needs rows
without gaps; others go the way of rows with many samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from condshap.types import Floats, Indices, Masks, Rows
from condshap.vaeac.columns.adviser import Adviser
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.network.compiled import BLOCK, Ends, Inner, Singles, Weights, pad, pad_bias, pass_singles
from condshap.vaeac.sampling.heads import Margins, make_heads, make_margins
from condshap.vaeac.sampling.tiles import STAGE, Asked, choose_nets, noise_pool

_AT_ONCE = 16 * BLOCK  # rows between the network and its heads
_ENOUGH = 2 * BLOCK  # rows for each way to know levels, from which on those that know the same are drawn together
_MOST_ENDS = 256


@dataclass(frozen=True, slots=True, eq=False)
class SingleDrawer:
    """One member that draws for single rows.

    Attributes
    ----------
    scale : name of the member's scale
    adviser : None where networks take no advice
    margins : how Gaussian heads become values
    weights : by name, see `NetworkShape.parameters`
    inner : the same without the first and the last layer
    respect : draws stay inside the support
    ends : first and last layers for the coalitions that were asked for
    """

    columns: Columns
    scale: str
    adviser: Adviser | None
    margins: Margins
    weights: Weights
    inner: Inner
    latent_floor: float
    draws: str
    respect: bool
    ends: dict[bytes, Ends] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Columns, config: VAEACConfig, scale: str, weights: Weights, adviser: Adviser | None
    ) -> SingleDrawer:
        """Return the member with these weights, as it was fitted with this configuration."""
        return cls(
            columns=columns,
            scale=scale,
            adviser=adviser,
            margins=make_margins(columns, scale, truncate=config.respect_support, device=torch.device("cpu")),
            weights=weights,
            inner=Inner.of(weights),
            latent_floor=config.latent_floor,
            draws=config.draws,
            respect=config.respect_support,
        )

    def draw(self, asked: Asked) -> Floats:
        """Unknown features (U, R) of rows (R, M) without known gaps that each take a point, for the one coalition."""
        assert asked.keys is not None
        assert asked.points is not None
        X, mask, d = asked.X, asked.masks[0], len(self.weights["decoder_in.weight"])
        pool = noise_pool(asked.n_points, d + len(mask), asked.seed, self.draws, torch.device("cpu"))
        nets = choose_nets(asked.seed, STAGE, asked.masks, asked.keys, pool.shape[-1])[0]
        points, noise = asked.points * pool.shape[-1] + nets, pool.flatten(1).numpy()
        task = _Task(self, mask & (not asked.blind), ~mask, noise)
        groups, out = list(task.split(X)), np.empty((len(task.drawn), len(X)))
        for at in groups:  # which know the same, so those that are at the same point, too, have the same draws
            different, which = _mark(points[at], noise.shape[1])
            drawn = task.draw(X[at[:1]], different)
            for own, column in zip(out, drawn, strict=True):
                own[at] = column.take(which)
        return out if groups else task.draw(X, points)

    def ends_for(self, known: Masks, drawn: Indices) -> Ends:
        """First layer for the `known` features (M,), and last one for the heads of those at positions `drawn`."""
        key = np.packbits(known).tobytes() + drawn.tobytes()
        found = self.ends.get(key)
        if found is None:
            weights, some = self.weights, self.columns.layout.output_columns(drawn)
            first = self._with_constants(weights["masked_in.weight"], weights["masked_in.bias"][0], known)
            skip = self._with_constants(weights["output_skip.weight"][:, some], weights["output.bias"][0, some], known)
            found = Ends(*first, *skip, pad(weights["output.weight"][:, some]))
            if len(self.ends) >= _MOST_ENDS:
                self.ends.clear()
            self.ends[key] = found
        return found

    def _with_constants(self, weights: Singles, bias: Singles, known: Masks) -> tuple[Singles, Singles]:
        """Weights (D, W) of the known columns, and biases (W,) with all that no value decides: mask and advice.

        `weights` (D0, W) are those of encoded columns, mask, flags of gaps and advice, see `EncodedRows`.
        """
        layout, exact = self.columns.layout, weights.astype(np.float64)
        seen, D1 = known[list(layout.order)], layout.n_inputs
        own, constant = exact[:D1], bias + ~seen @ exact[D1 : D1 + len(seen)]
        if self.adviser is not None:
            table, means = self.adviser.table(seen, list(self.columns.scales).index(self.scale))
            effects = table.T @ exact[-len(means) :]  # zero for hidden columns
            own[self.adviser.model.columns] += effects
            constant = constant - means @ effects
        return pad(own[layout.input_columns(np.flatnonzero(known))]), pad_bias(constant)


class _Task:
    """Draws of some features given the `known` ones (M,), by normal numbers `noise` (N, T)."""

    def __init__(self, drawer: SingleDrawer, known: Masks, unknown: Masks, noise: Singles) -> None:
        columns, d = drawer.columns, len(drawer.weights["decoder_in.weight"])
        self.drawer, self.noise, self.n_latent = drawer, noise, d
        self.seen, self.drawn = np.flatnonzero(known), np.flatnonzero(unknown)
        self.known, self.unknown = (columns.some(features, drawer.scale) for features in (self.seen, self.drawn))
        self.ends = drawer.ends_for(known, self.drawn)
        places = columns.layout.places(self.drawn)
        self.coordinates = [*range(d), *(d + places).tolist()]
        self.heads = make_heads(self.unknown, respect=drawer.respect, device=torch.device("cpu"))
        self.margins = drawer.margins.some(places[places < columns.layout.n_continuous])

    def split(self, X: Rows) -> Iterator[Indices]:
        """Positions of rows (R, M) that know the same, group by group, where there are few ways: levels alone are known."""
        n_levels = np.array(self.known.layout.n_levels, dtype=np.intp)
        n_ways = n_levels.prod(dtype=np.float64)
        if 0 < n_ways <= len(X) / _ENOUGH:
            codes = self.known.atoms.encode(X[:, self.seen]).astype(np.intp)
            way = codes @ np.cumprod([1, *n_levels])[:-1]
            yield from (np.flatnonzero(way == i) for i in np.flatnonzero(np.bincount(way)))

    def draw(self, X: Rows, points: Indices) -> Floats:
        """Draws (U, n) for rows (n, M), or for one row (1, M), at `points` (n,)."""
        n, know_the_same = len(points), len(X) < len(points)
        x, points, out = self._encode(X), _whole_blocks(points), np.empty((len(self.drawn), n))
        for start in range(0, n, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            own = x if know_the_same else np.ascontiguousarray(x[:, some])
            out[:, some] = self._draw_tile(own, points[some], know_the_same=know_the_same)[:, : n - start]
        for j in self.unknown.atoms.columns:
            out[j] = self.unknown.atoms.of(j)[out[j].astype(np.intp)]
        return out

    def _draw_tile(self, x: Singles, points: Indices, *, know_the_same: bool) -> Floats:
        """Draws (U, P) of numbers and codes for inputs (D, P), or (D, BLOCK) that are all the same."""
        layout, drawer, d = self.unknown.layout, self.drawer, self.n_latent
        numbers = np.empty((len(self.coordinates), len(points)), np.float32)
        for row, i in zip(numbers, self.coordinates, strict=True):
            self.noise[i].take(points, out=row, mode="clip")
        outputs, values = (
            np.empty((layout.n_outputs, len(points)), np.float32),
            np.empty((layout.n_features, len(points))),
        )
        pass_singles(self.ends, drawer.inner, drawer.latent_floor, x, numbers[:d], outputs, know_the_same)
        given, noise, found = (torch.from_numpy(part).unsqueeze(1) for part in (outputs, numbers[d:], values))
        self.heads.draw(given, noise, self.margins, found)
        return values[np.argsort(layout.order)]

    def _encode(self, X: Rows) -> Singles:
        """Known features of rows (n, M) as inputs (D, n) in whole blocks."""
        if not len(self.seen):
            return np.zeros((0, len(X) + -len(X) % BLOCK), np.float32)
        inputs = self.known.encode(X[:, self.seen], torch.device("cpu")).inputs[0].numpy()
        return np.ascontiguousarray(_whole_blocks(inputs).T)


def _mark(codes: Indices, n: int) -> tuple[Indices, Indices]:
    """Different ones of codes below n, in order, and which of them each code is; marking is quicker than sorting."""
    place = np.zeros(n, dtype=np.intp)
    place[codes] = 1
    different = np.flatnonzero(place)
    place[different] = np.arange(len(different))
    return different, place[codes]


def _whole_blocks(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Array with its last row repeated up to whole blocks, so that no number depends on how many rows there are."""
    n_more = -len(array) % BLOCK
    return array if n_more == 0 else array.take(np.minimum(np.arange(len(array) + n_more), len(array) - 1), axis=0)
