"""Full encoder, masked encoder and decoder of E networks at once, as batched matrix products.

Every parameter has a leading model axis E, so that all members of an ensemble and all restarts are one network. The three
parts are those of figure 2 of the paper: residual blocks ``h + leaky(lin(h))``, and skip connections that hand every hidden
state of the masked encoder, and its input, to the decoder by concatenation. A product with a concatenation is the sum of
two products, ``[h, memory] W = h W_h + memory W_m``; the second does not depend on z, so it is computed once per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, softplus

SLOPE = 0.01  # of LeakyReLU


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Widths of one network: D1 inputs, M features, D2 outputs, depth, width W, latent d.

    The masked encoder may get flags for known gaps, and both encoders columns of advice.
    """

    n_inputs: int
    n_features: int
    n_outputs: int
    depth: int
    width: int
    latent: int
    has_flags: bool
    n_advice: int = 0

    @property
    def full_width(self) -> int:
        """Inputs of the full encoder: encoded row, missing flags, mask, and (extension) advice."""
        return self.n_inputs + self.n_advice + 2 * self.n_features

    @property
    def masked_width(self) -> int:
        """Inputs of the masked encoder: encoded known features, mask, and (extensions) flags of known gaps, advice."""
        return self.n_inputs + self.n_advice + self.n_features * (2 if self.has_flags else 1)

    def parameters(self) -> dict[str, tuple[tuple[int, ...], int]]:
        """Shape of every parameter of one network, and the fan-in that its initial range comes from."""
        W, d, n = self.width, self.latent, self.depth + 1
        out_fan = W + self.masked_width
        shapes: dict[str, tuple[tuple[int, ...], int]] = {
            "full_in.weight": ((self.full_width, W), self.full_width),
            "full_in.bias": ((1, W), self.full_width),
            "masked_in.weight": ((self.masked_width, W), self.masked_width),
            "masked_in.bias": ((1, W), self.masked_width),
        }
        for i in range(self.depth):  # full encoder first, masked encoder second
            shapes[f"encoder_{i}.weight"] = ((2, W, W), W)
            shapes[f"encoder_{i}.bias"] = ((2, 1, W), W)
        shapes["heads.weight"] = ((2, W, 2 * d), W)
        shapes["heads.bias"] = ((2, 1, 2 * d), W)
        shapes["decoder_in.weight"] = ((d, W), d)
        shapes["decoder_in.bias"] = ((1, W), d)
        for k in range(n):
            shapes[f"decoder_{k}.weight"] = ((W, W), 2 * W)
        shapes["memory.weight"] = ((n, W, W), 2 * W)
        shapes["memory.bias"] = ((n, 1, W), 2 * W)
        shapes["output.weight"] = ((W, self.n_outputs), out_fan)
        shapes["output_skip.weight"] = ((self.masked_width, self.n_outputs), out_fan)
        shapes["output.bias"] = ((1, self.n_outputs), out_fan)
        return shapes

    @property
    def n_parameters(self) -> int:
        """Number of parameters of one network."""
        return sum(prod(shape) for shape, _ in self.parameters().values())


