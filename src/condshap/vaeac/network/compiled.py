"""Known columns, latent noise -> decoder outputs of rows that have one latent each: a compiled pass through one network.

Such rows share no work of the encoder, and layers are so small that moving numbers takes longer than products. So a block of
rows goes through all layers at once and never leaves the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from condshap.numerics.jit import entry_kernel, kernel, reordering_kernel
from condshap.vaeac.network.layers import SLOPE

Singles = npt.NDArray[np.float32]
Weights = dict[str, npt.NDArray[Any]]

BLOCK = 256  # rows at once
_STEP = 4  # widths are multiples of it, as many inputs and outputs of a layer as are looked at together
_LEAKY = np.float32(SLOPE)
_MOST = 40.0  # exponents beyond which nothing is left


class Ends(NamedTuple):
    """Layers for the columns that are known and the outputs that are wanted; weights (in, out) and biases (out,)."""

    first: Singles
    first_bias: Singles
    skip: Singles
    skip_bias: Singles
    output: Singles


class Inner(NamedTuple):
    """All other layers; weights (..., in, out) and biases (..., out), deeper memories first as in the decoder."""

    encoder: Singles
    encoder_bias: Singles
    heads: Singles
    heads_bias: Singles
    decoder_in: Singles
    decoder_in_bias: Singles
    memory: Singles
    memory_bias: Singles
    decoder: Singles

    @classmethod
    def of(cls, weights: Weights) -> Inner:
        """Weights of one member by name, padded with zeros; means and scales of latents are padded each for itself."""
        depth = len(weights["memory.weight"]) - 1
        heads, heads_bias = (np.split(weights[f"heads.{part}"][1], 2, axis=-1) for part in ("weight", "bias"))
        return cls(
            encoder=pad(np.array([weights[f"encoder_{i}.weight"][1] for i in range(depth)])),
            encoder_bias=pad_bias(np.array([weights[f"encoder_{i}.bias"][1, 0] for i in range(depth)])),
            heads=np.concatenate([pad(half) for half in heads], axis=1),
            heads_bias=np.concatenate([pad_bias(half[0]) for half in heads_bias]),
            decoder_in=pad(weights["decoder_in.weight"]),
            decoder_in_bias=pad_bias(weights["decoder_in.bias"][0]),
            memory=pad(weights["memory.weight"]),
            memory_bias=pad_bias(weights["memory.bias"][:, 0]),
            decoder=pad(np.array([weights[f"decoder_{k}.weight"] for k in range(depth + 1)])),
        )


def pad(weights: npt.NDArray[Any]) -> Singles:
    """Weights (..., in, out) with zeros for more inputs and outputs, up to multiples of four."""
    padding = [(0, 0)] * (weights.ndim - 2) + [(0, -size % _STEP) for size in weights.shape[-2:]]
    return np.ascontiguousarray(np.pad(weights, padding), dtype=np.float32)


def pad_bias(bias: npt.NDArray[Any]) -> Singles:
    """Biases (..., out) with zeros for more outputs, up to a multiple of four."""
    padding = [(0, 0)] * (bias.ndim - 1) + [(0, -bias.shape[-1] % _STEP)]
    return np.ascontiguousarray(np.pad(bias, padding), dtype=np.float32)


@entry_kernel
def pass_singles(
    ends: Ends, inner: Inner, floor: float, x: Singles, noise: Singles, out: Singles, know_the_same: bool
) -> None:
    """Write outputs (D2, n) for known columns `x` (D, n) and normal numbers `noise` (d, n); n is a multiple of BLOCK.

    Where all rows know the same, `x` may be a block of its own, and the encoder runs only once.
    """
    n_states, width, d = len(inner.memory), ends.first.shape[1], len(inner.decoder_in)
    known, latent = np.zeros((len(ends.first), BLOCK), np.float32), np.zeros((2 * d, BLOCK), np.float32)
    memories, z = np.empty((n_states, width, BLOCK), np.float32), np.empty((d, BLOCK), np.float32)
    scratch = np.empty((2, width, BLOCK), np.float32)
    skipped = np.empty((ends.skip.shape[1], BLOCK), np.float32)
    found = np.empty_like(skipped)
    for start in range(0, out.shape[1], BLOCK):
        if start == 0 or not know_the_same:
            _take(x, start, known)
            _encode(ends, inner, floor, known, scratch, latent, memories)
            _set(ends.skip_bias, skipped)
            _add_product(ends.skip, known, skipped)
        _draw_latent(latent, noise, start, z)
        _decode(inner, memories, z, scratch)
        _copy(skipped, found)
        _add_product(ends.output, scratch[0], found)
        _put(found, out, start)


@kernel
def _encode(
    ends: Ends, inner: Inner, floor: float, known: Singles, scratch: Singles, latent: Singles, memories: Singles
) -> None:
    """Write means and scales (2 d, B) of latents, and hidden states as the decoder takes them, (depth + 1, W, B)."""
    depth, h, t = len(inner.encoder), scratch[0], scratch[1]
    _set(ends.first_bias, h)
    _add_product(ends.first, known, h)
    _leak(h)
    for i in range(depth + 1):
        _set(inner.memory_bias[depth - i], memories[depth - i])
        _add_product(inner.memory[depth - i], h, memories[depth - i])
        if i < depth:
            _set(inner.encoder_bias[i], t)
            _add_product(inner.encoder[i], h, t)
            _leak(t)
            _add(t, h)
    _set(inner.heads_bias, latent)
    _add_product(inner.heads, h, latent)
    _soften(latent[len(latent) // 2 :], floor)


@kernel
def _draw_latent(latent: Singles, noise: Singles, start: int, z: Singles) -> None:
    z[:] = 0.0
    for k in range(len(noise)):
        mean, scale, drawn = latent[k], latent[len(z) + k], z[k]
        for p in range(BLOCK):
            drawn[p] = mean[p] + scale[p] * noise[k, start + p]


@kernel
def _decode(inner: Inner, memories: Singles, z: Singles, scratch: Singles) -> None:
    """Write the decoder's last hidden state (W, B) into the first half of `scratch` (2, W, B)."""
    h, t = scratch[0], scratch[1]
    _set(inner.decoder_in_bias, h)
    _add_product(inner.decoder_in, z, h)
    _leak(h)
    for k in range(len(memories)):
        _copy(memories[k], t)
        _add_product(inner.decoder[k], h, t)
        _leak(t)
        _add(t, h)


