"""Rows, coalitions -> conditional expectations of an additive function, by means of the heads instead of draws.

Latents come from the same nets as those of draws. Given a latent, a truncated Gaussian head has a mean in closed form and
levels have probabilities. Heads on other scales, and whole numbers, have no such form: they are averaged over four draws,
at z, -z, z' and -z' with z' half a turn away in probability, which is unbiased and takes most of their noise away. So are
the values of a function that is not linear in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from condshap.numerics.additive import AdditiveFunction, AffineFunction, sum_terms
from condshap.types import Floats
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.sampling.decoder import Ensemble, Views, read_decoder
from condshap.vaeac.sampling.heads import FromStandard, Heads, Margins, draw_gaussian, phi
from condshap.vaeac.sampling.tiles import Query


def expect(ensemble: Ensemble, query: Query, function: AdditiveFunction, atoms: Atoms) -> Floats:
    """Expect a function given x_known and a latent, for K latents of every coalition and row: (C, R, K, O).

    `atoms` are the numbers behind levels.
    """
    found = read_decoder(ensemble, query, _Terms(ensemble, query, function, atoms)).cpu().numpy()
    own = function.terms(query.X)
    if query.fill_missing:
        own[np.isnan(query.X)] = 0.0  # a gap is expected like an unknown feature
    given = function.intercept + sum_terms(own, query.masks, np.zeros(own.shape[1:]))
    return np.asarray(found + given[:, :, None])


class _Terms:
    """Terms of a function over the heads of a decoder, in their internal order."""

    def __init__(self, ensemble: Ensemble, query: Query, function: AdditiveFunction, atoms: Atoms) -> None:
        layout, device = query.rows.layout, ensemble.device
        order = list(layout.order)
        self.ensemble, self.function, self.layout = ensemble, function, layout
        self.width = len(function.intercept)
        self.slopes = None
        if isinstance(function, AffineFunction):
            self.slopes = torch.from_numpy(function.slopes[order[: layout.n_continuous]]).to(device)  # (Mc, O)
        self.levels = [
            torch.from_numpy(np.stack([atoms.terms(function, j) for j in order[g.first : g.first + g.n]])).to(device)
            for g in layout.groups
        ]  # (n, L, O) each

    def open_tile(self, row: Tensor, keep: Tensor) -> None:
        """Find what is unknown of a tile's pairs: all but entries `keep` (P, M)."""
        self.unknown = (~keep).T.double()  # (M, P)

    def read(self, e: int, views: Views) -> Tensor:
        """Sum of the unknown features' terms, (O, K, P), as member e expects them."""
        Mc, d = self.layout.n_continuous, self.ensemble.parameters.shape.latent
        heads, margins = self.ensemble.heads, self.ensemble.margins[e]
        outputs, noise, unknown = views.outputs, views.noise[d : d + Mc], self.unknown
        total = outputs.new_zeros((self.width, *outputs.shape[1:]), dtype=torch.float64)
        if Mc and self.slopes is None:
            for values in _four_draws(outputs, noise, heads, margins, views.values[:Mc]):
                self._add_curves(values, unknown, total, weight=0.25)
        elif Mc and self.slopes is not None:
            values = views.values[:Mc]
            expect_numbers(outputs, noise, heads, margins, values)
            total += torch.einsum("mkp,mo->okp", values.mul_(unknown[:Mc].unsqueeze(1)), self.slopes)
        for group, levels in zip(self.layout.groups, self.levels, strict=True):
            own = unknown[group.first : group.first + group.n].unsqueeze(1)
            logits = outputs[2 * Mc :][group.columns].view(group.n, group.n_levels, *outputs.shape[1:])
            for i in range(group.n):  # one by one: features with many levels would need much room
                shares = logits[i].double().softmax(dim=0)
                total += torch.einsum("lkp,lo->okp", shares, levels[i]) * own[i]
        return total

    def _add_curves(self, values: Tensor, unknown: Tensor, total: Tensor, *, weight: float) -> None:
        """Add the unknown numbers' terms at values (Mc, K, P), computed where curves are, to `total` (O, K, P)."""
        for i, own in enumerate(values.cpu().numpy()):
            some = np.flatnonzero(unknown[i].cpu().numpy())
            terms = self.function.term(self.layout.order[i], own[:, some])  # (K, p, O)
            total[..., some] += weight * torch.from_numpy(terms).to(total.device).permute(2, 0, 1)


def expect_numbers(outputs: Tensor, noise: Tensor, heads: Heads, margins: Margins, out: Tensor) -> None:
    """Write means of the Gaussian heads' values (Mc, K, P) into `out`; `noise` is used where there is no closed form."""
    Mc = len(out)
    mean, raw = outputs[:Mc], outputs[Mc : 2 * Mc]
    is_plain = type(margins.unscale) is FromStandard
    if not is_plain or heads.whole:
        _average_draws(outputs, noise, heads, margins, out)
    if is_plain:
        closed = torch.empty_like(out)
        margins.unscale(truncated_mean(mean, torch.maximum(softplus(raw), margins.floors), margins.limits), closed)
        plain = [j for j in range(Mc) if j not in heads.whole]
        out[plain] = closed[plain]


def _average_draws(outputs: Tensor, noise: Tensor, heads: Heads, margins: Margins, out: Tensor) -> None:
    """Average four draws of equal distribution that together are far more even than one."""
    out.zero_()
    values = torch.empty_like(out)
    for drawn in _four_draws(outputs, noise, heads, margins, values):
        out.add_(drawn, alpha=0.25)


def _four_draws(outputs: Tensor, noise: Tensor, heads: Heads, margins: Margins, values: Tensor) -> Iterator[Tensor]:
    """Write four draws (Mc, K, P) of equal distribution into `values`, one after the other."""
    mean, raw = outputs[: len(values)], outputs[len(values) : 2 * len(values)]
    turned = phi(noise).add_(0.5).frac_().clamp_(2.0**-24, 1 - 2.0**-24)
    opposite = torch.erfinv(turned.mul_(2).sub_(1)).mul_(sqrt(2))
    for number in (noise, -noise, opposite, -opposite):
        margins.unscale(draw_gaussian(mean, raw.clone(), number.contiguous(), margins.floors, margins.limits), values)
        heads.keep_inside(values)
        yield values


def truncated_mean(mean: Tensor, scale: Tensor, limits: Tensor | None) -> Tensor:
    """Mean of N(mean, scale^2) truncated to `limits` (2, Mc, 1, 1), in float64.

    In units of the scale, (density(a) - density(b)) / (Phi(b) - Phi(a)) is added, computed in the lower tail, where floats
    resolve it. Beyond what they resolve all is at the nearest end.
    """
    centre, width = mean.double(), scale.double()
    if limits is None:
        return centre
    low, high = ((end.double() - centre) / width for end in limits)
    flip = low + high > 0
    first, last = torch.where(flip, -high, low), torch.where(flip, -low, high)
    densities = [torch.exp(-0.5 * x * x) / sqrt(2 * pi) for x in (first, last)]
    moved = (densities[0] - densities[1]) / (phi(last) - phi(first))
    moved = torch.where(moved.isfinite(), moved, last)
    moved = torch.minimum(torch.maximum(moved, first), last)
    return torch.where(flip, -moved, moved) * width + centre
