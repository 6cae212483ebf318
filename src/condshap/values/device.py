"""Blocks of coalitions and rows -> moments of v(S), with draws and sums on a device.

The device works behind the host: the next block is drawn before the outputs of the last one are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from condshap.models.on_device import DeviceModel
from condshap.numerics.blocks import block_starts, variance_scale
from condshap.numerics.device_draws import DeviceDraws
from condshap.runtime.memory import own_share, rows_that_fit
from condshap.runtime.threads import single_threaded_blas
from condshap.types import Indices

if TYPE_CHECKING:
    from condshap.values.engine import Request

Reduced = tuple[Any, Any, float | None, int, Any]
"""Means and variances (C, R, O) as arrays, the error factor, the number of rows that were predicted, and how far means of
members are from that of all, (E, C, R, O), or None."""

_MOST_ROWS = 2**22


def rows_at_once(n_features: int, device: str) -> int:
    """Rows of a block, so that a block takes a quarter of this process's share of the free memory at most."""
    if device == "cpu":
        return 2**17
    free, _ = torch.cuda.mem_get_info(device)
    return min(_MOST_ROWS, rows_that_fit(own_share(free) // 4, n_features))


def draw_on_device(request: Request, device: str) -> Iterator[DeviceDraws]:
    """Draws of a request: all at once, or for each coalition those of its own rows."""
    with torch.inference_mode(), single_threaded_blas():
        drawn: DeviceDraws = request.approach.sample_on(
            request.rows, request.masks, request.n_samples, device=device, **request.where
        )
    if request.own is None:
        yield drawn
    else:
        for c, own in enumerate(request.own):
            yield replace(drawn, rows=drawn.rows[c : c + 1, own])


def reduce_blocks(blocks: Iterable[DeviceDraws], model: DeviceModel) -> Iterator[Reduced]:
    """Moments of every block of draws, in order; outputs of a block are waited for when the next one is drawn."""
    waiting: tuple[DeviceDraws, Any] | None = None
    for draws in blocks:
        with torch.inference_mode():
            begun = model.begin(draws.rows.flatten(0, 2))
        if waiting is not None:
            yield _reduce(*waiting, model)
        waiting = draws, begun
    if waiting is not None:
        yield _reduce(*waiting, model)


def _reduce(draws: DeviceDraws, begun: Any, model: DeviceModel) -> Reduced:
    """Weighted means over samples and their variances, as those of `condshap.values.table`."""
    with torch.inference_mode():
        outputs = model.finish(begun)
        f = outputs.view(*draws.rows.shape[:3], -1)
        K = f.shape[2]
        weights = torch.full((K,), 1 / K, dtype=f.dtype, device=f.device) if draws.weights is None else draws.weights
        weighted = f * weights[:, None]
        means = add_up(weighted)
        if draws.error_factor is None:
            variances = _block_variances(weighted, means, weights)
        else:
            spread = add_up(weights[:, None] * (f - means[:, :, None]) ** 2)
            variances = spread * _scale(weights) * draws.error_factor
        apart = None if draws.members is None else _member_deviations(weighted, weights, draws.members)
        return means.cpu().numpy(), variances.cpu().numpy(), draws.error_factor, len(outputs), apart


def _member_deviations(weighted: Tensor, weights: Tensor, members: Indices) -> Any:
    """How far members' means are from that of all (E, C, R, O), as `condshap.precision.members.member_deviations`."""
    means, total = [], 0.0
    for e in np.unique(members[members >= 0]):
        own = torch.as_tensor(np.flatnonzero(members == e), device=weighted.device)
        size = float(weights[own].sum())
        means.append(add_up(weighted[:, :, own]) / size)
        total += size
    stacked = torch.stack(means)
    return ((stacked - stacked.mean(dim=0)) * total).cpu().numpy()


def _block_variances(weighted: Tensor, means: Tensor, weights: Tensor) -> Tensor:
    """Variances (C, R, O) from weighted outputs (C, R, K, O), as `condshap.numerics.blocks.block_variances`."""
    K = len(weights)
    starts = block_starts(K)
    size = int(starts[1]) if len(starts) > 1 else 1
    short = len(starts) * size - K
    padded = torch.nn.functional.pad(weighted, (0, 0, 0, short))  # zeros at the end of the last block
    C, R, _, O = padded.shape
    totals = add_up(padded.reshape(C, R * len(starts), size, O)).view(C, R, len(starts), O)
    shares = add_up(torch.nn.functional.pad(weights, (0, short)).view(1, len(starts), size, 1))[0]  # (B, 1)
    deviations = totals / torch.where(shares > 0, shares, 1.0) - means[:, :, None]
    return add_up(shares * deviations**2) * _scale(shares)


def _scale(weights: Tensor) -> float:
    return float(variance_scale(np.array(float((weights**2).sum()))))


def add_up(values: Tensor) -> Tensor:
    """Sum (C, R, K, O) over K by halves: the same additions whatever the other sizes, unlike the library's sums."""
    while (K := values.shape[2]) > 1:
        half = K // 2
        added = values[:, :, :half] + values[:, :, half : 2 * half]
        values = torch.cat([added, values[:, :, 2 * half :]], dim=2) if K % 2 else added
    return values[:, :, 0]
