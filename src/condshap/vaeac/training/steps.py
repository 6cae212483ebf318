"""Some models in training: steps of Adam on all of them at once, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt

import torch
from torch import Tensor

from condshap.vaeac.columns.encoded_rows import Batch, EncodedRows, pretended_rates, step_of
from condshap.vaeac.config import ROWS_OF_EPOCH, VAEACConfig
from condshap.vaeac.network.gradient import BoundGradient
from condshap.vaeac.network.layers import NetworkShape, Parameters
from condshap.vaeac.network.objective import Regulariser
from condshap.vaeac.training.best_weights import Keeper, Validation
from condshap.vaeac.training.checkpoint import Checkpoint
from condshap.vaeac.training.learning_rate import Schedule
from condshap.vaeac.training.masks import MaskScheme
from condshap.vaeac.training.recorded_step import CapturedStep, capture

_GRAPHS = True  # record steps on accelerators
_NOTHING_KNOWN = 0.3  # share of masks that hide all features while the KL divergence is warming up
_BULK = 2**22  # numbers drawn at once
_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8  # of Adam


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What models are trained on, and how; nothing of it changes but the state of the random numbers.

    Attributes
    ----------
    floors : (members, Mc) least standard deviations of Gaussian heads
    scale_of : (members,) scale of each member
    """

    rows: EncodedRows
    config: VAEACConfig
    masks: MaskScheme
    floors: Tensor
    scale_of: Tensor
    generator: torch.Generator

    @property
    def device(self) -> torch.device:
        """Where training happens."""
        return self.rows.inputs.device


