"""Encoded rows -> trained weights: Adam on all members and restarts at once, best weights by held-out IWAE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import torch
from torch import Tensor

from condshap.types import Floats
from condshap.vaeac.network.layers import NetworkShape, Parameters
from condshap.vaeac.network.likelihoods import marginal_bias
from condshap.vaeac.training.best_weights import Keeper, Trained, Validation, all_diverged, warn_divergence
from condshap.vaeac.training.checkpoint import Array, Checkpoint
from condshap.vaeac.training.learning_rate import Schedule
from condshap.vaeac.training.steps import Run, Task, shuffle

Progress = Callable[[int, int, float, float], None]
"""Called after an epoch with (epoch, epochs, mean VLB, mean IWAE or NaN)."""


@dataclass(frozen=True, slots=True, eq=False)
class Trainer:
    """Trains members; `fit` goes from start to end, `resume` goes on from a checkpoint.

    Attributes
    ----------
    digest : (32,) of the rows, kept in checkpoints
    """

    task: Task
    shape: NetworkShape
    seed: int
    digest: Array
    progress: Progress | None = None

    def fit(self, epochs_on_all: Floats | None = None) -> Trained:
        """Restart, train, keep the best; with `epochs_on_all` (members,) train on all rows for just so many epochs."""
        task, device, config = self.task, self.task.device, self.task.config
        task.generator.manual_seed(self.seed % 2**63)
        held_out, training = self._split(epochs_on_all is not None)
        members = torch.arange(len(task.scale_of), device=device).repeat_interleave(config.n_restarts)
        assert config.epochs is not None
        n_first = config.restart_epochs if config.n_restarts > 1 else 0
        last = max(n_first + 1, config.epochs if epochs_on_all is None else int(epochs_on_all.max()))
        schedule = self._schedule(len(members), first=0, last=last)
        run = Run(task, self._new_parameters(len(members)), members, training[members], schedule)
        if n_first:
            for epoch in range(1, n_first + 1):
                run.epoch(epoch)
                self._report(epoch, last, run)
            run = run.choose(self._best_restarts(run.vlb[-1]))
        stop = None if epochs_on_all is None else torch.as_tensor(epochs_on_all, device=device)[run.members]
        keeper = Keeper(run.parameters, run.members, held_out[run.members], stop)
        return self._train(run, keeper, first=n_first, last=last)

    def resume(self, point: Checkpoint, epochs: int) -> Trained:
        """Go on for more epochs, as if there had been no break; a cosine schedule begins anew."""
        first, last = point.epoch, point.epoch + epochs
        run = Run.restore(self.task, self.shape, point, self._schedule(len(point.members), first=first, last=last))
        keeper = Keeper.restore(run.parameters, point)
        self.task.generator.set_state(torch.from_numpy(point.before_validation))
        return self._train(run, keeper, first=first, last=last, then=torch.from_numpy(point.generator))

    def _schedule(self, n_models: int, *, first: int, last: int) -> Schedule:
        assert self.task.config.learning_rate is not None
        return Schedule.start(
            self.task.config.schedule, self.task.config.learning_rate, n_models, first=first, last=last
        )

    def _split(self, keep_all: bool) -> tuple[Tensor, Tensor]:
        """Positions of held-out (members, n_val) and of training rows (members, n_train), drawn anew for each member."""
        N, config = len(self.task.rows), self.task.config
        n_val = min(ceil(config.validation_share * N), config.max_validation or N, max(1, N - 1))
        shuffled = shuffle(len(self.task.scale_of), N, self.task.generator)
        if keep_all or N == 1:
            return shuffled[:, :n_val], shuffled
        return shuffled[:, :n_val], shuffled[:, n_val:]

    def _new_parameters(self, n_models: int) -> Parameters:
        rows, parameters = self.task.rows, Parameters(self.shape, n_models, self.task.device)
        parameters.initialise(self.task.generator)
        if self.task.config.zero_init:
            parameters.start_at(marginal_bias(rows.layout, rows.codes, rows.missing))
        return parameters

    def _best_restarts(self, vlb: Tensor) -> Tensor:
        """Positions of the restart with the highest training VLB of each member, without members that all diverged."""
        by_member = vlb.view(len(self.task.scale_of), self.task.config.n_restarts)
        lost = int((~torch.isfinite(by_member)).sum())
        by_member = torch.where(torch.isfinite(by_member), by_member, -torch.inf)
        best, position = by_member.max(1)
        kept = torch.isfinite(best)
        if not kept.any():
            raise all_diverged()
        if lost:
            warn_divergence(f"{lost} of {by_member.numel()} restarts diverged and were dropped")
        return (torch.arange(len(best), device=best.device) * self.task.config.n_restarts + position)[kept]

    def _train(self, run: Run, keeper: Keeper, *, first: int, last: int, then: Tensor | None = None) -> Trained:
        """Train from epoch `first` + 1 to `last`; returns the best weights, or those after `keeper.stop` epochs.

        `then` is the state of the random numbers once the held-out masks are drawn, if training was interrupted.
        """
        before = self.task.generator.get_state()
        validation = run.validation(keeper.held_out)
        if then is not None:
            self.task.generator.set_state(then)
        for epoch in range(first + 1, last + 1):
            run.epoch(epoch)
            due = epoch % self.task.config.validate_every == 0 or keeper.stop is not None
            iwae = self._validate(run, keeper, validation, epoch) if due else float("nan")
            done = due and keeper.is_done(self.task.config.patience, since=max(first, self.task.config.kl_warmup or 0))
            if epoch == last or done:
                point = self._checkpoint(run, keeper, epoch, before)
                iwae = iwae if due else self._validate(run, keeper, validation, epoch)  # what is left needs a verdict
            self._report(epoch, last, run, iwae)
            if done:
                break
        return replace(keeper.result(run.vlb), checkpoint=point)

    def _validate(self, run: Run, keeper: Keeper, validation: Validation, epoch: int) -> float:
        iwae, kl = validation.estimate(run.averaged)
        keeper.offer(epoch, run.averaged, iwae, kl)
        run.reschedule(keeper)
        return float(iwae.mean())

    def _checkpoint(self, run: Run, keeper: Keeper, epoch: int, before: Tensor) -> Checkpoint:
        def array(tensor: Tensor) -> Array:
            return tensor.detach().cpu().numpy().copy()

        return Checkpoint(
            weights=array(run.parameters.flat), first=array(run.first), second=array(run.second),
            average=array(run.average), best=array(keeper.best), generator=array(self.task.generator.get_state()),
            before_validation=array(before), members=array(run.members), training=array(run.training),
            held_out=array(keeper.held_out), best_iwae=array(keeper.best_iwae), best_epoch=array(keeper.best_epoch),
            factors=array(run.schedule.factors), changed=array(run.schedule.changed), vlb=array(torch.stack(run.vlb)),
            progress=np.array([epoch, run.n_steps]), rows=self.digest,
            cuda=np.array(self.task.generator.device.type == "cuda"), **keeper.curves(),
        )  # fmt: skip

    def _report(self, epoch: int, epochs: int, run: Run, iwae: float = float("nan")) -> None:
        if self.progress is not None:
            self.progress(epoch, epochs, float(run.vlb[-1].mean()), iwae)


def refit(trainer: Trainer, trained: Trained) -> Trained:
    """Train the members again on all rows, each for as many epochs as were best for it; the history stays."""
    epochs = np.full(len(trainer.task.scale_of), float(trained.history.best_epoch.max()))
    epochs[list(trained.members)] = trained.history.best_epoch
    again = trainer.fit(epochs_on_all=epochs)
    kept = [i for i, member in enumerate(trained.members) if member in again.members]
    picked = {name: getattr(trained.history, name)[:, kept] for name in ("vlb", "iwae", "kl")}
    history = replace(trained.history, **picked, best_epoch=trained.history.best_epoch[kept])
    return Trained(again.parameters, again.members, history, again.held_out[:, :0])  # no row is held out any more
