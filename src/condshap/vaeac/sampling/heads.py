"""Decoder outputs and noise -> values of features, feature-major: (M, K, P) for K samples of P pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from condshap.types import Floats, Indices
from condshap.vaeac.columns.encoding import Bools, Layout, Scale, ScoreScale, StandardScale, SupportScale
from condshap.vaeac.columns.learned import Columns

_REACH, _CELLS = 5.0, 2048  # score tables go from -5 to 5
_LARGEST = np.finfo(np.float64).max
_LEVEL_NUMBERS = 2**24  # probabilities of levels at once


class Unscale(Protocol):
    """Scaled numbers (Mc, K, P) float32 -> values (Mc, K, P) float64, written into `out`."""

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        ...

    def some(self, columns: Indices) -> Unscale:
        """Return the same for some of the Mc columns."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FromStandard:
    """mean + sd z, in float64; both (Mc, 1, 1)."""

    mean: Tensor
    sd: Tensor

    @classmethod
    def of(cls, scale: StandardScale, device: torch.device) -> FromStandard:
        """Return the inverse of a scale."""
        mean, sd = (torch.from_numpy(part).to(device)[:, None, None] for part in (scale.mean, scale.sd))
        return cls(mean, sd)

    def some(self, columns: Indices) -> FromStandard:
        """Return the same for some of the columns."""
        return FromStandard(self.mean[columns], self.sd[columns])

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        out.copy_(scaled)
        out.mul_(self.sd).add_(self.mean)


@dataclass(frozen=True, slots=True, eq=False)
class FromSupport:
    """Back from z-scores of logarithms and logits, in float64; a pair of `poles` for each of the Mc columns."""

    from_scores: FromStandard
    poles: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, scale: SupportScale, device: torch.device) -> FromSupport:
        """Return the inverse of a scale."""
        poles = tuple((float(low), float(high)) for low, high in scale.poles.T)
        return cls(FromStandard.of(scale.scores, device), poles)

    def some(self, columns: Indices) -> FromSupport:
        """Return the same for some of the columns."""
        return FromSupport(self.from_scores.some(columns), tuple(self.poles[j] for j in columns))

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        self.from_scores(scaled, out)
        for y, (low, high) in zip(out, self.poles, strict=True):
            if isfinite(low) and isfinite(high):  # the mean of both overflows nowhere, and keeps all digits near 0
                y.copy_(torch.sigmoid(y).mul_(high).add_(torch.sigmoid(-y), alpha=low))
            elif isfinite(low):
                y.exp_().add_(low)
            elif isfinite(high):
                y.neg_().exp_().neg_().add_(high)


@dataclass(frozen=True, slots=True, eq=False)
class FromScores:
    """The value at a normal score, by linear interpolation in a table over equidistant scores; both (Mc, cells)."""

    start: Tensor
    step: Tensor

    @classmethod
    def of(cls, scale: ScoreScale, device: torch.device) -> FromScores:
        """Return the inverse of a scale."""
        table = scale.table(np.linspace(-_REACH, _REACH, _CELLS + 1))
        start = torch.from_numpy(np.ascontiguousarray(table[:, :-1])).to(device)
        return cls(start, torch.from_numpy(np.diff(table, axis=1)).to(device))

    def some(self, columns: Indices) -> FromScores:
        """Return the same for some of the columns."""
        return FromScores(self.start[columns], self.step[columns])

    def __call__(self, scaled: Tensor, out: Tensor) -> None:
        """Write the values into `out`."""
        place = scaled.flatten(1).add(_REACH).mul_(_CELLS / (2 * _REACH)).clamp_(0, _CELLS)
        cell = place.to(torch.int64).clamp_(max=_CELLS - 1)
        place.sub_(cell)
        flat = out.view(len(place), -1)
        torch.gather(self.step, 1, cell, out=flat)
        flat.mul_(place).add_(torch.gather(self.start, 1, cell))


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """How one member's Gaussian heads become values.

    Attributes
    ----------
    floors : (Mc, 1, 1) least standard deviations
    unscale : inverse of the member's scale
    limits : (2, Mc, 1, 1) float32 ends of the support on the member's scale, or None: heads are not truncated
    """

    floors: Tensor
    unscale: Unscale
    limits: Tensor | None

    def some(self, columns: Indices) -> Margins:
        """Return those of some of the Mc columns."""
        limits = None if self.limits is None else self.limits[:, columns]
        return Margins(self.floors[columns], self.unscale.some(columns), limits)


def make_margins(columns: Columns, name: str, *, truncate: bool, device: torch.device) -> Margins:
    """Margins of a member on the scale `name`.

    Normal scores need no truncation: their table stays inside the training range.
    """
    scale, limits = columns.scales[name], None
    if not isinstance(scale, ScoreScale) and truncate:
        placed = scale.place(columns.truncation())
        if np.isfinite(placed).any():
            limits = torch.from_numpy(placed).float().to(device)[:, :, None, None]
    return Margins(columns.floors_of([name], device)[0][:, None, None], _make_unscale(scale, device), limits)


def _make_unscale(scale: Scale, device: torch.device) -> Unscale:
    if isinstance(scale, SupportScale):
        return FromSupport.of(scale, device)
    return FromScores.of(scale, device) if isinstance(scale, ScoreScale) else FromStandard.of(scale, device)


