"""Normal model or copula, rows, coalitions -> conditional draws as tensors on a device.

The same nets and formulas as on the CPU. Sums run element by element in a fixed order, so that numbers do not depend on how
many rows and coalitions are drawn at once; a library's matrix product would choose its order by the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from condshap.numerics.gaussian import NormalModel
from condshap.numerics.margins import EmpiricalMargin, KernelMargin
from condshap.numerics.sobol import normal_nets, power_of_two_at_least
from condshap.seeding import Streams
from condshap.types import Floats, Indices, Masks, Rows


@dataclass(frozen=True, slots=True)
class DeviceDraws:
    """Sampled rows on a device, for the full cross product of coalitions and explained rows.

    Attributes
    ----------
    rows : (C, R, K, M) float64, known columns unchanged
    weights : (K,) float64 that sum to 1, or None for equal ones
    error_factor : as in `condshap.approaches.base.DrawnRows`, but a number or None
    members : (K,) as there
    """

    rows: Tensor
    weights: Tensor | None = None
    error_factor: float | None = None
    members: Indices | None = None


def draw_normal(model: NormalModel, X: Rows, masks: Masks, n_samples: int, streams: Streams, *, device: str) -> Tensor:
    """Draw unknown features given known ones, (C, R, K, M), as `condshap.numerics.gaussian.draw_conditional` does."""
    pool = _pool(power_of_two_at_least(n_samples), X.shape[1], streams.common_seed, device)
    nets = (streams.words(masks) % np.uint64(len(pool))).astype(np.int64)
    centres, transforms = _conditionals(model, X, masks)
    n_unknown = int((~masks).sum(axis=1).max())
    normals = pool[:, :n_samples, :n_unknown][torch.as_tensor(nets, device=device)]  # (C, R, K, U)
    maps = torch.as_tensor(transforms, device=device)[:, None, None]  # (C, 1, 1, M, M)
    out = torch.as_tensor(centres, device=device)[:, :, None].repeat(1, 1, n_samples, 1)
    for u in range(n_unknown):
        out.addcmul_(normals[..., u : u + 1], maps[..., u, :])
    return out


def _conditionals(model: NormalModel, X: Rows, masks: Masks) -> tuple[Floats, Floats]:
    """Conditional means (C, R, M), known columns as given, and maps (C, M, M) from normals to deviations from them."""
    C, M = len(masks), X.shape[1]
    centres, transforms = np.tile(X, (C, 1, 1)), np.zeros((C, M, M))
    Z = (X - model.mean) / np.where(model.scale > 0, model.scale, 1.0)
    for c, given in enumerate(model.condition(masks)):
        scale = model.scale[given.unknown]
        transforms[c, : len(given.unknown), given.unknown] = given.factor * scale[:, None]
        centres[c][:, given.unknown] = model.mean[given.unknown] + scale * given.predict(Z)
    return centres, transforms


@lru_cache(maxsize=8)
def _pool(n_points: int, n_dims: int, seed: int, device: str) -> Tensor:
    return torch.from_numpy(normal_nets(n_points, n_dims, seed).copy()).to(device)


def from_scores(margin: EmpiricalMargin | KernelMargin, scores: Tensor) -> Tensor:
    """Values of a column at normal scores of any shape, as the margin's own `from_scores`."""
    if isinstance(margin, EmpiricalMargin):
        ordered = torch.as_tensor(margin.ordered, device=scores.device)
        position = torch.special.ndtr(scores) * (len(ordered) - 1)
        lower = position.long().clamp_(max=len(ordered) - 2)
        quantiles: Tensor = ordered[lower] + (position - lower) * ordered.diff()[lower]
        return quantiles
    at, values = (torch.as_tensor(part, device=scores.device) for part in (margin.scores, margin.values))
    upper = torch.searchsorted(at, scores.contiguous()).clamp_(1, len(at) - 1)
    slopes = values.diff() / at.diff()
    inside = scores.clamp(at[0], at[-1])
    found: Tensor = values[upper - 1] + (inside - at[upper - 1]) * slopes[upper - 1]
    return found
