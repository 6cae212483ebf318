"""Blocks of coalitions and rows -> moments of v(S), with draws and sums on a device.

The device works behind the host: the next block is drawn before the outputs of the last one are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from condshap.accelerator.models import DeviceModel
from condshap.numerics.device_draws import DeviceDraws

Name = TypeVar("Name")
Reduced = tuple[Any, Any, float | None, int]
"""Means and variances (C, R, O) as arrays, the error factor, the number of rows that were predicted."""

_MOST_ROWS = 2**22
_COPIES = 5  # a block's rows exist about this often: draws, noise, copies in other types


def rows_at_once(n_features: int, device: str) -> int:
    """Rows of a block, so that a block takes a quarter of the free memory at most."""
    if device == "cpu":
        return 2**17
    free, _ = torch.cuda.mem_get_info(device)
    return int(max(1, min(_MOST_ROWS, free // 4 // (8 * n_features * _COPIES + 64))))


def reduce_blocks(draw: Callable[[Name], DeviceDraws], model: DeviceModel, blocks: Iterable[Name]) -> Iterator[Reduced]:
    """Moments of every block, in order; the model's outputs of a block are waited for when the next one is drawn."""
    waiting: tuple[DeviceDraws, Any] | None = None
    for block in blocks:
        with torch.inference_mode():
            draws = draw(block)
            begun = model.begin(draws.rows.flatten(0, 2))
        if waiting is not None:
            yield _reduce(*waiting, model)
        waiting = draws, begun
    if waiting is not None:
        yield _reduce(*waiting, model)


def _reduce(draws: DeviceDraws, begun: Any, model: DeviceModel) -> Reduced:
    """Weighted means over samples and their variances, as those of `condshap.values`."""
    with torch.inference_mode():
        outputs = model.finish(begun)
        f = outputs.view(*draws.rows.shape[:3], -1)
        K = f.shape[2]
        weights = torch.full((K,), 1 / K, dtype=f.dtype, device=f.device) if draws.weights is None else draws.weights
        w = weights[:, None]
        means = add_up(f * w)
        spread = add_up(w * (f - means[:, :, None]) ** 2)
        concentration = float((weights**2).sum())
        variances = spread * (concentration / max(1 - concentration, 1e-12))
        if draws.error_factor is not None:
            variances *= draws.error_factor
        return means.cpu().numpy(), variances.cpu().numpy(), draws.error_factor, len(outputs)


def add_up(values: Tensor) -> Tensor:
    """Sum (C, R, K, O) over K by halves: the same additions whatever the other sizes, unlike the library's sums."""
    while (K := values.shape[2]) > 1:
        half = K // 2
        added = values[:, :, :half] + values[:, :, half : 2 * half]
        values = torch.cat([added, values[:, :, 2 * half :]], dim=2) if K % 2 else added
    return values[:, :, 0]
