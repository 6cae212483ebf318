"""Rows with noisy Shapley values -> networks that have learned their means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor

from condshap.amortised.encoding import Inputs
from condshap.amortised.network import MEMBERS, Members, widened
from condshap.runtime.progress import progress_line
from condshap.seeding import derive_seed
from condshap.types import Floats, Indices
from condshap.vaeac.threads import single_threaded_torch

_BATCH = 256
_MIN_STEPS, _MAX_STEPS, _EPOCHS = 2400, 6000, 100
_RATE, _DECAY = 3e-3, 1e-1
_CHECKS = 20  # of rows that stop training early
_PATIENCE = 6  # checks without a better one


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is to be learned of n rows.

    Attributes
    ----------
    inputs : (n, D)
    targets : (n, P O) noisy values, and `sums` (n, O) what they add up to, both in units of `Scale`
    active : (n, P) players that may have a value other than 0
    counts : (n,) how often each row was explained
    """

    inputs: Inputs
    targets: Floats
    sums: Floats
    active: Floats
    counts: Floats

    def take(self, rows: Indices) -> Lesson:
        """Some of the rows."""
        targets, sums, active, counts = (part[rows] for part in (self.targets, self.sums, self.active, self.counts))
        return Lesson(self.inputs[rows], targets, sums, active, counts)

    def tensors(self) -> tuple[Tensor, ...]:
        """All of it in single precision."""
        parts = (widened(self.inputs), self.targets, self.sums, self.active, self.counts)
        return tuple(torch.from_numpy(np.ascontiguousarray(part, dtype=np.float32)) for part in parts)


def train(lesson: Lesson, stopping: Lesson, seed: int, *, show: bool | None = False) -> Members:
    """Networks that fit a lesson, as they were when they fitted that of rows they do not learn from best.

    `show` is whether a line tells how far that is, see `condshap.runtime.progress.progress_line`.
    """
    members = Members.new(lesson.inputs.shape[1], lesson.targets.shape[1], derive_seed(seed, "amortised network"))
    n_steps = int(np.clip(_EPOCHS * ceil(len(lesson.inputs) / _BATCH), _MIN_STEPS, _MAX_STEPS))
    data, held_out = lesson.tensors(), stopping.tensors()
    best, least, waited = members.copy(), np.inf, 0
    watched = progress_line("training", show=show, unit="steps", total=n_steps, may_end_early=True)
    with single_threaded_torch(), watched as line:
        for tensor in members.parameters:
            tensor.requires_grad_()
        optimiser = torch.optim.AdamW(members.parameters, lr=_RATE, weight_decay=_DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=n_steps, pct_start=0.2)
        for step, rows in enumerate(_batches(len(lesson.inputs), n_steps, seed), start=1):
            optimiser.zero_grad()
            _loss(members, *(part[rows] for part in data)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            line.reach(step)
            if step % (n_steps // _CHECKS) == 0:
                found = _held_out(members, held_out)
                best, least, waited = (members.copy(), found, 0) if found < least else (best, least, waited + 1)
                if waited > _PATIENCE:
                    break
    return best


def _batches(n: int, n_steps: int, seed: int) -> Iterator[Tensor]:
    """Positions (E, B) for every step: each member goes through the rows in an order of its own."""
    random = torch.Generator().manual_seed(derive_seed(seed, "amortised batches") % 2**63)
    size = min(_BATCH, n)
    while n_steps > 0:
        orders = torch.stack([torch.randperm(n, generator=random) for _ in range(MEMBERS)])
        for start in range(0, n - size + 1, size):
            if n_steps > 0:
                yield orders[:, start : start + size]
            n_steps -= 1


def _loss(members: Members, x: Tensor, targets: Tensor, sums: Tensor, active: Tensor, counts: Tensor) -> Tensor:
    """Mean squared error over members, rows and values; rows count as often as they were explained."""
    errors = spread_remainder(members(x), sums, active) - targets
    return (errors**2 * counts.unsqueeze(-1)).mean()


def _held_out(members: Members, data: tuple[Tensor, ...]) -> float:
    """Error of the members' mean."""
    with torch.no_grad():
        x, targets, sums, active, counts = (part.unsqueeze(0) for part in data)
        found = spread_remainder(members(x.expand(MEMBERS, -1, -1)).mean(dim=0, keepdim=True), sums, active)
        return float(((found - targets) ** 2 * counts.unsqueeze(-1)).mean())


def spread_remainder(found: Tensor, sums: Tensor, active: Tensor) -> Tensor:
    """Values (..., P O) changed by equal parts, so that those of each output add up to `sums` (..., O)."""
    by_player = found.view(*found.shape[:-1], active.shape[-1], sums.shape[-1]) * active.unsqueeze(-1)
    missing = (sums - by_player.sum(dim=-2)) / active.sum(dim=-1, keepdim=True).clamp(min=1.0)
    return (by_player + missing.unsqueeze(-2) * active.unsqueeze(-1)).view_as(found)
