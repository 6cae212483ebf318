"""Rows, coalitions -> importance-weighted log-densities of the unknown features given the known ones."""

from __future__ import annotations

from math import log

import torch

from condshap.types import Floats, Masks, RowKeys
from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.network.objective import importance_bound
from condshap.vaeac.sampling.decoder import Ensemble
from condshap.vaeac.sampling.tiles import STAGE, Pairs, choose_nets, density_tile_size, noise_pool


def log_likelihood(
    ensemble: Ensemble, rows: EncodedRows, log_slopes: Floats, masks: Masks, n_draws: int, *, keys: RowKeys, seed: int
) -> Floats:
    """Importance-weighted log p(x_unknown | x_known) of the mixture of all members, in units of the rows, shape (C, R).

    Missing features do not count. `log_slopes` (n_scales, R, Mc) turn densities on the members' scales into those of values.
    """
    E, shape, Mc = ensemble.parameters.n_models, ensemble.parameters.shape, rows.layout.n_continuous
    pool = noise_pool(n_draws, shape.latent, seed, "qmc", ensemble.device)
    nets = choose_nets(seed, f"{STAGE} likelihood", masks, keys, pool.shape[-1])
    pairs = Pairs(rows, masks, nets, density_tile_size(E, n_draws, shape.n_outputs, ensemble.device))
    slopes = torch.from_numpy(log_slopes).to(ensemble.device)
    tensors = ensemble.parameters.windows(ensemble.parameters.flat)
    out = torch.empty(pairs.n, dtype=torch.float64)
    with torch.inference_mode():
        for pair, row, known, net in pairs.tiles():
            batch = rows.batch(
                row.expand(E, -1), ensemble.scale_of, (1 - known).expand(E, -1, -1),
                has_flags=shape.has_flags,
            )  # fmt: skip
            noise = pool[:, :n_draws].index_select(2, net).permute(1, 2, 0).expand(E, -1, -1, -1)  # (E, V, P, d)
            floors = ensemble.floors.unsqueeze(1)
            found, _ = importance_bound(tensors, rows.layout, batch, noise, floors, latent_floor=ensemble.latent_floor)
            counted = batch.targets.counted[0, :, :Mc] > 0
            added = torch.where(counted, slopes.index_select(1, row), 0.0).sum(-1)  # (n_scales, P)
            mixed = (found.double() + added[ensemble.scale_of]).logsumexp(0) - log(E)
            mixed = torch.where(batch.targets.counted[0].any(-1), mixed, 0.0)  # nothing unknown: exactly 0
            out[pair] = mixed[: pair.stop - pair.start].to(out.device)
    return out.view(len(masks), len(rows)).numpy()
