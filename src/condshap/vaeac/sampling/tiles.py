"""Rows, coalitions and samples -> tiles of one fixed shape, and the random numbers of each pair.

Float32 products give other bits for other shapes, so every product of the networks has a shape that depends on K alone:
pairs of a coalition and a row are put into tiles of P, the last one padded, and each tile goes through its samples in a few
steps. Noise is a net per pair, chosen by hashing. The members of an ensemble share a pair's net: each takes its own
consecutive part of the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from condshap.numerics.sobol import normal_nets, pool_size, power_of_two_at_least
from condshap.seeding import derive_seed, generator, stream_words
from condshap.types import Indices, Masks, RowKeys, Rows
from condshap.vaeac.columns.encoded_rows import EncodedRows

_STEP = 16  # samples of a pair at once, at least
_TILE = {"cpu": 8192, "cuda": 2**19}  # samples at once
_OUTPUTS = {"cpu": 2**23, "cuda": 2**26}  # of the decoder at once: fewer samples where features have many levels
_MAX_PAIRS = {"cpu": 512, "cuda": 2**15}
SINGLES = 4  # times as many pairs in a tile where each has a single sample
STAGE = "vaeac"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is asked of fitted members: K samples for all pairs of C coalitions and R rows.

    Attributes
    ----------
    X : (R, M) encoded rows: numbers as they are, levels as codes
    masks : (C, M), True = known
    n_samples : K
    keys : (R,) names of the rows' random streams, by default a hash of their content
    fill_missing : treat known features that are missing as unknown; otherwise they stay NaN
    blind : answer with the same noise, but as if nothing were known
    points : (R,) the point of its net that each row takes, of a net of `n_points`, with a single sample; None for all points
    """

    X: Rows
    masks: Masks
    n_samples: int
    keys: RowKeys | None = None
    seed: int = 0
    fill_missing: bool = False
    blind: bool = False
    points: Indices | None = None
    n_points: int = 1

    def only(self, some: Indices) -> Asked:
        """Return what is asked of the rows at some positions."""
        keys = None if self.keys is None else self.keys[some]
        points = None if self.points is None else self.points[some]
        return replace(self, X=self.X[some], keys=keys, points=points)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What was asked, checked, with the same rows as inputs of the networks; attributes as in `Asked`."""

    rows: EncodedRows
    X: Rows
    masks: Masks
    n_samples: int
    keys: RowKeys
    seed: int
    fill_missing: bool = False
    blind: bool = False
    points: Indices | None = None
    n_points: int = 1

    def noise(self, stage: str, n_dims: int, draws: str, device: torch.device) -> tuple[Tensor, Indices]:
        """Pool of normals (n_dims, points, nets), and which of its nets each pair takes, (C, R).

        Rows that take single points have a pool of nets of one point.
        """
        if self.points is None:
            pool = noise_pool(self.n_samples, n_dims, self.seed, draws, device)
            return pool, choose_nets(self.seed, stage, self.masks, self.keys, pool.shape[-1])
        pool = noise_pool(self.n_points, n_dims, self.seed, draws, device)
        nets = choose_nets(self.seed, stage, self.masks, self.keys, pool.shape[-1])
        return pool.view(n_dims, 1, -1), self.points * pool.shape[-1] + nets

    def kept(self, row: Tensor, known: Tensor) -> Tensor:
        """Entries (P, M) of a tile that stay as they were given: rows (P,), known (P, M)."""
        return known.bool() & (self.rows.missing.index_select(0, row) == 0) if self.fill_missing else known.bool()

    def given(self) -> Tensor:
        """Rows as given, (R, M), in the internal order of features, where the networks are."""
        return torch.from_numpy(self.X.copy()).to(self.rows.inputs.device)[:, list(self.rows.layout.order)]


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


def choose_nets(seed: int, stage: str, masks: Masks, keys: RowKeys, n_nets: int) -> Indices:
    """Net of each pair of C coalitions and R rows, (C, R), by hashing."""
    return (stream_words(seed, stage, masks, keys) % np.uint64(n_nets)).astype(np.int64)


def member_shares(n_members: int, n_samples: int) -> list[int]:
    """How many of K samples each member draws.

    >>> member_shares(3, 8)
    [3, 3, 2]
    """
    return [n_samples // n_members + (e < n_samples % n_members) for e in range(n_members)]


def member_steps(shares: Sequence[int], step: int) -> Iterator[tuple[int, slice]]:
    """Yield each member with its consecutive part of the samples, at most `step` at a time.

    >>> list(member_steps([3, 2], 2))
    [(0, slice(0, 2, None)), (0, slice(2, 3, None)), (1, slice(3, 5, None))]
    """
    start = 0
    for e, share in enumerate(shares):
        for first in range(start, start + share, step):
            yield e, slice(first, min(first + step, start + share))
        start += share


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


def density_tile_size(n_members: int, n_draws: int, n_outputs: int, device: torch.device) -> int:
    """Pairs in a tile where all members and draws of a pair go through at once."""
    most = max(1, 2 * _OUTPUTS[device.type] // (n_members * n_draws * n_outputs))
    return min(most, tile_size(n_draws, n_outputs, device) // 4)


def noise_pool(n_samples: int, n_dims: int, seed: int, draws: str, device: torch.device) -> Tensor:
    """Pool of standard normals (n_dims, n_points >= K, n_nets), float32: scrambled nets, or independent numbers."""
    return _pool_of(power_of_two_at_least(n_samples), n_dims, seed, draws, device)


@lru_cache(maxsize=8)  # one for each power of two, whatever shares of the samples members have
def _pool_of(n_points: int, n_dims: int, seed: int, draws: str, device: torch.device) -> Tensor:
    if draws == "qmc":
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
