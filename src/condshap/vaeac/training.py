"""Encoded rows -> trained weights: Adam on all members and restarts at once, best weights by held-out IWAE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, sqrt

import numpy as np
import torch
from torch import Tensor

from condshap.types import Floats
from condshap.vaeac.batches import EncodedRows, pretended_rates, step_of
from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.likelihoods import marginal_bias
from condshap.vaeac.masks import MaskScheme
from condshap.vaeac.networks import NetworkShape, Parameters
from condshap.vaeac.objective import Batch, lower_bound
from condshap.vaeac.validation import Keeper, Trained, Validation, all_diverged, warn_divergence

_BULK = 2**22  # numbers drawn at once
Progress = Callable[[int, int, float, float], None]
"""Called after an epoch with (epoch, epochs, mean VLB, mean IWAE or NaN)."""


@dataclass(slots=True, eq=False)
class Trainer:
    """State of training E models; `fit` runs it from start to end."""

    rows: EncodedRows
    shape: NetworkShape
    config: VAEACConfig
    masks: MaskScheme
    floors: Tensor  # (members, Mc)
    scale_of: Tensor  # (members,)
    seed: int
    progress: Progress | None = None
    parameters: Parameters = field(init=False)
    generator: torch.Generator = field(init=False)

    def fit(self, epochs_on_all: Floats | None = None) -> Trained:
        """Restart, train, keep the best; with `epochs_on_all` (members,) train on all rows for just so many epochs."""
        device = self.rows.inputs.device
        self.generator = torch.Generator(device=device).manual_seed(self.seed % 2**63)
        held_out, training = self._split(epochs_on_all is not None)
        members = torch.arange(len(self.scale_of), device=device).repeat_interleave(self.config.n_restarts)
        self._initialise(members)
        run = Run(self, members, training[members])
        n_first = self.config.restart_epochs if self.config.n_restarts > 1 else 0
        if n_first:
            for epoch in range(n_first):
                run.epoch()
                self._report(epoch + 1, run)
            run = run.choose(self._best_restarts(run.vlb[-1]))
        return run.until_the_end(held_out, first=n_first, stop=epochs_on_all)

    def _split(self, keep_all: bool) -> tuple[Tensor, Tensor]:
        """Positions of held-out (members, n_val) and of training rows (members, n_train), drawn anew for each member."""
        N, config = len(self.rows), self.config
        n_val = min(ceil(config.validation_share * N), config.max_validation or N, max(1, N - 1))
        shuffled = _shuffle(len(self.scale_of), N, self.generator)
        if keep_all or N == 1:
            return shuffled[:, :n_val], shuffled
        return shuffled[:, :n_val], shuffled[:, n_val:]

    def _initialise(self, members: Tensor) -> None:
        self.parameters = Parameters(self.shape, len(members), self.rows.inputs.device)
        self.parameters.initialise(self.generator)
        if self.config.zero_init:
            self.parameters.start_at(marginal_bias(self.rows.layout, self.rows.codes, self.rows.missing))

    def _best_restarts(self, vlb: Tensor) -> Tensor:
        """Positions of the restart with the highest training VLB of each member, without members that all diverged."""
        by_member = vlb.view(len(self.scale_of), self.config.n_restarts)
        lost = int((~torch.isfinite(by_member)).sum())
        if lost:
            warn_divergence(f"{lost} of {by_member.numel()} restarts diverged and were dropped")
        by_member = torch.where(torch.isfinite(by_member), by_member, -torch.inf)
        best, position = by_member.max(1)
        kept = torch.isfinite(best)
        if not kept.any():
            raise all_diverged()
        return (torch.arange(len(best), device=best.device) * self.config.n_restarts + position)[kept]

    def _report(self, epoch: int, run: Run, iwae: float = float("nan")) -> None:
        if self.progress is not None:
            assert self.config.epochs is not None
            self.progress(epoch, self.config.epochs, float(run.vlb[-1].mean()), iwae)


class Run:
    """Some models in training: weights, moments of Adam, moving average."""

    def __init__(self, trainer: Trainer, members: Tensor, training: Tensor) -> None:
        self.trainer, self.members, self.training = trainer, members, training
        self.parameters = trainer.parameters
        self.scale_of = trainer.scale_of[members]
        self.floors = trainer.floors[members].unsqueeze(1)
        self.first, self.second = (torch.zeros_like(self.parameters.flat) for _ in range(2))
        self.average = self.parameters.flat.clone()
        self.n_steps = 0
        self.vlb: list[Tensor] = []
        relative = trainer.config.artificial_missing if trainer.shape.has_flags else 0.0
        self.rates = pretended_rates(trainer.rows.missing, relative) if relative else None

    def choose(self, positions: Tensor) -> Run:
        """Go on with some of the models, their moments included."""
        old = self.parameters
        self.trainer.parameters = Parameters(old.shape, len(positions), old.flat.device)
        self.trainer.parameters.flat.copy_(old.choose(old.flat, positions))
        run = Run(self.trainer, self.members[positions], self.training[positions])
        run.first = old.choose(self.first, positions)
        run.second = old.choose(self.second, positions)
        run.average = old.choose(self.average, positions)
        run.n_steps = self.n_steps
        run.vlb = [vlb[positions] for vlb in self.vlb]
        return run

    def epoch(self) -> None:
        """Go once through the training rows of every model."""
        total = torch.zeros(len(self.members), device=self.members.device)
        n_steps = 0
        for bulk, noise in self._bulks():
            for t in range(len(noise)):
                total += self._step(step_of(bulk, t), noise[t])
                n_steps += 1
        self.vlb.append(total / n_steps)

    def _bulks(self) -> Iterator[tuple[Batch, Tensor]]:
        """Batches of one epoch with their noise, many steps at once: leading axes (steps, E, B)."""
        trainer, generator = self.trainer, self.trainer.generator
        E, n_train = self.training.shape
        assert trainer.config.batch_size is not None
        B = min(trainer.config.batch_size, n_train)
        n_steps = ceil(n_train / B)
        order = _shuffle(E, n_train, generator)
        order = torch.cat([order, _shuffle(E, n_train, generator)[:, : n_steps * B - n_train]], dim=1)
        rows = self.training.gather(1, order).view(E, n_steps, B).transpose(0, 1)
        at_once = max(1, _BULK // (E * B * (trainer.shape.full_width + trainer.shape.latent)))
        for start in range(0, n_steps, at_once):
            some = rows[start : start + at_once]
            noise = torch.randn(*some.shape, trainer.shape.latent, generator=generator, device=generator.device)
            yield self._batch(some), noise

    def _batch(self, rows: Tensor) -> Batch:
        """Inputs and targets of rows (..., E, B) with freshly drawn masks."""
        generator = self.trainer.generator
        masks = self.trainer.masks.draw(rows.numel(), generator).view(*rows.shape, -1)
        pretended = None
        if self.rates is not None:
            coins = torch.rand(masks.shape, generator=generator, device=generator.device)
            pretended = (coins < self.rates).float()
        has_flags = self.trainer.shape.has_flags
        return self.trainer.rows.batch(rows, self.scale_of, masks, has_flags=has_flags, pretended=pretended)

    def _step(self, batch: Batch, noise: Tensor) -> Tensor:
        """One step of Adam for every model; returns the mean VLB of each, (E,)."""
        config = self.trainer.config
        bound = lower_bound(
            self.parameters.tensors, self.trainer.rows.layout, batch, noise, self.floors,
            latent_floor=config.latent_floor, sigma_mu=config.sigma_mu, sigma_sigma=config.sigma_sigma,
        )  # fmt: skip
        self.parameters.gradient.zero_()
        (-bound.regularised.mean(1).sum()).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self._adam()
            return bound.vlb.mean(1)

    def _adam(self, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        config, gradient, weights = self.trainer.config, self.parameters.gradient, self.parameters.flat
        assert config.learning_rate is not None
        self.n_steps += 1
        self.first.lerp_(gradient, 1 - beta1)
        self.second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        root = torch.sqrt(self.second, out=gradient)  # the gradient is not needed any more
        root.div_(sqrt(1 - beta2**self.n_steps)).add_(eps)
        weights.addcdiv_(self.first, root, value=-config.learning_rate / (1 - beta1**self.n_steps))
        if config.ema is not None:
            decay = min(config.ema, (1 + self.n_steps) / (10 + self.n_steps))
            self.average.lerp_(weights, 1 - decay)

    def until_the_end(self, held_out: Tensor, first: int, stop: Floats | None) -> Trained:
        """Train for the epochs that are left and return the best weights of each model, or those after `stop` epochs."""
        config, trainer = self.trainer.config, self.trainer
        assert config.epochs is not None
        validation = self._validation(held_out[self.members])
        stops = None if stop is None else torch.as_tensor(stop, device=self.members.device)[self.members]
        keeper = Keeper(self.parameters, self.members, held_out[self.members], stops)
        last = config.epochs if stop is None else int(stop.max())
        for epoch in range(first + 1, last + 1):
            self.epoch()
            due = epoch % config.validate_every == 0 or epoch == last
            if due or stop is not None:
                weights = self.parameters.flat if config.ema is None else self.average
                iwae, kl = validation.estimate(weights)
                keeper.offer(epoch, weights, iwae, kl)
            trainer._report(epoch, self, float(iwae.mean()) if due else float("nan"))
            if due and stop is None and keeper.is_done(config.patience):
                break
        return keeper.result(self.vlb)

    def _validation(self, rows: Tensor) -> Validation:
        """Hold-out rows (E, n_val) with masks drawn once and for all."""
        trainer, generator = self.trainer, self.trainer.generator
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        per_row = len(rows) * trainer.config.n_importance * (trainer.shape.width + trainer.shape.n_outputs)
        at_once = max(16, _BULK // (2 * per_row))
        batches = [self._batch(some) for some in torch.split(rows, at_once, dim=1)]
        return Validation(self.parameters, trainer.rows.layout, trainer.config, self.floors, batches, seed)


def refit(trainer: Trainer, trained: Trained) -> Trained:
    """Train the members again on all rows, each for as many epochs as were best for it; the history stays."""
    epochs = np.full(len(trainer.scale_of), float(trained.history.best_epoch.max()))
    epochs[list(trained.members)] = trained.history.best_epoch
    again = trainer.fit(epochs_on_all=epochs)
    kept = [i for i, member in enumerate(trained.members) if member in again.members]
    picked = {name: getattr(trained.history, name)[:, kept] for name in ("vlb", "iwae", "kl")}
    history = replace(trained.history, **picked, best_epoch=trained.history.best_epoch[kept])
    return Trained(
        again.parameters, again.members, history, again.held_out[:, :0]
    )  # trained on all rows: none is held out


def _shuffle(n_models: int, n_rows: int, generator: torch.Generator) -> Tensor:
    """Random orders of rows, (n_models, n_rows)."""
    return torch.rand(n_models, n_rows, generator=generator, device=generator.device).argsort(1)