class Parameters:
    """Parameters of E networks: named tensors (E, ...) that are windows into one flat buffer, and so are their gradients.

    Optimiser, moving average, snapshots and storage then work on single vectors.
    """

    def __init__(self, shape: NetworkShape, n_models: int, device: torch.device) -> None:
        self.shape, self.n_models = shape, n_models
        self.flat = torch.zeros(n_models * shape.n_parameters, device=device)
        self.gradient = torch.zeros_like(self.flat)
        self._model_of: Tensor | None = None
        self.tensors: dict[str, Tensor] = self.windows(self.flat)
        for name, window in self.windows(self.gradient).items():
            self.tensors[name] = self.tensors[name].detach().requires_grad_()
            self.tensors[name].grad = window

    def windows(self, flat: Tensor) -> dict[str, Tensor]:
        """Named windows (E, ...) into a flat vector with one number per parameter."""
        found, start = {}, 0
        for name, (shape, _) in self.shape.parameters().items():
            size = self.n_models * prod(shape)
            found[name] = flat[start : start + size].view(self.n_models, *shape)
            start += size
        return found

    def choose(self, flat: Tensor, models: Tensor) -> Tensor:
        """Vector of some models out of a vector of all of them."""
        return torch.cat([window.index_select(0, models).reshape(-1) for window in self.windows(flat).values()])

    def spread(self, values: Tensor) -> Tensor:
        """Values of the models, (E,), as a flat vector: one for each of their parameters."""
        if self._model_of is None:
            every = torch.arange(self.n_models, device=self.flat.device)
            sizes = [prod(shape) for shape, _ in self.shape.parameters().values()]
            self._model_of = torch.cat([every.repeat_interleave(size) for size in sizes])
        return values.index_select(0, self._model_of)

    def finite(self, flat: Tensor) -> Tensor:
        """Whether all numbers of each model are finite, shape (E,)."""
        sums = [window.abs().flatten(1).amax(1) for window in self.windows(flat).values() if window.numel()]
        return torch.isfinite(torch.stack(sums)).all(0)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw all parameters uniformly within +-1 / sqrt(fan-in)."""
        fans = self.shape.parameters()
        for name, window in self.windows(self.flat).items():
            bound = 1 / sqrt(max(1, fans[name][1]))
            window.uniform_(-bound, bound, generator=generator)

    def start_at(self, output_bias: Tensor) -> None:
        """Zero the output layer and set its bias to (D2,) or (E, D2), so that outputs do not depend on anything yet."""
        windows = self.windows(self.flat)
        windows["output.weight"].zero_()
        windows["output_skip.weight"].zero_()
        windows["output.bias"].copy_(output_bias.reshape(-1, 1, self.shape.n_outputs))


class Latent(NamedTuple):
    """Mean and scale (E, B, d) of a diagonal Gaussian over latents."""

    mean: Tensor
    scale: Tensor


class Skips(NamedTuple):
    """What the masked encoder hands to the decoder, already multiplied by the decoder's weights.

    `memories` holds depth + 1 tensors (E, B, W), the deepest state first; `output` is (E, B, D2).
    """

    memories: tuple[Tensor, ...]
    output: Tensor


def encode(
    tensors: dict[str, Tensor], full_input: Tensor, masked_input: Tensor, floor: float
) -> tuple[Latent, Latent, Skips]:
    """Run both encoders on (E, B, .) inputs; returns the full encoder's latent, the masked encoder's, and the skips."""
    full = leaky_relu(torch.baddbmm(tensors["full_in.bias"], full_input, tensors["full_in.weight"]), SLOPE)
    masked = leaky_relu(torch.baddbmm(tensors["masked_in.bias"], masked_input, tensors["masked_in.weight"]), SLOPE)
    h = torch.stack([full, masked], dim=1)  # (E, 2, B, W): the encoders are alike from here on
    states = [masked]
    for i in range(_depth(tensors)):
        h = h + leaky_relu(_both(h, tensors, f"encoder_{i}"), SLOPE)
        states.append(h[:, 1])
    mean, raw = _both(h, tensors, "heads").chunk(2, dim=-1)
    scale = softplus(raw).clamp(min=floor)
    (full_mean, masked_mean), (full_scale, masked_scale) = mean.unbind(1), scale.unbind(1)
    skips = _skips(tensors, states, masked_input)
    return Latent(full_mean, full_scale), Latent(masked_mean, masked_scale), skips


def encode_masked(tensors: dict[str, Tensor], masked_input: Tensor, floor: float) -> tuple[Latent, Skips]:
    """Run the masked encoder alone, as in the employment phase, feature-major: all arrays are (E, features, B)."""

    def affine(weight: Tensor, h: Tensor, bias: Tensor) -> Tensor:
        return torch.bmm(weight.mT, h).add_(bias.mT)  # baddbmm would write out the bias first

    h = leaky_relu(affine(tensors["masked_in.weight"], masked_input, tensors["masked_in.bias"]), SLOPE)
    states = [h]
    for i in range(_depth(tensors)):
        h = h + leaky_relu(affine(tensors[f"encoder_{i}.weight"][:, 1], h, tensors[f"encoder_{i}.bias"][:, 1]), SLOPE)
        states.append(h)
    mean, raw = affine(tensors["heads.weight"][:, 1], h, tensors["heads.bias"][:, 1]).chunk(2, dim=1)
    memories = tuple(
        affine(tensors["memory.weight"][:, k], state, tensors["memory.bias"][:, k])
        for k, state in enumerate(states[::-1])
    )
    output = affine(tensors["output_skip.weight"], masked_input, tensors["output.bias"])
    return Latent(mean, softplus(raw).clamp(min=floor)), Skips(memories, output)


def _depth(tensors: dict[str, Tensor]) -> int:
    return sum(name.startswith("encoder_") for name in tensors) // 2


def _both(h: Tensor, tensors: dict[str, Tensor], name: str) -> Tensor:
    """One affine layer of both encoders, (E, 2, B, in) -> (E, 2, B, out)."""
    bias, weight = tensors[f"{name}.bias"].flatten(0, 1), tensors[f"{name}.weight"].flatten(0, 1)
    return torch.baddbmm(bias, h.flatten(0, 1), weight).view(*h.shape[:3], -1)


def _skips(tensors: dict[str, Tensor], states: list[Tensor], masked_input: Tensor) -> Skips:
    stacked = torch.stack(states[::-1], dim=1)  # (E, depth + 1, B, W)
    weight, bias = tensors["memory.weight"].flatten(0, 1), tensors["memory.bias"].flatten(0, 1)
    memories = torch.baddbmm(bias, stacked.flatten(0, 1), weight).view(*stacked.shape[:3], -1)
    output = torch.baddbmm(tensors["output.bias"], masked_input, tensors["output_skip.weight"])
    return Skips(memories.unbind(1), output)


def decode(tensors: dict[str, Tensor], z: Tensor, skips: Skips) -> Tensor:
    """Run the decoder on latents (E, V, B, d), V of them per row, -> outputs (E, V, B, D2)."""
    E, V, B, _ = z.shape

    def affine(h: Tensor, weight: Tensor, added: Tensor) -> Tensor:
        if V == 1:
            return torch.baddbmm(added, h, weight)
        product = torch.bmm(h, weight).view(E, V, B, -1)
        return (product + added.unsqueeze(1)).view(E, V * B, -1)

    first = torch.baddbmm(tensors["decoder_in.bias"], z.reshape(E, V * B, -1), tensors["decoder_in.weight"])
    h = leaky_relu(first, SLOPE)
    for k, memory in enumerate(skips.memories):
        h = h + leaky_relu(affine(h, tensors[f"decoder_{k}.weight"], memory), SLOPE)
    return affine(h, tensors["output.weight"], skips.output).view(E, V, B, -1)
