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

from condshap.numerics.affine import AdditiveFunction, AffineFunction, sum_terms
from condshap.seeding import stream_words
from condshap.types import Floats, Masks, RowKeys, Rows
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.sampling.draws import (
    STAGE,
    Ensemble,
    Pairs,
    Views,
    Workspace,
    member_shares,
    noise_pool,
    step_size,
    tile_size,
)
from condshap.vaeac.sampling.heads import FromStandard, Heads, Margins, draw_gaussian, phi


def expect(
    ensemble: Ensemble,
    rows: EncodedRows,
    function: AdditiveFunction,
    X: Rows,
    masks: Masks,
    n_samples: int,
    *,
    keys: RowKeys,
    seed: int,
    atoms: Atoms,
    fill_missing: bool,
    blind: bool,
) -> Floats:
    """Expect a function given x_known and a latent, for K latents of every coalition and row: (C, R, K, O).

    Parameters are those of `condshap.vaeac.sampling.draws.sample`; `atoms` are the numbers behind levels.
    """
    K, shape, d = n_samples, ensemble.parameters.shape, ensemble.parameters.shape.latent
    shares = member_shares(ensemble.parameters.n_models, K)
    pool = noise_pool(K, d + shape.n_features, seed, ensemble.draws, ensemble.device)
    nets = (stream_words(seed, STAGE, masks, keys) % np.uint64(pool.shape[-1])).astype(np.int64)
    pairs = Pairs(rows, masks, nets, tile_size(max(shares), shape.n_outputs, ensemble.device))
    step = step_size(max(shares))
    work = Workspace(ensemble, rows, pairs.size, step)
    terms = _Terms(function, rows, atoms, ensemble.device)
    out = np.empty((pairs.n, K, len(function.intercept)))
    with torch.inference_mode():
        for pair, row, known, net in pairs.tiles():
            work.condition(row, torch.zeros_like(known) if blind else known)
            keep = known * (1 - rows.missing.index_select(0, row)) if fill_missing else known
            unknown, start = 1 - keep.T.double(), 0  # (M, P)
            for e, share in enumerate(shares):
                for first in range(start, start + share, step):
                    points = slice(first, min(first + step, start + share))
                    views = work.decode(e, pool[:, points], net)
                    found = terms.expected(views, d, ensemble.heads, ensemble.margins[e], unknown)  # (O, K, P)
                    out[pair, points] = found[..., : pair.stop - pair.start].permute(2, 1, 0).cpu().numpy()
                start += share
    own = function.terms(X)
    if fill_missing:
        own[np.isnan(X)] = 0.0  # a gap is expected like an unknown feature
    given = function.intercept + sum_terms(own, masks, np.zeros(own.shape[1:]))
    return out.reshape(len(masks), len(rows), K, -1) + given[:, :, None]


class _Terms:
    """Terms of a function over the heads of a decoder, in their internal order."""

    def __init__(self, function: AdditiveFunction, rows: EncodedRows, atoms: Atoms, device: torch.device) -> None:
        layout = rows.layout
        order = list(layout.order)
        self.function, self.layout = function, layout
        self.slopes = None
        if isinstance(function, AffineFunction):
            self.slopes = torch.from_numpy(function.slopes[order[: layout.n_continuous]]).to(device)  # (Mc, O)
        self.levels = [
            torch.from_numpy(np.stack([atoms.terms(function, j) for j in order[g.first : g.first + g.n]])).to(device)
            for g in layout.groups
        ]  # (n, L, O) each

    def expected(self, views: Views, d: int, heads: Heads, margins: Margins, unknown: Tensor) -> Tensor:
        """Sum of the unknown features' expected terms, (O, K, P)."""
        Mc, outputs = self.layout.n_continuous, views.outputs
        total = outputs.new_zeros((len(self.function.intercept), *outputs.shape[1:]), dtype=torch.float64)
        if Mc and self.slopes is None:
            draws = _four_draws(outputs, views.noise[d : d + Mc], heads, margins, views.values[:Mc])
            for values in draws:
                self._add_curves(values, unknown, total, weight=0.25)
        elif Mc and self.slopes is not None:
            values = views.values[:Mc]
            expect_numbers(outputs, views.noise[d : d + Mc], heads, margins, values)
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
