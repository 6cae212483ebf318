"""Epochs and held-out IWAE -> learning rate of every model."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi

import torch
from torch import Tensor

SMOOTHED = 5  # validations in the running mean of the IWAE
_STALL = 20  # epochs without a better smoothed IWAE after which "plateau" halves the rate


@dataclass(slots=True, eq=False)
class Schedule:
    """Learning rate by epoch, and by model where the models' progress decides.

    Attributes
    ----------
    kind : "constant"; "cosine", half a wave from `rate` to 0 over the epochs from `first` to `last`; or "plateau", halved
        for a model whose smoothed IWAE has not become better for 20 epochs
    factors : (E,) what a model's rate is multiplied by
    changed : (E,) epoch after which it was last halved
    """

    kind: str
    rate: float
    first: int
    last: int
    factors: Tensor
    changed: Tensor

    @classmethod
    def start(cls, kind: str, rate: float, n_models: int, *, first: int, last: int) -> Schedule:
        """All models at the same rate, before epoch `first` + 1."""
        return cls(kind, rate, first, last, torch.ones(n_models), torch.zeros(n_models))

    def rate_of(self, epoch: int) -> float:
        """Rate in an epoch, counted from 1, before the models' own factors.

        >>> [round(Schedule.start("cosine", 1.0, 1, first=0, last=4).rate_of(t), 2) for t in (1, 2, 3, 4)]
        [1.0, 0.85, 0.5, 0.15]
        """
        if self.kind != "cosine":
            return self.rate
        done = (epoch - 1 - self.first) / max(1, self.last - self.first)
        return self.rate * 0.5 * (1 + cos(pi * done))

    def look(self, epochs: list[int], iwae: list[Tensor]) -> bool:
        """Halve the rates of models that have stalled, given all validations so far; say whether any was."""
        if self.kind != "plateau" or len(iwae) < SMOOTHED:
            return False
        since = torch.maximum(best_epochs(epochs, iwae), self.changed)
        stalled = epochs[-1] - since >= _STALL
        self.factors = torch.where(stalled, 0.5 * self.factors, self.factors)
        self.changed = torch.where(stalled, float(epochs[-1]), self.changed)
        return bool(stalled.any())


def best_epochs(epochs: list[int], iwae: list[Tensor]) -> Tensor:
    """Epoch with the highest smoothed IWAE of each model, (E,), from validations (n, E) after `epochs`, n >= 5."""
    curves = torch.stack(iwae).cpu().nan_to_num(nan=-1e30, neginf=-1e30)
    smooth = curves.unfold(0, SMOOTHED, 1).mean(-1)  # (n - 4, E)
    return torch.tensor(epochs, dtype=torch.float32)[smooth.argmax(0) + SMOOTHED - 1]