class Heads:
    """Turns decoder outputs into draws.

    Parameters
    ----------
    ends : (2, Mc) least and largest values, or None to let draws go anywhere
    whole : (Mc,) columns of whole numbers, used with ends only
    """

    def __init__(self, layout: Layout, ends: Floats | None, whole: Bools, device: torch.device) -> None:
        self.layout = layout
        self.ends, self.whole = None, [] if ends is None else np.flatnonzero(whole).tolist()
        if ends is not None:  # no draw is infinite, whatever the support
            self.ends = torch.from_numpy(np.clip(ends, -_LARGEST, _LARGEST)).to(device)[:, :, None, None]

    def draw(self, outputs: Tensor, noise: Tensor, margins: Margins, out: Tensor) -> None:
        """Write draws into `out`.

        Parameters
        ----------
        outputs : (D2, K, P) float32, changed in place
        noise : (M, K, P) standard normals, changed in place
        out : (M, K, P) float64
        """
        Mc = self.layout.n_continuous
        if Mc:
            scaled = draw_gaussian(outputs[:Mc], outputs[Mc : 2 * Mc], noise[:Mc], margins.floors, margins.limits)
            margins.unscale(scaled, out[:Mc])
            self.keep_inside(out[:Mc])
        if self.layout.groups:
            uniform = noise[Mc:].mul_(sqrt(0.5)).erf_().add_(1).mul_(0.5)
            self._draw_levels(outputs[2 * Mc :], uniform, out[Mc:])

    def keep_inside(self, values: Tensor) -> None:
        """Round whole-numbered columns, and replace what is still outside the support by the nearest value inside."""
        if self.ends is None:
            return
        for j in self.whole:
            values[j].round_()
        torch.maximum(values, self.ends[0], out=values)
        torch.minimum(values, self.ends[1], out=values)

    def _draw_levels(self, logits: Tensor, uniform: Tensor, out: Tensor) -> None:
        """Levels by inverting their cumulative probabilities at uniform numbers (M - Mc, K, P)."""
        Mc = self.layout.n_continuous
        for group in self.layout.groups:
            own = slice(group.first - Mc, group.first - Mc + group.n)
            blocks = logits[group.columns].view(group.n, group.n_levels, *logits.shape[1:])
            at_once = max(1, _LEVEL_NUMBERS // blocks[0].numel())
            parts = zip(*(torch.split(part, at_once) for part in (blocks, uniform[own], out[own])), strict=True)
            for some, numbers, found in parts:
                shares = some.softmax(dim=1).cumsum_(dim=1)
                found.copy_((shares <= numbers.unsqueeze(1)).sum(dim=1).clamp_(max=group.n_levels - 1))


def make_heads(columns: Columns, *, respect: bool, device: torch.device) -> Heads:
    """Heads for learned columns; with `respect` draws stay inside the support."""
    return Heads(columns.layout, columns.support if respect else None, columns.whole, device)


def draw_gaussian(mean: Tensor, raw: Tensor, noise: Tensor, floors: Tensor, limits: Tensor | None) -> Tensor:
    """Draw N(mean, max(softplus(raw), floor)^2) at standard normal numbers, truncated to `limits` (2, Mc, 1, 1).

    All are (Mc, K, P) float32; `raw` is changed in place. A draw inside the limits stays; one outside is replaced by a draw
    from the truncated normal, see `redraw_inside`.
    """
    scale = torch.maximum(softplus(raw), floors)
    if limits is None:
        return scale.mul_(noise).add_(mean)
    return keep_between(torch.addcmul(mean, scale, noise), mean, scale, noise, limits)


def keep_between(drawn: Tensor, mean: Tensor, scale: Tensor, noise: Tensor, limits: Tensor | None) -> Tensor:
    """Replace draws mean + scale noise outside of `limits` by draws of the truncated normal, in place; all (Mc, K, P)."""
    if limits is None:
        return drawn
    inner = torch.minimum(torch.maximum(drawn, limits[0]), limits[1])
    if drawn.device.type != "cpu":  # an accelerator computes all rather than wait for how many there are
        inside = redraw_inside(noise, (limits[0] - mean) / scale, (limits[1] - mean) / scale)
        return torch.where(inner == drawn, drawn, inside.mul_(scale).add_(mean))
    outside = torch.from_numpy(np.flatnonzero(inner.numpy() != drawn.numpy()))
    if len(outside):
        feature = torch.div(outside, drawn[0].numel(), rounding_mode="floor")
        low, high = limits.view(2, -1).index_select(1, feature)
        centre, width, number = (part.reshape(-1).index_select(0, outside) for part in (mean, scale, noise))
        inside = redraw_inside(number, (low - centre) / width, (high - centre) / width)
        drawn.view(-1).index_copy_(0, outside, inside.mul_(width).add_(centre))
    return drawn


def redraw_inside(number: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Standard normals outside [low, high], any shape -> draws of the normal truncated to it, from the same numbers.

    Given that a number is below `low`, its share Phi(number) / Phi(low) is uniform, whatever happened otherwise; above
    `high` likewise. The truncated distribution function is inverted at that share. Together with the numbers that were
    inside to begin with, the result has exactly the truncated distribution.
    """
    above = number > high
    share = torch.where(above, phi(-number) / phi(-high), phi(number) / phi(low))
    share = torch.where(above, 1 - share, share)
    flip = low > 0  # then the upper tail is the one that floats resolve
    first, last = torch.where(flip, -high, low), torch.where(flip, -low, high)
    start = phi(first)
    level = start + torch.where(flip, 1 - share, share) * (phi(last) - start)
    found = torch.erfinv(level.mul_(2).sub_(1)).mul_(sqrt(2))
    found = torch.where(flip, -found, found)
    nearest = torch.where(above, high, low)
    return torch.where(found.isfinite(), found, nearest).clamp_(low, high)


def phi(x: Tensor) -> Tensor:
    """Distribution function of the standard normal, precise in the lower tail."""
    return torch.erfc(x * -sqrt(0.5)).mul_(0.5)
