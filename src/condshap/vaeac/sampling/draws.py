"""A query -> conditional draws (eq. 5 of the paper) of the networks."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from condshap.vaeac.sampling.decoder import Ensemble, Views, read_decoder
from condshap.vaeac.sampling.tiles import Query


def sample(ensemble: Ensemble, query: Query) -> Tensor:
    """Draw x_unknown | x_known for every coalition and row, (C, R, K, M), known columns unchanged."""
    return read_decoder(ensemble, query, _Draws(ensemble, query))


class _Draws:
    """Draws of the unknown features beside the known ones, in the order of the table."""

    def __init__(self, ensemble: Ensemble, query: Query) -> None:
        order = query.rows.layout.order
        self.ensemble, self.given, self.width = ensemble, query.given(), len(order)
        is_ordered = order == tuple(range(len(order)))
        self.restore = None if is_ordered else torch.from_numpy(np.argsort(order)).to(ensemble.device)

    def open_tile(self, row: Tensor, keep: Tensor) -> None:
        """Find what is known of rows (P,): entries `keep` (P, M)."""
        self.keep = keep.T.unsqueeze(1)
        self.original = self.given.index_select(0, row).T.unsqueeze(1)  # (M, 1, P)

    def read(self, e: int, views: Views) -> Tensor:
        """Values (M, K, P) drawn by member e."""
        latent = self.ensemble.parameters.shape.latent
        self.ensemble.heads.draw(views.outputs, views.noise[latent:], self.ensemble.margins[e], views.values)
        values = torch.where(self.keep, self.original, views.values, out=views.values)
        return values if self.restore is None else values.index_select(0, self.restore)
