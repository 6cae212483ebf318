"""Rows, coalitions -> conditional draws, by tiles of one fixed shape.

Float32 products give other bits for other shapes, so every product here has a shape that depends on K alone: pairs of a
coalition and a row are put into tiles of P, the last one padded, and each tile goes through its samples in a few
steps. Arrays are feature-major, (features, K, P): sums with what does not depend on z then run along the contiguous P.
Noise is a net per pair, chosen by hashing, whose first d coordinates make the latent and the others the features. The
members of an ensemble share a pair's net: each takes its own consecutive part of the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu_

from condshap.numerics.nets import normal_nets, pool_size, power_of_two_at_least
from condshap.seeding import derive_seed, generator, stream_words
from condshap.types import Floats, Indices, Masks, RowKeys, Rows
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.network.layers import SLOPE, Parameters, encode_masked
from condshap.vaeac.network.objective import importance_bound
from condshap.vaeac.sampling.heads import Heads, Margins

_STEP = 16  # samples of a pair at once, at least
_TILE = {"cpu": 8192, "cuda": 2**19}  # samples at once
_OUTPUTS = {
    "cpu": 2**23,
    "cuda": 2**26,
}  # outputs of the decoder at once: fewer samples where features have many levels
_MAX_PAIRS = {"cpu": 512, "cuda": 2**15}
STAGE = "vaeac"


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

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return self.parameters.flat.device


class Pairs:
    """All pairs of C coalitions and R rows, coalition by coalition, in tiles of `size`."""

    def __init__(self, rows: EncodedRows, masks: Masks, nets: Indices, size: int) -> None:
        device = rows.inputs.device
        order = list(rows.layout.order)
        self.rows, self.size, self.n = rows, size, len(masks) * len(rows)
        self.known = torch.from_numpy(np.ascontiguousarray(masks[:, order])).float().to(device)
        self.nets = torch.from_numpy(nets.reshape(-1)).to(device)

    def tiles(self) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Yield (pairs, their rows (P,), what is known (P, M), their nets (P,)); the last pair pads the last tile."""
        positions = torch.arange(self.size, device=self.nets.device)
        for start in range(0, self.n, self.size):
            at = (positions + start).clamp_(max=self.n - 1)
            row = at % len(self.rows)
            known = self.known.index_select(0, torch.div(at, len(self.rows), rounding_mode="floor"))
            yield slice(start, min(start + self.size, self.n)), row, known, self.nets.index_select(0, at)


def sample(
    ensemble: Ensemble,
    rows: EncodedRows,
    X: Rows,
    masks: Masks,
    n_samples: int,
    *,
    keys: RowKeys,
    seed: int,
    fill_missing: bool = False,
    blind: bool = False,
) -> Tensor:
    """Draw x_unknown | x_known (eq. 5 of the paper) for every coalition and row.

    Parameters
    ----------
    rows, X : the same rows, encoded and as given (R, M)
    masks : (C, M), True = known
    keys : (R,) names of the rows' random streams
    fill_missing : draw known features that are missing, too; otherwise they stay NaN
    blind : draw with the same noise, but as if nothing were known

    Returns
    -------
    (C, R, K, M), known columns unchanged
    """
    K, shape = n_samples, ensemble.parameters.shape
    shares = member_shares(ensemble.parameters.n_models, K)
    pool = noise_pool(K, shape.latent + shape.n_features, seed, ensemble.draws, ensemble.device)
    nets = (stream_words(seed, STAGE, masks, keys) % np.uint64(pool.shape[-1])).astype(np.int64)
    pairs = Pairs(rows, masks, nets, tile_size(max(shares), shape.n_outputs, ensemble.device))
    step = step_size(max(shares))
    work = Workspace(ensemble, rows, pairs.size, step)
    given = torch.from_numpy(X.copy()).to(ensemble.device)
    out = empty_draws((pairs.n, K, X.shape[1]), ensemble.device)
    with torch.inference_mode():
        for pair, row, known, net in pairs.tiles():
            work.condition(row, torch.zeros_like(known) if blind else known)
            keep = known.bool()
            if fill_missing:
                keep &= rows.missing.index_select(0, row) == 0
            original = given.index_select(0, row)[:, list(rows.layout.order)].T.unsqueeze(1)  # (M, 1, P)
            start = 0
            for e, share in enumerate(shares):
                for first in range(start, start + share, step):
                    points = slice(first, min(first + step, start + share))
                    values = work.draw(e, pool[:, points], net)
                    values = torch.where(keep.T.unsqueeze(1), original, values, out=values)
                    ordered = values if work.restore is None else values.index_select(0, work.restore)
                    store_draws(ordered[..., : pair.stop - pair.start], out[pair, points])
                start += share
    return out.view(len(masks), len(rows), K, -1)


class Views(NamedTuple):
    """Parts of buffers, all (features, K, P)."""

    noise: Tensor
    z: Tensor
    h: Tensor
    t: Tensor
    outputs: Tensor
    values: Tensor


