"""A query -> passes of all its tiles through the trained members, and what a reader makes of their outputs.

Arrays are feature-major, (features, K, P): sums with what does not depend on z then run along the contiguous P. Of a pair's
noise the first d coordinates make the latent; the others are left for the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.network.layers import SLOPE, Parameters, encode_masked
from condshap.vaeac.sampling.heads import Heads, Margins, make_heads, make_margins
from condshap.vaeac.sampling.tiles import (
    SINGLES,
    STAGE,
    Pairs,
    Query,
    empty_draws,
    member_shares,
    member_steps,
    step_size,
    store_draws,
    tile_size,
)


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """Trained members, and how their inputs and outputs are read.

    Attributes
    ----------
    scale_of : (E,) scale of each member
    floors : (E, Mc) least standard deviations of Gaussian heads
    margins : (E,) how each member's Gaussian heads become values
    """

    parameters: Parameters
    scale_of: Tensor
    floors: Tensor
    margins: tuple[Margins, ...]
    heads: Heads
    latent_floor: float
    draws: str

    @classmethod
    def of(cls, parameters: Parameters, scales: Sequence[str], columns: Columns, config: VAEACConfig) -> Ensemble:
        """Members with these parameters, each on the scale that `scales` (E,) names."""
        device, respect = parameters.flat.device, config.respect_support
        return cls(
            parameters=parameters,
            scale_of=columns.scale_of(scales, device),
            floors=columns.floors_of(scales, device),
            margins=tuple(make_margins(columns, name, truncate=respect, device=device) for name in scales),
            heads=make_heads(columns, respect=respect, device=device),
            latent_floor=config.latent_floor,
            draws=config.draws,
        )

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return self.parameters.flat.device


class Views(NamedTuple):
    """Parts of buffers, all (features, K, P)."""

    noise: Tensor
    z: Tensor
    h: Tensor
    t: Tensor
    outputs: Tensor
    values: Tensor


class Reader(Protocol):
    """Makes numbers of decoder outputs, a tile at a time."""

    @property
    def width(self) -> int:
        """W, how many numbers there are for every sample."""
        ...

    def open_tile(self, row: Tensor, keep: Tensor) -> None:
        """Prepare for pairs of rows (P,), of which entries `keep` (P, M) stay as they were given."""
        ...

    def read(self, e: int, views: Views) -> Tensor:
        """Numbers (W, K, P) of member e's outputs, float64."""
        ...


def read_decoder(ensemble: Ensemble, query: Query, reader: Reader) -> Tensor:
    """Pass all samples of a query through the decoder: what `reader` makes of them, (C, R, K, W)."""
    rows, K, shape = query.rows, query.n_samples, ensemble.parameters.shape
    shares = member_shares(ensemble.parameters.n_models, K)
    pool, nets = query.noise(STAGE, shape.latent + shape.n_features, ensemble.draws, ensemble.device)
    size, step = tile_size(max(shares), shape.n_outputs, ensemble.device), step_size(max(shares))
    size = size if query.points is None else SINGLES * size  # of pairs with one sample each there are many
    pairs = Pairs(rows, query.masks, nets, size)
    work = Workspace(ensemble, rows, size, step)
    out = empty_draws((pairs.n, K, reader.width), ensemble.device)
    with torch.inference_mode():
        for pair, row, known, net in pairs.tiles():
            if not query.blind:
                work.condition(row, known)
            elif pair.start == 0:  # nothing is known of any pair
                work.condition(row, torch.zeros_like(known))
            reader.open_tile(row, query.kept(row, known))
            for e, points in member_steps(shares, step):
                found = reader.read(e, work.decode(e, pool[:, points], net))
                store_draws(found[..., : pair.stop - pair.start], out[pair, points])
    return out.view(len(query.masks), len(rows), K, -1)


