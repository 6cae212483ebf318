"""The variational lower bound of E networks and its gradient, written out.

A step of training is some two hundred small products and sums, of which automatic differentiation costs as much again as it
computes. So the derivatives are written here, layer by layer, straight into the buffer of gradients. They are the formulas
that torch would apply, in its order, so that weights come out the same to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, softplus

from condshap.vaeac.columns.encoded_rows import Batch
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.network.layers import SLOPE, Latent, Parameters
from condshap.vaeac.network.likelihoods import log_likelihood_gradient, softplus_gradient
from condshap.vaeac.network.objective import Regulariser, kl_divergence


class _Affine:
    """Products with one weight (n, in, out), of all models, and a bias (n, 1, out) where it has one of its own."""

    def __init__(self, parameters: Parameters, weight: str, bias: str | None = None) -> None:
        self.weight, self.weight_gradient = _windows(parameters, weight)
        self.bias: Tensor | None = None
        self.bias_gradient: Tensor | None = None
        if bias is not None:
            self.bias, self.bias_gradient = _windows(parameters, bias)

    def __call__(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        """Map (n, B, in) to (n, B, out), plus the bias or what is `added`."""
        start = self.bias if added is None else added
        assert start is not None
        return torch.baddbmm(start, x, self.weight)

    def learn(self, x: Tensor, gradient: Tensor) -> None:
        """Store the gradient of weight and bias, given the inputs and the gradient of the outputs (n, B, out)."""
        torch.bmm(x.mT, gradient, out=self.weight_gradient)
        if self.bias_gradient is not None:
            torch.sum(gradient, 1, keepdim=True, out=self.bias_gradient)

    def back(self, gradient: Tensor) -> Tensor:
        """Gradient of the inputs (n, B, in)."""
        return torch.bmm(gradient, self.weight.mT)

    def add_back(self, total: Tensor, gradient: Tensor) -> None:
        """Add the gradient of the inputs to `total` (n, B, in)."""
        total.baddbmm_(gradient, self.weight.mT)


def _windows(parameters: Parameters, name: str) -> tuple[Tensor, Tensor]:
    """A parameter of all models and its gradient as batches of matrices, (n, in, out)."""
    weight, gradient = (parameters.windows(flat)[name] for flat in (parameters.flat, parameters.gradient))
    return weight.flatten(0, -3), gradient.flatten(0, -3)


class _Encoded(NamedTuple):
    """What the encoders found.

    Attributes
    ----------
    hidden, active : (E, 2, B, W) inputs of their layers, then the deepest state; and what layers added to them
    states : (E, depth + 1, B, W) of the masked encoder, the deepest first
    raw, soft : (E, 2, B, d) scales of latents before and after softplus, not yet at least the floor
    """

    hidden: list[Tensor]
    active: list[Tensor]
    states: Tensor
    raw: Tensor
    soft: Tensor
    q: Latent
    p: Latent


class _Decoded(NamedTuple):
    """What the decoder found: inputs of its layers (E, B, W), then the deepest state; what they added; outputs."""

    hidden: list[Tensor]
    active: list[Tensor]
    outputs: Tensor


class BoundGradient:
    """Bound of models with these parameters, and its gradient, which goes to `parameters.gradient`.

    Parameters
    ----------
    floors : (E, 1, Mc) least standard deviations of the Gaussian heads
    latent_floor : least standard deviation of latents
    """

    def __init__(self, parameters: Parameters, layout: Layout, floors: Tensor, latent_floor: float) -> None:
        self.layout, self.floors, self.latent_floor = layout, floors, latent_floor
        depth = parameters.shape.depth

        def affine(name: str, bias: bool = True) -> _Affine:
            return _Affine(parameters, f"{name}.weight", f"{name}.bias" if bias else None)

        self.full_in, self.masked_in, self.heads = affine("full_in"), affine("masked_in"), affine("heads")
        self.encoder = [affine(f"encoder_{i}") for i in range(depth)]
        self.memory, self.decoder_in = affine("memory"), affine("decoder_in")
        self.decoder = [affine(f"decoder_{k}", bias=False) for k in range(depth + 1)]
        self.output = affine("output", bias=False)
        self.skip = _Affine(parameters, "output_skip.weight", "output.bias")

    @torch.no_grad()
    def __call__(self, batch: Batch, noise: Tensor, regularise: Regulariser) -> Tensor:
        """Store the gradient of minus the regularised bound, mean over rows and sum over models; returns the VLB (E, B).

        `noise` (E, B, d) makes one reparameterised latent per row (eq. 6 of the paper).
        """
        found = self._encode(batch)
        q, p = found.q, found.p
        z = torch.addcmul(q.mean, q.scale, noise)
        memories = self.memory(found.states.flatten(0, 1)).view_as(found.states)
        skip = self.skip(batch.masked_input)
        decoded = self._decode(z, memories, skip)
        E, B = noise.shape[:2]
        upstream = noise.new_full((E, B), -1.0).div_(B)
        fit, outer = log_likelihood_gradient(self.layout, decoded.outputs, batch.targets, self.floors, upstream)
        divergence = kl_divergence(q, p).sum(-1)
        from_latent, from_memories = self._decoder_gradient(z, memories, decoded, outer)
        self.skip.learn(batch.masked_input, outer)
        by_q, by_p = regularise.gradient(q, p, upstream)
        by_q = Latent(by_q.mean + from_latent, by_q.scale + from_latent * noise)
        self._encoder_gradient(batch, found, (by_q, by_p), from_memories)
        return fit - divergence

    def _encode(self, batch: Batch) -> _Encoded:
        """Run both encoders; the masked one's states are stored the deepest first, (E, depth + 1, B, W)."""
        full, masked = self.full_in(batch.full_input), self.masked_in(batch.masked_input)
        E, B, W = full.shape
        h, depth = full.new_empty(E, 2, B, W), len(self.encoder)
        states = full.new_empty(E, depth + 1, B, W)
        leaky_relu(full, SLOPE, inplace=True)
        leaky_relu(masked, SLOPE, inplace=True)
        h[:, 0], h[:, 1], states[:, depth] = full, masked, masked
        hidden, active = [h], []
        for i, layer in enumerate(self.encoder):
            active.append(leaky_relu(layer(h.flatten(0, 1)), SLOPE, inplace=True).view_as(h))
            h = h + active[-1]
            states[:, depth - 1 - i] = h[:, 1]
            hidden.append(h)
        mean, raw = self.heads(h.flatten(0, 1)).view(E, 2, B, -1).chunk(2, dim=-1)
        soft = softplus(raw)
        scale = soft.clamp(min=self.latent_floor)
        q, p = (Latent(mean[:, side], scale[:, side]) for side in (0, 1))
        return _Encoded(hidden, active, states, raw, soft, q, p)

    def _decode(self, z: Tensor, memories: Tensor, skip: Tensor) -> _Decoded:
        h = leaky_relu(self.decoder_in(z), SLOPE, inplace=True)
        hidden, active = [h], []
        for k, layer in enumerate(self.decoder):
            active.append(leaky_relu(layer(h, memories[:, k]), SLOPE, inplace=True))
            h = h + active[-1]
            hidden.append(h)
        return _Decoded(hidden, active, self.output(h, skip))

    def _decoder_gradient(self, z: Tensor, memories: Tensor, decoded: _Decoded, outer: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the latents (E, B, d) and of the states behind memories (E, depth + 1, B, W)."""
        self.output.learn(decoded.hidden[-1], outer)
        gradient, by_memory = self.output.back(outer), torch.empty_like(memories)
        for k in reversed(range(len(self.decoder))):
            inner = leaky_gradient(gradient, decoded.active[k])
            by_memory[:, k] = inner
            self.decoder[k].learn(decoded.hidden[k], inner)
            self.decoder[k].add_back(gradient, inner)
        inner = leaky_gradient(gradient, decoded.hidden[0])
        self.decoder_in.learn(z, inner)
        return self.decoder_in.back(inner), by_memory

    def _encoder_gradient(self, batch: Batch, found: _Encoded, by: tuple[Latent, Latent], by_memory: Tensor) -> None:
        E, n, B, W = by_memory.shape
        self.memory.learn(found.states.flatten(0, 1), by_memory.flatten(0, 1))
        by_states = self.memory.back(by_memory.flatten(0, 1)).view(E, n, B, W)
        mean, scale = (torch.stack(list(both), dim=1) for both in zip(*by, strict=True))
        scale.masked_fill_(found.soft < self.latent_floor, 0.0)
        heads = torch.cat([mean, softplus_gradient(scale, found.raw)], dim=-1).flatten(0, 1)
        self.heads.learn(found.hidden[-1].flatten(0, 1), heads)
        gradient = self.heads.back(heads).view(E, 2, B, W)
        for i in reversed(range(len(self.encoder))):
            gradient[:, 1].add_(by_states[:, n - 2 - i])
            inner = leaky_gradient(gradient, found.active[i]).flatten(0, 1)
            self.encoder[i].learn(found.hidden[i].flatten(0, 1), inner)
            self.encoder[i].add_back(gradient.flatten(0, 1), inner)
        gradient[:, 1].add_(by_states[:, n - 1])
        first = leaky_gradient(gradient, found.hidden[0])
        self.full_in.learn(batch.full_input, first[:, 0])
        self.masked_in.learn(batch.masked_input, first[:, 1])


def leaky_gradient(upstream: Tensor, active: Tensor) -> Tensor:
    """Gradient of LeakyReLU, times `upstream`, given its result."""
    found: Tensor = torch.ops.aten.leaky_relu_backward(upstream, active, SLOPE, True)
    return found
