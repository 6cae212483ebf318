"""A training step recorded once on an accelerator and replayed: its several hundred small kernels cost one launch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from condshap.vaeac.columns.encoded_rows import Batch, Targets

Step = Callable[[Batch, Tensor], Tensor]
_WARM_UP = 3  # steps before recording, in which libraries set up what they need
_LOG = logging.getLogger(__name__)


class CapturedStep:
    """A recorded step: copies its inputs to where they were recorded and replays.

    Parameters
    ----------
    step : (batch, noise) -> (E,), changes weights in place; must not draw random numbers or wait for the device
    changed : tensors that a step changes, put back after the warm-up
    """

    def __init__(self, step: Step, batch: Batch, noise: Tensor, changed: Sequence[Tensor]) -> None:
        self.inputs = [part.clone() for part in _parts(batch, noise)]
        self.graph = torch.cuda.CUDAGraph()
        before = [tensor.clone() for tensor in changed]
        try:  # a warm-up that fails has moved the weights, too
            self._warm_up(step)
            with torch.cuda.graph(self.graph):
                self.output = step(*_batch(self.inputs))
        finally:
            with torch.no_grad():
                for tensor, value in zip(changed, before, strict=True):
                    tensor.copy_(value)

    def _warm_up(self, step: Step) -> None:
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(here)
        try:
            with torch.cuda.stream(aside):
                for _ in range(_WARM_UP):
                    step(*_batch(self.inputs))
        finally:
            here.wait_stream(aside)

    def __call__(self, batch: Batch, noise: Tensor) -> Tensor:
        """Run the step on other inputs of the same shapes; the result is overwritten by the next call."""
        for static, part in zip(self.inputs, _parts(batch, noise), strict=True):
            static.copy_(part)
        self.graph.replay()
        return self.output


def capture(step: Step, batch: Batch, noise: Tensor, changed: Sequence[Tensor]) -> CapturedStep | None:
    """Record a step, or return None, with a line in the log, where that is not possible."""
    try:
        return CapturedStep(step, batch, noise, changed)
    except RuntimeError as error:
        _LOG.warning("VAEAC: the training step could not be recorded, so it runs kernel by kernel: %s", error)
        return None


def _parts(batch: Batch, noise: Tensor) -> list[Tensor]:
    return [batch.full_input, batch.masked_input, *batch.targets, noise]


def _batch(parts: Sequence[Tensor]) -> tuple[Batch, Tensor]:
    full_input, masked_input, numbers, codes, counted, noise = parts
    return Batch(full_input, masked_input, Targets(numbers, codes, counted)), noise
