"""Decoder outputs and noise -> values of features, feature-major: (M, K, P) for K samples of P pairs."""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from condshap.types import Floats
from condshap.vaeac.encoding import Bools, Layout, ScoreScale, StandardScale

_REACH, _CELLS = 5.0, 2048  # score tables go from -5 to 5


class Unscale(Protocol):
    """Scaled numbers (Mc, K, P) float32 -> values (Mc, K, P) float64, written into `out`."""

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        ...


class FromStandard:
    """mean + sd z, in float64."""

    def __init__(self, scale: StandardScale, device: torch.device) -> None:
        self.mean = torch.from_numpy(scale.mean).to(device)[:, None, None]
        self.sd = torch.from_numpy(scale.sd).to(device)[:, None, None]

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        out.copy_(scaled)
        out.mul_(self.sd).add_(self.mean)


class FromScores:
    """The value at a normal score, by linear interpolation in a table over equidistant scores."""

    def __init__(self, scale: ScoreScale, device: torch.device) -> None:
        table = scale.table(np.linspace(-_REACH, _REACH, _CELLS + 1))
        self.start = torch.from_numpy(np.ascontiguousarray(table[:, :-1])).to(device)
        self.step = torch.from_numpy(np.diff(table, axis=1)).to(device)

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        place = scaled.flatten(1).add(_REACH).mul_(_CELLS / (2 * _REACH)).clamp_(0, _CELLS)
        cell = place.to(torch.int64).clamp_(max=_CELLS - 1)
        place.sub_(cell)
        flat = out.view(len(place), -1)
        torch.gather(self.step, 1, cell, out=flat)
        flat.mul_(place).add_(torch.gather(self.start, 1, cell))


def make_unscale(scale: StandardScale | ScoreScale, device: torch.device) -> Unscale:
    """Inverse of a scale."""
    return FromStandard(scale, device) if isinstance(scale, StandardScale) else FromScores(scale, device)


class Heads:
    """Turns decoder outputs into draws.

    Parameters
    ----------
    support : (2, Mc) least and largest values, or None to let draws go anywhere
    whole : (Mc,) columns of whole numbers, used with a support only
    """

    def __init__(self, layout: Layout, support: Floats | None, whole: Bools, device: torch.device) -> None:
        self.layout = layout
        self.support = None if support is None else torch.from_numpy(support).to(device)[:, :, None, None]
        self.whole = [] if support is None else np.flatnonzero(whole).tolist()

    def draw(self, outputs: Tensor, noise: Tensor, floors: Tensor, unscale: Unscale, out: Tensor) -> None:
        """Write draws into `out`.

        Parameters
        ----------
        outputs : (D2, K, P) float32, changed in place
        noise : (M, K, P) standard normals, changed in place
        floors : (Mc, 1, 1)
        out : (M, K, P) float64
        """
        Mc = self.layout.n_continuous
        if Mc:
            scale = torch.maximum(softplus(outputs[Mc : 2 * Mc]), floors)
            unscale(scale.mul_(noise[:Mc]).add_(outputs[:Mc]), out[:Mc])
            self._keep_inside(out[:Mc])
        if self.layout.groups:
            uniform = noise[Mc:].mul_(sqrt(0.5)).erf_().add_(1).mul_(0.5)
            self._draw_levels(outputs[2 * Mc :], uniform, out[Mc:])

    def _keep_inside(self, values: Tensor) -> None:
        """Replace values outside the support by the nearest inside, and round whole-numbered columns."""
        if self.support is None:
            return
        torch.maximum(values, self.support[0], out=values)
        torch.minimum(values, self.support[1], out=values)
        for j in self.whole:
            values[j].round_()

    def _draw_levels(self, logits: Tensor, uniform: Tensor, out: Tensor) -> None:
        """Levels by inverting their cumulative probabilities at uniform numbers (M - Mc, K, P)."""
        Mc = self.layout.n_continuous
        for group in self.layout.groups:
            own = slice(group.first - Mc, group.first - Mc + group.n)
            shares = (
                logits[group.columns].view(group.n, group.n_levels, *logits.shape[1:]).softmax(dim=1).cumsum_(dim=1)
            )
            codes = (shares <= uniform[own].unsqueeze(1)).sum(dim=1)
            out[own] = codes.clamp_(max=group.n_levels - 1)
