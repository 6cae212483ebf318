"""Members of an ensemble of small networks: their parameters, and what they answer for any number of rows.

Float32 products give other bits for other shapes, and narrow ones also for other places. So rows go through in tiles of one
fixed size, the last one padded, all widths are multiples of `MULTIPLE`, and there is one thread: what a row gets does not
depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import silu

from condshap.amortised.encoding import Inputs
from condshap.types import Floats
from condshap.vaeac.threads import single_threaded_torch

MEMBERS, WIDTH, DEPTH = 4, 256, 2
TILE, MULTIPLE = 512, 16
"""Rows at once, and what widths are multiples of."""


@dataclass(frozen=True, eq=False)
class Members:
    """Parameters of E networks.

    Attributes
    ----------
    weights, biases : (E, in, out) and (E, 1, out) of every layer
    n_outputs : how many of the last layer's columns mean something
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    n_outputs: int

    @classmethod
    def new(cls, n_inputs: int, n_outputs: int, seed: int) -> Members:
        """Begin with uniform numbers of the usual range, and with zeros in the last layer."""
        random = torch.Generator().manual_seed(seed % 2**63)
        widths = [padded(n_inputs), *[WIDTH] * DEPTH, padded(n_outputs)]
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        for fan_in, fan_out in pairwise(widths):
            reach = 0.0 if len(weights) == DEPTH else sqrt(3.0 / fan_in)
            weights.append((torch.rand((MEMBERS, fan_in, fan_out), generator=random) * 2 - 1) * reach)
            biases.append(torch.zeros((MEMBERS, 1, fan_out)))
        return cls(tuple(weights), tuple(biases), n_outputs)

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs (E, B, `n_outputs`) for inputs (E, B, in)."""
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if i == last else silu(x)
        return x[..., : self.n_outputs]

    def copy(self) -> Members:
        """The same numbers, to keep while training goes on."""
        weights, biases = (tuple(t.detach().clone() for t in some) for some in (self.weights, self.biases))
        return Members(weights, biases, self.n_outputs)

    @property
    def parameters(self) -> list[Tensor]:
        """All tensors."""
        return [*self.weights, *self.biases]

    def answer(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """Mean of the members for rows (n, D), and how far they are apart as a standard deviation, both (n, out)."""
        means, spreads = np.empty((2, len(inputs), self.n_outputs))
        with torch.no_grad(), single_threaded_torch():
            for some, tile in tiles(inputs):
                found = self(tile.expand(MEMBERS, -1, -1))
                n = some.stop - some.start
                means[some] = _mean(found).numpy()[:n]
                spreads[some] = _mean((found - _mean(found)) ** 2).sqrt().numpy()[:n]
        return means, spreads


def padded(width: int) -> int:
    """The next multiple of `MULTIPLE`.

    >>> padded(5), padded(32)
    (16, 32)
    """
    return -(-width // MULTIPLE) * MULTIPLE


def widened(inputs: Inputs) -> Inputs:
    """Inputs (n, D) with columns of zeros up to the next width that is allowed."""
    return np.pad(inputs, ((0, 0), (0, padded(inputs.shape[1]) - inputs.shape[1])))


def _mean(found: Tensor) -> Tensor:
    """Mean over members, added one after the other."""
    total = found[0].clone()
    for one in found[1:]:
        total += one
    return total / len(found)


def tiles(inputs: Inputs) -> Iterator[tuple[slice, Tensor]]:
    """Yield where rows (n, D) are, and tiles of them, padded with zeros to `TILE` rows and to a width that is allowed."""
    for start in range(0, len(inputs), TILE):
        some = slice(start, min(start + TILE, len(inputs)))
        tile = np.zeros((TILE, padded(inputs.shape[1])), dtype=np.float32)
        tile[: some.stop - start, : inputs.shape[1]] = inputs[some]
        yield some, torch.from_numpy(tile)


def by_tiles(function: Callable[[Tensor], Tensor], inputs: Inputs) -> Floats:
    """What a function of a tile (TILE, D) -> (TILE,) gives for rows (n, D), (n,)."""
    found = np.empty(len(inputs))
    with torch.no_grad(), single_threaded_torch():
        for some, tile in tiles(inputs):
            found[some] = function(tile).numpy()[: some.stop - some.start]
    return found
