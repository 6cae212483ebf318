"""Held-out IWAE after some epochs -> the weights that are kept, and the history of training."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from condshap.exceptions import CondShapWarning
from condshap.types import Floats, Indices
from condshap.vaeac.columns.encoded_rows import Batch
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.network.layers import Parameters
from condshap.vaeac.network.objective import importance_bound
from condshap.vaeac.training.checkpoint import Array, Checkpoint
from condshap.vaeac.training.learning_rate import SMOOTHED, best_epochs
from condshap.vaeac.validation import DivergenceError, History


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Flat weights of the members that were kept, their positions among those asked for, and the history of these.

    `held_out` (E, n) are positions of training rows that a member was not trained on; `checkpoint` is what further training
    needs, None where that is not possible.
    """

    parameters: Parameters
    members: tuple[int, ...]
    history: History
    held_out: Indices
    checkpoint: Checkpoint | None = None


class Validation:
    """Held-out rows (E, n_val) with masks and noise that stay the same, so that epochs can be compared."""

    def __init__(
        self,
        parameters: Parameters,
        layout: Layout,
        config: VAEACConfig,
        floors: Tensor,
        batches: list[Batch],
        seed: int,
    ) -> None:
        self.parameters, self.layout, self.config = parameters, layout, config
        self.floors, self.batches = floors, batches
        generator = torch.Generator(device=floors.device).manual_seed(seed)
        sizes = [
            (E, config.n_importance, B, parameters.shape.latent) for E, B in (b.full_input.shape[:2] for b in batches)
        ]
        self.noises = [torch.randn(size, generator=generator, device=floors.device) for size in sizes]

    def estimate(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Mean IWAE (E,) and KL divergence by latent unit (E, d) of models with these weights."""
        config = self.config
        tensors = self.parameters.windows(weights)
        parts = []
        with torch.no_grad():
            for batch, noise in zip(self.batches, self.noises, strict=True):
                found = importance_bound(
                    tensors, self.layout, batch, noise, self.floors, latent_floor=config.latent_floor
                )
                parts.append(found)
        iwae, kl = (torch.cat(list(some), dim=1).mean(1) for some in zip(*parts, strict=True))
        return iwae, kl


class Keeper:
    """The best weights so far, model by model."""

    def __init__(self, parameters: Parameters, members: Tensor, held_out: Tensor, stop: Tensor | None) -> None:
        E = len(members)
        self.parameters, self.members, self.held_out, self.stop = parameters, members, held_out, stop
        self.best = parameters.flat.clone()
        self.best_iwae = torch.full((E,), -torch.inf, device=self.best.device)
        self.best_epoch = torch.zeros(E, device=self.best.device)
        self.epochs: list[int] = []
        self.iwae: list[Tensor] = []
        self.kl: list[Tensor] = []

    @classmethod
    def restore(cls, parameters: Parameters, point: Checkpoint) -> Keeper:
        """Go on from a checkpoint."""
        device = parameters.flat.device
        members, held_out = (torch.from_numpy(part).to(device) for part in (point.members, point.held_out))
        keeper = cls(parameters, members, held_out, None)
        keeper.best, keeper.best_iwae, keeper.best_epoch = (
            torch.from_numpy(part).to(device) for part in (point.best.copy(), point.best_iwae, point.best_epoch)
        )
        keeper.epochs = point.validated.tolist()
        keeper.iwae, keeper.kl = (list(torch.from_numpy(part).to(device)) for part in (point.iwae, point.kl))
        return keeper

    def curves(self) -> dict[str, Array]:
        """Arrays `validated` (n,), `iwae` (n, E) and `kl` (n, E, d) of all models."""
        E, d = len(self.members), self.parameters.shape.latent
        iwae = torch.stack(self.iwae) if self.iwae else torch.zeros(0, E)
        kl = torch.stack(self.kl) if self.kl else torch.zeros(0, E, d)
        return {
            "validated": np.asarray(self.epochs, dtype=np.int64), "iwae": iwae.cpu().numpy(), "kl": kl.cpu().numpy(),
        }  # fmt: skip

    def offer(self, epoch: int, weights: Tensor, iwae: Tensor, kl: Tensor) -> None:
        """Keep the weights of models that have become better, or, when told where to stop, of those that are there."""
        self.epochs.append(epoch)
        self.iwae.append(iwae)
        self.kl.append(kl)
        better = torch.isfinite(iwae) & (iwae > self.best_iwae if self.stop is None else self.stop == epoch)
        better &= self.parameters.finite(weights)
        self.best_iwae = torch.where(better, iwae, self.best_iwae)
        self.best_epoch = torch.where(better, float(epoch), self.best_epoch)
        self.best = torch.where(self.parameters.spread(better), weights, self.best)

    def is_done(self, patience: int | None, *, since: int) -> bool:
        """No model's smoothed IWAE has become better for `patience` epochs, nor has training just begun, after `since`."""
        if patience is None or self.stop is not None or len(self.iwae) <= SMOOTHED:
            return False
        best = best_epochs(self.epochs, self.iwae).clamp(min=since)
        return bool((self.epochs[-1] - best >= patience).all())

    def result(self, vlb: list[Tensor]) -> Trained:
        """Weights and history of the models that can be used."""
        usable = torch.isfinite(self.best_iwae)
        if not usable.any():
            raise all_diverged()
        if not usable.all():
            warn_divergence(f"{int((~usable).sum())} of {len(usable)} networks diverged and were dropped")
        positions = usable.nonzero().squeeze(1)
        old = self.parameters
        kept = Parameters(old.shape, len(positions), old.flat.device)
        kept.flat.copy_(old.choose(self.best, positions))

        def stack(values: list[Tensor]) -> Floats:
            return torch.stack(values)[:, positions].double().cpu().numpy()

        best_epoch = self.best_epoch[positions].double().cpu().numpy()
        validated = np.asarray(self.epochs, dtype=np.float64)
        history = History(stack(vlb), validated, stack(self.iwae), stack(self.kl), best_epoch)
        held_out = self.held_out[positions].cpu().numpy().astype(np.intp)
        return Trained(kept, tuple(self.members[positions].tolist()), history, held_out)


def warn_divergence(what: str) -> None:
    """Say what was dropped, and what may help."""
    advice = "Check for extreme values in the training rows, or use a smaller learning_rate."
    warnings.warn(f"VAEAC: {what}. {advice}", CondShapWarning, stacklevel=2)


def all_diverged() -> DivergenceError:
    """Error for a training that has nothing left."""
    return DivergenceError(
        "at least one network must train to finite numbers, but all diverged. Use a smaller learning_rate, or check the "
        "training rows for extreme values."
    )