class Workspace:
    """Buffers of one tile, and its passes through encoder and decoder."""

    def __init__(self, ensemble: Ensemble, rows: EncodedRows, n_pairs: int, n_steps: int) -> None:
        shape, device, layout = ensemble.parameters.shape, ensemble.device, rows.layout
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
        restore = torch.from_numpy(np.argsort(layout.order)).to(device)
        self.restore = None if layout.order == tuple(range(layout.n_features)) else restore

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

    def draw(self, e: int, pool: Tensor, net: Tensor) -> Tensor:
        """Draw with member e for points of the tile's nets: pool (D, K, n_nets), net (P,) -> values (M, K, P)."""
        views = self.decode(e, pool, net)
        d = self.ensemble.parameters.shape.latent
        self.ensemble.heads.draw(views.outputs, views.noise[d:], self.ensemble.margins[e], views.values)
        return views.values

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


def log_likelihood(
    ensemble: Ensemble, rows: EncodedRows, log_slopes: Floats, masks: Masks, n_draws: int, *, keys: RowKeys, seed: int
) -> Floats:
    """Importance-weighted log p(x_unknown | x_known) of the mixture of all members, in units of the rows, shape (C, R).

    Missing features do not count. `log_slopes` (n_scales, R, Mc) turn densities on the members' scales into those of values.
    """
    E, shape, Mc = ensemble.parameters.n_models, ensemble.parameters.shape, rows.layout.n_continuous
    pool = noise_pool(n_draws, shape.latent, seed, "nets", ensemble.device)
    nets = (stream_words(seed, f"{STAGE} likelihood", masks, keys) % np.uint64(pool.shape[-1])).astype(np.int64)
    most = max(1, 2 * _OUTPUTS[ensemble.device.type] // (E * n_draws * shape.n_outputs))
    pairs = Pairs(rows, masks, nets, min(most, tile_size(n_draws, shape.n_outputs, ensemble.device) // 4))
    slopes = torch.from_numpy(log_slopes).to(ensemble.device)
    tensors = ensemble.parameters.windows(ensemble.parameters.flat)
    out = torch.empty(pairs.n, dtype=torch.float64)
    with torch.inference_mode():
        for pair, row, known, net in pairs.tiles():
            batch = rows.batch(
                row.expand(E, -1), ensemble.scale_of, (1 - known).expand(E, -1, -1),
                has_flags=shape.has_flags,
            )  # fmt: skip
            noise = pool[:, :n_draws].index_select(2, net).permute(1, 2, 0).expand(E, -1, -1, -1)  # (E, V, P, d)
            floors = ensemble.floors.unsqueeze(1)
            found, _ = importance_bound(tensors, rows.layout, batch, noise, floors, latent_floor=ensemble.latent_floor)
            counted = batch.targets.counted[0, :, :Mc] > 0
            added = torch.where(counted, slopes.index_select(1, row), 0.0).sum(-1)  # (n_scales, P)
            mixed = (found.double() + added[ensemble.scale_of]).logsumexp(0) - log(E)
            mixed = torch.where(batch.targets.counted[0].any(-1), mixed, 0.0)  # nothing unknown: exactly 0
            out[pair] = mixed[: pair.stop - pair.start].to(out.device)
    return out.view(len(masks), len(rows)).numpy()


def member_shares(n_members: int, n_samples: int) -> list[int]:
    """How many of K samples each member draws.

    >>> member_shares(3, 8)
    [3, 3, 2]
    """
    return [n_samples // n_members + (e < n_samples % n_members) for e in range(n_members)]


def step_size(n_samples: int) -> int:
    """Samples of a pair at once. Many samples go in longer steps, so that a tile has fewer pairs to be filled with.

    >>> [step_size(n) for n in (3, 42, 171, 1024)]
    [3, 16, 64, 256]
    """
    return min(n_samples, max(_STEP, power_of_two_at_least(n_samples) // 4))


def tile_size(n_samples: int, n_outputs: int, device: torch.device) -> int:
    """Pairs in a tile, a function of the samples per pair and of the network's shape only."""
    samples = min(_TILE[device.type], _OUTPUTS[device.type] // n_outputs)
    pairs = min(_MAX_PAIRS[device.type], samples // step_size(n_samples))
    return max(16, pairs // 16 * 16)


@lru_cache(maxsize=8)
def noise_pool(n_samples: int, n_dims: int, seed: int, draws: str, device: torch.device) -> Tensor:
    """Pool of standard normals (n_dims, n_points >= K, n_nets), float32: scrambled nets, or independent numbers."""
    n_points = power_of_two_at_least(n_samples)
    if draws == "nets":
        pool = normal_nets(n_points, n_dims, derive_seed(seed, STAGE))
    else:
        pool = generator(seed, f"{STAGE} plain").standard_normal((pool_size(n_points, n_dims), n_points, n_dims))
    return torch.from_numpy(np.ascontiguousarray(pool.transpose(2, 1, 0), dtype=np.float32)).to(device)


def empty_draws(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Float64 tensor for results; NumPy asks the system for huge pages, which makes filling it much cheaper."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty(shape))
    return torch.empty(shape, dtype=torch.float64, device=device)


def store_draws(values: Tensor, out: Tensor) -> None:
    """Write values (M, K, P) into (P, K, M); NumPy transposes matrices twice as fast as torch."""
    if values.device.type != "cpu":
        out.copy_(values.permute(2, 1, 0))
    else:
        for target, source in zip(out.numpy().swapaxes(0, 1), values.numpy().swapaxes(0, 1), strict=True):
            target[:] = source.T
