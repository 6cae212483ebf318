"""A linear model that draws: normal numbers, then levels one after the other, from the covariance behind the advice.

It stands beside the networks as one more member. Given x_S the hidden numbers are jointly normal on the member's scale,
with the conditional means and covariance of `LinearModel`. Hidden levels follow in order, each by its linear probabilities
given everything that is known or drawn by then, cut to be at least a little above 0. Draws of numbers stay inside the
support as those of the networks do.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from condshap.vaeac.columns.adviser import Adviser
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.columns.learned import Columns
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.sampling.heads import Heads, Margins, keep_between, make_heads, make_margins
from condshap.vaeac.sampling.tiles import Pairs, Query, empty_draws, store_draws

_STAGE = "linear"
_TILE = {"cpu": 2**21, "cuda": 2**25}  # numbers in the largest arrays of a tile
_LEAST = 1e-3  # probability of a level


@dataclass(frozen=True, slots=True, eq=False)
class LinearMember:
    """One scale of a linear model, and how its numbers become values."""

    adviser: Adviser
    scale: int
    margins: Margins
    heads: Heads
    draws: str

    @classmethod
    def of(cls, columns: Columns, config: VAEACConfig, scale: str, adviser: Adviser) -> LinearMember:
        """Member on one of the scales of learned columns."""
        device, respect = adviser.device, config.respect_support
        margins = make_margins(columns, scale, truncate=respect, device=device)
        heads = make_heads(columns, respect=respect, device=device)
        return cls(adviser, list(columns.scales).index(scale), margins, heads, config.draws)

    def sample(self, query: Query) -> Tensor:
        """Draw x_unknown | x_known, (C, R, K, M), known columns unchanged."""
        rows, K = query.rows, query.n_samples
        layout, device = rows.layout, rows.inputs.device
        D = layout.n_inputs
        pool, nets = query.noise(f"{_STAGE} {self.scale}", layout.n_features, self.draws, device)
        pool = pool.double()
        pairs = Pairs(rows, query.masks, nets, max(1, min(1024, _TILE[device.type] // (D * (D + K)))))
        given, restore = query.given(), np.argsort(layout.order)
        out = empty_draws((pairs.n, K, layout.n_features), device)
        with torch.inference_mode():
            for pair, row, known, net in pairs.tiles():
                gaps = rows.missing.index_select(0, row)
                seen = torch.zeros_like(known) if query.blind else known * (1 - gaps)
                noise = pool[:, :K].index_select(2, net)  # (M, K, P)
                values = self._draw(rows, row, seen, noise)
                keep = query.kept(row, known)
                values = torch.where(keep.T.unsqueeze(1), given.index_select(0, row).T.unsqueeze(1), values)
                store_draws(values[restore][..., : pair.stop - pair.start], out[pair])
        return out.view(len(query.masks), len(rows), K, -1)

    def _draw(self, rows: EncodedRows, row: Tensor, seen: Tensor, noise: Tensor) -> Tensor:
        """Values (M, K, P), those of seen features meaningless."""
        layout, mean = rows.layout, self.adviser.means64[self.scale]
        Mc, (M, K, P) = layout.n_continuous, noise.shape
        x = rows.inputs[self.scale].index_select(0, row).double()
        deviations = ((x - mean) * rows.spread(seen)).T.unsqueeze(1).repeat(1, K, 1)  # (D, K, P)
        values = torch.empty((M, K, P), dtype=torch.float64, device=x.device)
        if Mc:
            scaled = self._draw_numbers(seen, deviations, noise[:Mc])
            self.margins.unscale(scaled, values[:Mc])
            self.heads.keep_inside(values[:Mc])
            is_new = 1 - seen[:, :Mc].double().T.unsqueeze(1)
            deviations[:Mc] += is_new * (scaled - mean[:Mc, None, None])
        uniform = noise[Mc:].mul(sqrt(0.5)).erf_().add_(1).mul_(0.5)
        self._draw_levels(layout, seen, deviations, uniform, values)
        return values

    def _draw_numbers(self, seen: Tensor, deviations: Tensor, noise: Tensor) -> Tensor:
        """Hidden numbers on the member's scale, (Mc, K, P)."""
        Mc = len(noise)
        tables = self.adviser.coefficients(seen, self.scale, slice(0, Mc))  # (P, Mc, D)
        below, own = self.adviser.factors(seen, self.scale)  # (P, Mc, Mc), (P, Mc)
        expected = torch.bmm(tables, deviations[:, 0].T.unsqueeze(2)).squeeze(2).T  # (Mc, P)
        shared = torch.bmm(below, noise.permute(2, 0, 1)).permute(1, 2, 0)  # (Mc, K, P)
        centre = shared + (expected + self.adviser.means64[self.scale, :Mc, None]).unsqueeze(1)
        centre, scale = centre.contiguous(), own.T.unsqueeze(1).expand_as(centre).contiguous()
        return keep_between(centre + scale * noise, centre, scale, noise, self.margins.limits)

    def _draw_levels(self, layout: Layout, seen: Tensor, deviations: Tensor, uniform: Tensor, values: Tensor) -> None:
        """Write hidden levels into `values`, one feature after the other, each given those before it."""
        Mc, mean = layout.n_continuous, self.adviser.means64[self.scale]
        told, by_pair = seen.clone(), deviations.permute(2, 0, 1).contiguous()  # (P, D, K)
        told[:, :Mc] = 1.0
        for group in layout.groups:
            for i in range(group.n):
                feature = group.first + i
                start = Mc + group.start + i * group.n_levels
                own = slice(start, start + group.n_levels)
                tables = self.adviser.coefficients(told, self.scale, own)  # (P, L, D)
                moved = torch.bmm(tables, by_pair)  # (P, L, K)
                shares = (moved + mean[own, None]).clamp_(min=_LEAST)
                shares = (shares / shares.sum(1, keepdim=True)).cumsum(1)
                drawn = (shares <= uniform[feature - Mc].T.unsqueeze(1)).sum(1).clamp_(max=group.n_levels - 1)  # (P, K)
                values[feature] = drawn.T
                levels = torch.nn.functional.one_hot(drawn, group.n_levels).double().transpose(1, 2)  # (P, L, K)
                is_new = 1 - seen[:, feature].double()
                by_pair[:, own] += is_new[:, None, None] * (levels - mean[own, None])
                told[:, feature] = 1.0
