"""What training tells about itself: its history, and the error when nothing is left of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condshap.exceptions import CondShapError
from condshap.types import Floats, Indices

_ACTIVE = 0.01  # nats; a latent unit below is not used


class DivergenceError(CondShapError, ArithmeticError):
    """No network could be trained: all of them ran into numbers that are not finite."""


@dataclass(frozen=True, slots=True)
class History:
    """What happened in training.

    Attributes
    ----------
    vlb : (epochs, E) mean training bound per epoch and member
    validated : (n,) epochs, from 1, after which the members were validated
    iwae : (n, E) mean held-out IWAE
    kl : (n, E, d) mean held-out KL divergence by latent unit; a unit near 0 is not used (posterior collapse)
    best_epoch : (E,) epoch whose weights were kept
    """

    vlb: Floats
    validated: Floats
    iwae: Floats
    kl: Floats
    best_epoch: Floats

    @property
    def kl_at_best(self) -> Floats:
        """KL divergence by latent unit of the weights that were kept, (E, d); NaN for weights of no validated epoch."""
        kept = self.validated[:, None] == self.best_epoch  # (n, E)
        found = self.kl[kept.argmax(axis=0), np.arange(len(self.best_epoch))]
        return np.where(kept.any(axis=0)[:, None], found, np.nan)

    @property
    def active_units(self) -> Indices:
        """Number of latent units in use by each member, (E,): those with a KL divergence of more than 0.01."""
        return np.asarray((self.kl_at_best > _ACTIVE).sum(axis=1), dtype=np.intp)
