"""Name of an arithmetic -> networks trained, or asked, with it, while everything else stays as it is.

The library itself trains in float32, as recorded graphs on an accelerator. What is here changes single things for the time
of a ``with`` block, by torch's own settings or by putting another function in the place of one of the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from condshap.vaeac.columns.encoded_rows import Batch
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.network import objective
from condshap.vaeac.network.layers import Latent, Parameters
from condshap.vaeac.sampling import decoder
from condshap.vaeac.training import steps

NOT_HERE = "not on this device"


@dataclass(frozen=True)
class Arithmetic:
    """A way to train: what stands in the table, a context from device and "quick", and whether it needs an accelerator."""

    title: str
    use: Callable[[str, bool], AbstractContextManager[Any]]
    only_cuda: bool = False


@contextmanager
def tf32() -> Iterator[None]:
    """Let float32 matrix products round their factors to 10 bits on tensor cores."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Differentiated:
    """The bound, and its gradient as torch finds it; stands in for the library's own, which is written out in float32."""

    def __init__(self, parameters: Parameters, layout: Layout, floors: Tensor, latent_floor: float) -> None:
        self.parameters, self.layout, self.floors, self.latent_floor = parameters, layout, floors, latent_floor
        self.bound = objective.lower_bound

    def __call__(self, batch: Batch, noise: Tensor, regularise: objective.Regulariser) -> Tensor:
        """Store the gradient; returns the VLB (E, B)."""
        settings = {"latent_floor": self.latent_floor, "regularise": regularise}
        found = self.bound(self.parameters.tensors, self.layout, batch, noise, self.floors, **settings)
        self.parameters.gradient.zero_()
        (-found.regularised.mean(1).sum()).backward()
        return found.vlb.detach()


@contextmanager
def bf16_steps(device: str) -> Iterator[None]:
    """Run encoders and decoder of training steps under bf16 autocast; the loss and validation stay in float32."""

    def halved(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if not torch.is_grad_enabled():  # validation
                return function(*given)
            with torch.autocast(device, torch.bfloat16, cache_enabled=False):  # a recorded step must cast every time
                return function(*given)

        return call

    encode_half, decode_half = halved(objective.encode), halved(objective.decode)

    def encode(*given: Any) -> Any:
        q, p, skips = encode_half(*given)
        return *(Latent(latent.mean.float(), latent.scale.float()) for latent in (q, p)), skips

    with (
        patch.object(steps, "BoundGradient", Differentiated),
        patch.object(objective, "encode", encode),
        patch.object(objective, "decode", lambda *given: decode_half(*given).float()),
    ):
        yield


def compiled_steps(*, quick: bool) -> AbstractContextManager[Any]:
    """Compile the bound and its gradient; a quick run does without the code generator."""
    compiled = torch.compile(objective.lower_bound, dynamic=False, backend="aot_eager" if quick else "inductor")

    class Compiled(Differentiated):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.bound = compiled

    return patch.object(steps, "BoundGradient", Compiled)


TRAINING = {
    "eager": Arithmetic("kernel by kernel, float32", lambda _device, _quick: patch.object(steps, "_GRAPHS", False)),
    "graphs": Arithmetic("graphs, float32", lambda _device, _quick: nullcontext(), only_cuda=True),
    "tf32": Arithmetic("graphs, tf32 products", lambda _device, _quick: tf32(), only_cuda=True),
    "bf16": Arithmetic("graphs, bf16 networks in steps", lambda device, _quick: bf16_steps(device)),
    "compiled": Arithmetic("graphs of `torch.compile`d steps", lambda _device, quick: compiled_steps(quick=quick)),
}


class HalfWorkspace(decoder.Workspace):
    """Samples go through the decoder in bf16; encoder, heads and draws stay in float32."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.weights = [[weight.bfloat16() for weight in member] for member in self.weights]
        self.z, self.h, self.t, self.outputs = (some.bfloat16() for some in (self.z, self.h, self.t, self.outputs))

    def condition(self, *given: Any) -> None:
        """Round what every layer adds."""
        super().condition(*given)
        self.added = [part.bfloat16() for part in self.added]

    def decode(self, *given: Any) -> decoder.Views:
        """Outputs in float32, as heads want them."""
        views = super().decode(*given)
        return views._replace(outputs=views.outputs.float())


SAMPLING = {
    "float32": Arithmetic("float32", lambda _device, _quick: nullcontext()),
    "tf32": Arithmetic("tf32 products", lambda _device, _quick: tf32(), only_cuda=True),
    "bf16": Arithmetic("bf16 decoder", lambda _device, _quick: patch.object(decoder, "Workspace", HalfWorkspace)),
}
