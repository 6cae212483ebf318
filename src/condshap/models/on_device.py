"""Predictor -> a model for rows on a device: trees and torch modules run there, all others get copies on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from condshap.models.predictor import Predictor
from condshap.trees.cuda import DeviceTrees, predict_device
from condshap.types import LARGEST


class DeviceModel(Protocol):
    """A model that is called in two halves, so that the next rows can be drawn between them.

    `keeps_rows_on_device` is False where they are copied to the host.
    """

    keeps_rows_on_device: ClassVar[bool]

    def begin(self, rows: Tensor) -> Any:
        """Start on rows (n, M), without waiting for the device."""
        ...

    def finish(self, begun: Any) -> Tensor:
        """Finite outputs (n, O) on the device."""
        ...


def on_device(predictor: Predictor) -> DeviceModel:
    """Keep as much of the model's work on the device as it allows."""
    if predictor.device_trees is not None and predictor.takes_plain_rows:
        return TreesOnDevice(predictor, predictor.device_trees)
    if isinstance(predictor.model, torch.nn.Module) and predictor.takes_plain_rows:
        return ModuleOnDevice(predictor)
    return HostModel(predictor)


@dataclass(frozen=True, slots=True)
class TreesOnDevice:
    """Trees that are evaluated where the rows are."""

    keeps_rows_on_device: ClassVar[bool] = True
    predictor: Predictor
    trees: DeviceTrees

    def begin(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Predict, and find out whether rows and outputs are fit."""
        ordered = self.predictor.in_order(rows)
        outputs = self.predictor.explained(predict_device(self.trees, ordered))
        return rows, outputs, _are_fit(ordered, self.trees) & (outputs.abs() <= LARGEST).all()

    def finish(self, begun: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Outputs; rows that the model refuses go to the model itself, which says so in its own words."""
        rows, outputs, fit = begun
        if bool(fit):
            return outputs
        return torch.as_tensor(self.predictor(rows.cpu().numpy()), device=rows.device)


def _are_fit(rows: Tensor, trees: DeviceTrees) -> Tensor:
    """Whether rows (n, M) hold only numbers that the model takes, as a tensor, so that nothing waits."""
    accepts, is_narrow = trees.trees.accepts, trees.trees.dtype == np.float32
    if accepts == "anything":
        return torch.ones((), dtype=torch.bool, device=rows.device)
    narrow = rows.to(torch.float32) if is_narrow else rows
    return narrow.isfinite().all() if accepts == "finite" else ~narrow.isinf().any()


@dataclass(frozen=True, slots=True)
class ModuleOnDevice:
    """A torch module, which gets tensors and runs on its own device."""

    keeps_rows_on_device: ClassVar[bool] = True
    predictor: Predictor

    def begin(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Call the module."""
        return rows, self.predictor.call_module(rows)

    def finish(self, begun: tuple[Tensor, Tensor]) -> Tensor:
        """Outputs, if they are finite; otherwise the predictor says what is wrong."""
        rows, outputs = begun
        if outputs.ndim == 2 and len(outputs) == len(rows) and bool((outputs.abs() <= LARGEST).all()):
            return outputs.to(rows.device, torch.float64)
        return torch.as_tensor(self.predictor(rows.cpu().numpy()), device=rows.device)


class HostModel:
    """Any other model, on the host: rows are copied to page-locked memory while the device draws the next ones."""

    keeps_rows_on_device: ClassVar[bool] = False

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.buffers = [torch.empty(0, dtype=torch.float64) for _ in range(2)]

    def begin(self, rows: Tensor) -> tuple[torch.device, Tensor, Any]:
        """Start the copy."""
        host_rows = self._buffer(rows)
        host_rows.copy_(rows, non_blocking=True)
        if not rows.is_cuda:
            return rows.device, host_rows, None
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return rows.device, host_rows, arrived

    def finish(self, begun: tuple[torch.device, Tensor, Any]) -> Tensor:
        """Wait for the copy and call the model."""
        device, host_rows, arrived = begun
        if arrived is not None:
            arrived.synchronize()
        return torch.as_tensor(self.predictor.predict_fast(host_rows.numpy()), device=device)

    def _buffer(self, rows: Tensor) -> Tensor:
        """Take turns with two buffers (n, M): one is being read by the model while the other is being filled."""
        buffer = self.buffers.pop(0)
        if buffer.numel() < rows.numel():
            buffer = torch.empty(rows.numel(), dtype=rows.dtype, pin_memory=rows.is_cuda)
        self.buffers.append(buffer)
        return buffer[: rows.numel()].view(rows.shape)