@reordering_kernel
def _add_product(weights: Singles, x: Singles, out: Singles) -> None:
    """Add weights (in, out) times x (in, B) to `out` (out, B): four inputs and outputs at a time stay in registers."""
    for j in range(0, weights.shape[1], _STEP):
        o0, o1, o2, o3 = out[j], out[j + 1], out[j + 2], out[j + 3]
        for k in range(0, weights.shape[0], _STEP):
            x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
            a0, b0, c0, d0 = weights[k, j], weights[k + 1, j], weights[k + 2, j], weights[k + 3, j]
            a1, b1, c1, d1 = weights[k, j + 1], weights[k + 1, j + 1], weights[k + 2, j + 1], weights[k + 3, j + 1]
            a2, b2, c2, d2 = weights[k, j + 2], weights[k + 1, j + 2], weights[k + 2, j + 2], weights[k + 3, j + 2]
            a3, b3, c3, d3 = weights[k, j + 3], weights[k + 1, j + 3], weights[k + 2, j + 3], weights[k + 3, j + 3]
            for p in range(BLOCK):
                o0[p] = o0[p] + a0 * x0[p] + b0 * x1[p] + c0 * x2[p] + d0 * x3[p]
                o1[p] = o1[p] + a1 * x0[p] + b1 * x1[p] + c1 * x2[p] + d1 * x3[p]
                o2[p] = o2[p] + a2 * x0[p] + b2 * x1[p] + c2 * x2[p] + d2 * x3[p]
                o3[p] = o3[p] + a3 * x0[p] + b3 * x1[p] + c3 * x2[p] + d3 * x3[p]


@kernel
def _set(bias: Singles, out: Singles) -> None:
    for j in range(len(bias)):
        out[j, :] = bias[j]


@kernel
def _leak(x: Singles) -> None:
    for j in range(len(x)):
        row = x[j]
        for p in range(BLOCK):
            row[p] = max(row[p], _LEAKY * row[p])


@kernel
def _add(x: Singles, out: Singles) -> None:
    for j in range(len(x)):
        row, own = out[j], x[j]
        for p in range(BLOCK):
            row[p] += own[p]


@kernel
def _copy(x: Singles, out: Singles) -> None:
    for j in range(len(x)):
        row, own = out[j], x[j]
        for p in range(BLOCK):
            row[p] = own[p]


@kernel
def _take(x: Singles, start: int, out: Singles) -> None:
    for j in range(len(x)):
        for p in range(BLOCK):
            out[j, p] = x[j, start + p]


@kernel
def _put(x: Singles, out: Singles, start: int) -> None:
    for j in range(len(out)):
        for p in range(BLOCK):
            out[j, start + p] = x[j, p]


@kernel
def _soften(x: Singles, floor: float) -> None:
    for j in range(len(x)):
        row = x[j]
        for p in range(BLOCK):
            row[p] = max(_softplus(float(row[p])), floor)


@kernel
def _softplus(x: float) -> float:
    """log(1 + exp(x)) by series that vector units can do, off by 1e-9 at most."""
    y = max(-abs(x), -_MOST) * (1.0 / 64.0)
    w = 1.0 + y * (1.0 + y * 0.5 * (1.0 + y * (1 / 3) * (1.0 + y * 0.25 * (1.0 + y * 0.2 * (1.0 + y * (1 / 6))))))
    w = w * w
    w = w * w
    w = w * w
    w = w * w
    w = w * w
    w = w * w
    s = w / (2.0 + w)
    q = s * s
    tail = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q * (1 / 17))))
    return max(x, 0.0) + 2.0 * s * (1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * tail))))
