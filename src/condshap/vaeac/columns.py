"""Training rows -> what is known about their columns: layout, scales, resolution and support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from condshap.exceptions import OptionError
from condshap.types import Floats, Rows
from condshap.vaeac.batches import EncodedRows
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.encoding import Bools, Layout, Scale, check_rows, learn_scale, scale_floors


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What was learned about M columns, of which Mc are continuous.

    Attributes
    ----------
    scales : by name, those that members use
    floors : by scale name, (Mc,) least standard deviations of Gaussian heads
    support : (2, Mc) least and largest values
    whole : (Mc,) columns that hold whole numbers only
    """

    layout: Layout
    scales: dict[str, Scale]
    floors: dict[str, Floats]
    support: Floats
    whole: Bools

    @classmethod
    def learn(cls, X: Rows, n_levels: npt.ArrayLike, config: VAEACConfig, support: Floats | None) -> Columns:
        """Learn from checked rows (N, M); `support` (2, M) is the training range by default."""
        layout = Layout.of(n_levels)
        numbers = _numbers(X, layout)
        scales = {
            name: learn_scale(name, numbers, cut=config.respect_support) for name in sorted(set(config.scales or ()))
        }
        floors = {
            name: scale_floors(scale.encode(numbers), config.scale_floor, by_resolution=config.respect_support)
            for name, scale in scales.items()
        }
        whole = np.all(np.isnan(numbers) | (numbers == np.rint(numbers)), axis=0)
        bounds = np.stack([np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0)])
        if support is not None:
            bounds = _numbers(_check_support(support, layout.n_features), layout)
        bounds = np.stack(
            [np.where(whole, np.ceil(bounds[0]), bounds[0]), np.where(whole, np.floor(bounds[1]), bounds[1])]
        )
        return cls(layout, scales, floors, bounds, whole)

    def check(self, X: Rows) -> Rows:
        """Refuse rows (n, M) that do not fit."""
        return check_rows(X, self.layout.n_levels, training=False)

    def encode(self, X: Rows, device: torch.device) -> EncodedRows:
        """Encode rows (n, M) on every scale."""
        return EncodedRows.of(self.layout, list(self.scales.values()), X, device)

    def scale_of(self, members: Sequence[str], device: torch.device) -> Tensor:
        """Position of each member's scale, (E,)."""
        names = list(self.scales)
        return torch.tensor([names.index(member) for member in members], device=device)

    def floors_of(self, members: Sequence[str], device: torch.device) -> Tensor:
        """Floors of each member, (E, Mc) float32."""
        return torch.from_numpy(np.stack([self.floors[member] for member in members])).float().to(device)

    def log_slopes(self, X: Rows) -> Floats:
        """Log-slopes of all scales at rows (n, M), (n_scales, n, Mc)."""
        return np.stack([scale.log_slopes(_numbers(X, self.layout)) for scale in self.scales.values()])


def _numbers(X: Rows, layout: Layout) -> Rows:
    return X[:, list(layout.order)[: layout.n_continuous]]


def _check_support(support: Floats, n_features: int) -> Floats:
    bounds = np.asarray(support, dtype=np.float64)
    if bounds.shape != (2, n_features) or not (bounds[0] <= bounds[1]).all():
        raise OptionError(f"support must have shape (2, {n_features}), least values first, got shape {bounds.shape}.")
    return bounds