class Run:
    """Some models in training: weights, moments of Adam, moving average, learning rates.

    Parameters
    ----------
    members : (E,) member of each model
    training : (E, n_train) positions of its rows
    """

    def __init__(
        self, task: Task, parameters: Parameters, members: Tensor, training: Tensor, schedule: Schedule
    ) -> None:
        self.task, self.parameters, self.members = task, parameters, members
        self.training, self.schedule = training, schedule
        self.scale_of = task.scale_of[members]
        self.floors = task.floors[members].unsqueeze(1)
        self.first, self.second = (torch.zeros_like(parameters.flat) for _ in range(2))
        self.average = parameters.flat.clone()
        self.n_steps = 0
        self.vlb: list[Tensor] = []
        relative = task.config.artificial_missing if parameters.shape.has_flags else 0.0
        self.pretended = pretended_rates(task.rows.missing, relative) if relative else None
        self.damping = torch.ones_like(parameters.flat) if schedule.kind == "plateau" else None
        self.knobs = torch.zeros(3, device=members.device)
        self.kl_weight = torch.ones(len(members), 1, device=members.device)
        self.bound = BoundGradient(parameters, task.rows.layout, self.floors, task.config.latent_floor)
        self.regularise = Regulariser(task.config.sigma_mu, task.config.sigma_sigma, self.kl_weight)
        self.is_warm = True
        self.records = _GRAPHS and task.device.type == "cuda"
        self._captured: CapturedStep | None = None

    @classmethod
    def restore(cls, task: Task, shape: NetworkShape, point: Checkpoint, schedule: Schedule) -> Run:
        """Go on from a checkpoint, with its own factors of the learning rate."""
        members, training = (torch.from_numpy(part).to(task.device) for part in (point.members, point.training))
        schedule.factors, schedule.changed = torch.from_numpy(point.factors), torch.from_numpy(point.changed)
        parameters = Parameters(shape, len(members), task.device)
        parameters.flat.copy_(torch.from_numpy(point.weights))
        run = cls(task, parameters, members, training, schedule)
        for name in ("first", "second", "average"):
            getattr(run, name).copy_(torch.from_numpy(getattr(point, name)))
        run.n_steps, run.vlb = int(point.progress[1]), list(torch.from_numpy(point.vlb).to(task.device))
        run.spread_factors()
        return run

    @property
    def averaged(self) -> Tensor:
        """Weights to validate and to keep: the moving average where there is one."""
        return self.parameters.flat if self.task.config.ema is None else self.average

    def choose(self, positions: Tensor) -> Run:
        """Go on with some of the models, their moments included."""
        old = self.parameters
        parameters = Parameters(old.shape, len(positions), old.flat.device)
        parameters.flat.copy_(old.choose(old.flat, positions))
        kept, rates = self.schedule, positions.cpu()
        schedule = Schedule(
            kept.kind, kept.rate, kept.first, kept.last, kept.factors[rates], kept.changed[rates]
        )  # fmt: skip
        run = Run(self.task, parameters, self.members[positions], self.training[positions], schedule)
        run.first = old.choose(self.first, positions)
        run.second = old.choose(self.second, positions)
        run.average = old.choose(self.average, positions)
        run.n_steps, run.records = self.n_steps, self.records
        run.vlb = [vlb[positions] for vlb in self.vlb]
        return run

    def epoch(self, number: int) -> None:
        """Go once through the training rows of every model, or through a random part of very many; epochs count from 1."""
        rate = self.schedule.rate_of(number)
        self.kl_weight.fill_(kl_weight(number, self.task.config.kl_warmup or 0))
        self.is_warm = number > (self.task.config.kl_warmup or 0)
        total = torch.zeros(len(self.members), device=self.members.device)
        n_steps = 0
        for bulk, noise in self._bulks():
            for t in range(len(noise)):
                total += self._step(step_of(bulk, t), noise[t], rate)
                n_steps += 1
        self.vlb.append(total / n_steps)

    def _bulks(self) -> Iterator[tuple[Batch, Tensor]]:
        """Batches of one epoch with their noise, many steps at once: leading axes (steps, E, B)."""
        config, shape, generator = self.task.config, self.parameters.shape, self.task.generator
        assert config.batch_size is not None
        E, n_train = self.training.shape
        B = min(config.batch_size, n_train)
        n_steps = ceil(min(n_train, ROWS_OF_EPOCH) / B)
        rows = self.training.gather(1, self._order(n_steps * B)).view(E, n_steps, B).transpose(0, 1)
        at_once = max(1, _BULK // (E * B * (shape.full_width + shape.latent)))
        for start in range(0, n_steps, at_once):
            some = rows[start : start + at_once]
            noise = torch.randn(*some.shape, shape.latent, generator=generator, device=generator.device)
            yield self._batch(some), noise

    def _order(self, n: int) -> Tensor:
        """Positions (E, n) among the training rows, in the order of an epoch."""
        generator, (E, n_train) = self.task.generator, self.training.shape
        if n_train > ROWS_OF_EPOCH:  # shuffling all of them would take as long as the steps
            return torch.randint(n_train, (E, n), generator=generator, device=generator.device)
        again = n - n_train  # to fill the last batch
        return torch.cat([shuffle(E, n_train, generator), shuffle(E, n_train, generator)[:, :again]], dim=1)

    def _batch(self, rows: Tensor) -> Batch:
        """Inputs and targets of rows (..., E, B) with freshly drawn masks."""
        generator = self.task.generator
        masks = self.task.masks.draw(rows.numel(), generator).view(*rows.shape, -1)
        if not self.is_warm:  # latents are found where nothing else tells anything
            nothing_known = torch.rand((*rows.shape, 1), generator=generator, device=generator.device) < _NOTHING_KNOWN
            masks = torch.where(nothing_known, torch.ones_like(masks), masks)
        pretended = None
        if self.pretended is not None:
            coins = torch.rand(masks.shape, generator=generator, device=generator.device)
            pretended = (coins < self.pretended).float()
        has_flags = self.parameters.shape.has_flags
        return self.task.rows.batch(rows, self.scale_of, masks, has_flags=has_flags, pretended=pretended)

    def _step(self, batch: Batch, noise: Tensor, rate: float) -> Tensor:
        """One step of Adam for every model; returns the mean VLB of each, (E,)."""
        knobs = self._next_knobs(rate)
        if self.records:
            self.knobs.copy_(torch.tensor(knobs))
            if self._captured is None:
                self._captured = capture(self._step_with_knobs, batch, noise, self._changed())
                self.records = self._captured is not None
            if self._captured is not None:
                return self._captured(batch, noise)
        vlb = self._gradient(batch, noise)
        with torch.no_grad():
            self._adam(knobs)
        return vlb

    def _next_knobs(self, rate: float) -> tuple[float, float, float]:
        """What changes from step to step: 1 / root of the second moment's correction, step size, weight of the average."""
        self.n_steps += 1
        ema = self.task.config.ema
        decay = 0.0 if ema is None else min(ema, (1 + self.n_steps) / (10 + self.n_steps))
        return 1 / sqrt(1 - _BETA2**self.n_steps), rate / (1 - _BETA1**self.n_steps), 1 - decay

    def _gradient(self, batch: Batch, noise: Tensor) -> Tensor:
        """Put the gradient into the parameters' buffer; returns the mean VLB of each model, (E,)."""
        return self.bound(batch, noise, self.regularise).mean(1)

    def _adam(self, knobs: tuple[float, float, float]) -> None:
        """Move weights and moving average, with plain numbers."""
        correction, size, weight = knobs
        root = self._moments().mul_(correction).add_(_EPS)
        if self.damping is not None:
            root.div_(self.damping)
        self.parameters.flat.addcdiv_(self.first, root, value=-size)
        if self.task.config.ema is not None:
            self.average.lerp_(self.parameters.flat, weight)

    def _moments(self) -> Tensor:
        """Update the moments; returns the root of the second one in the gradient's buffer, which is not needed any more."""
        gradient = self.parameters.gradient
        self.first.lerp_(gradient, 1 - _BETA1)
        self.second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        return torch.sqrt(self.second, out=gradient)

    def _step_with_knobs(self, batch: Batch, noise: Tensor) -> Tensor:
        """Do the same step with the numbers in `knobs` on the device, so that it can be captured once and replayed."""
        vlb = self._gradient(batch, noise)
        with torch.no_grad():
            correction, size, weight = self.knobs.unbind()
            root = self._moments().mul_(correction).add_(_EPS).div_(size)
            if self.damping is not None:
                root.div_(self.damping)
            self.parameters.flat.addcdiv_(self.first, root, value=-1.0)
            if self.task.config.ema is not None:
                self.average.lerp_(self.parameters.flat, weight)
        return vlb

    def _changed(self) -> list[Tensor]:
        """What a step changes in place."""
        return [self.parameters.flat, self.first, self.second, self.average]

    def validation(self, rows: Tensor) -> Validation:
        """Hold-out rows (E, n_val) with masks drawn once and for all."""
        task, shape, generator = self.task, self.parameters.shape, self.task.generator
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        per_row = len(rows) * task.config.n_importance * (shape.width + shape.n_outputs)
        at_once = max(16, _BULK // (2 * per_row))
        batches = [self._batch(some) for some in torch.split(rows, at_once, dim=1)]
        return Validation(self.parameters, task.rows.layout, task.config, self.floors, batches, seed)

    def reschedule(self, keeper: Keeper) -> None:
        """Lower the rates of models that have stalled."""
        if self.schedule.look(keeper.epochs, keeper.iwae):
            self.spread_factors()

    def spread_factors(self) -> None:
        """Hand each model's factor to all of its parameters."""
        if self.damping is not None:
            self.damping.copy_(self.parameters.spread(self.schedule.factors.to(self.damping.device)))


def kl_weight(epoch: int, warmup: int) -> float:
    """Weight of the KL divergence in an epoch, counted from 1: it grows evenly to 1 over the first `warmup` epochs.

    >>> [kl_weight(epoch, 4) for epoch in (1, 3, 5, 6)]
    [0.0, 0.5, 1.0, 1.0]
    """
    return min(1.0, (epoch - 1) / warmup) if warmup else 1.0


def shuffle(n_models: int, n_rows: int, generator: torch.Generator) -> Tensor:
    """Random orders of rows, (n_models, n_rows)."""
    return torch.rand(n_models, n_rows, generator=generator, device=generator.device).argsort(1)