class Workspace:
    """Buffers of one tile, and its passes through encoder and decoder."""

    def __init__(self, ensemble: Ensemble, rows: EncodedRows, n_pairs: int, n_steps: int) -> None:
        shape, device = ensemble.parameters.shape, ensemble.device
        self.ensemble, self.rows, self.n_pairs = ensemble, rows, n_pairs
        self.tensors = ensemble.parameters.windows(ensemble.parameters.flat)
        names = ["decoder_in", *(f"decoder_{k}" for k in range(shape.depth + 1)), "output"]
        self.weights = [
            [self.tensors[f"{n}.weight"][e].T.contiguous() for n in names] for e in range(len(ensemble.scale_of))
        ]
        size = n_steps * n_pairs

        def buffer(width: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.empty(width * size, dtype=dtype, device=device)

        self.noise, self.z = buffer(shape.latent + shape.n_features), buffer(shape.latent)
        self.h, self.t, self.outputs = buffer(shape.width), buffer(shape.width), buffer(shape.n_outputs)
        self.values = buffer(shape.n_features, torch.float64)
        self.views: dict[int, Views] = {}

    def condition(self, row: Tensor, known: Tensor) -> None:
        """Run the masked encoder of all members on the tile's pairs: rows (P,), known (P, M)."""
        rows, ensemble = self.rows, self.ensemble
        gaps = rows.missing.index_select(0, row)
        flags, masks = gaps * known, 1 - known
        has_flags = ensemble.parameters.shape.has_flags
        if not has_flags:
            masks = torch.maximum(masks, gaps)
        x = rows.inputs.index_select(1, row).index_select(0, ensemble.scale_of)  # (E, P, D1)
        seen = known * (1 - gaps)
        extra = torch.cat([masks, flags], dim=1) if has_flags else masks
        advice = [] if rows.advise is None else [rows.advise(x, ensemble.scale_of, seen.expand(len(x), -1, -1))]
        inputs = torch.cat([x * rows.spread(seen), extra.expand(len(x), -1, -1), *advice], dim=2)
        latent, skips = encode_masked(self.tensors, inputs.mT, ensemble.latent_floor)
        self.mean, self.scale = (part.unsqueeze(2) for part in latent)  # (E, d, 1, P)
        first = self.tensors["decoder_in.bias"].mT
        self.added = [part.unsqueeze(2) for part in (first, *skips.memories, skips.output)]  # (E, W, 1, 1 or P)

    def decode(self, e: int, pool: Tensor, net: Tensor) -> Views:
        """Outputs of member e's decoder at latents drawn from the nets, and the noise that is left for the features."""
        d, views = self.ensemble.parameters.shape.latent, self._views(pool.shape[1])
        torch.gather(pool, 2, net.expand(*pool.shape[:2], -1), out=views.noise)
        torch.mul(views.noise[:d], self.scale[e], out=views.z).add_(self.mean[e])
        weights, h, t, outputs = self.weights[e], views.h, views.t, views.outputs
        self._affine(e, 0, views.z, h)
        leaky_relu_(h, SLOPE)
        for k in range(1, len(weights) - 1):
            self._affine(e, k, h, t)
            h.add_(leaky_relu_(t, SLOPE))
        self._affine(e, len(weights) - 1, h, outputs)
        return views

    def _affine(self, e: int, layer: int, h: Tensor, out: Tensor) -> None:
        torch.mm(self.weights[e][layer], h.flatten(1), out=out.flatten(1))
        out.add_(self.added[layer][e])

    def _views(self, K: int) -> Views:
        """Buffers in the shape for K samples of every pair."""
        if K not in self.views:
            shape, P = self.ensemble.parameters.shape, self.n_pairs
            widths = (
                shape.latent + shape.n_features,
                shape.latent,
                *(shape.width,) * 2,
                shape.n_outputs,
                shape.n_features,
            )
            buffers = (self.noise, self.z, self.h, self.t, self.outputs, self.values)
            self.views[K] = Views(
                *(some[: width * K * P].view(width, K, P) for some, width in zip(buffers, widths, strict=True))
            )
        return self.views[K]
