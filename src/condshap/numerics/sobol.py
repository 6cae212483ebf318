"""Pools of Owen-scrambled Sobol nets, stored as standard normals.

A net of K = 2^m points is scrambled by flipping, at every node of the binary tree over [0, 1), the two halves at random
(Owen's nested uniform scrambling), and each point is placed uniformly in its cell. Every point is then uniform, so
averages stay unbiased, while the points together fill the cube far more evenly than independent draws. The first 2^k
points of a net are a net again, so one pool serves all sample sizes up to its own.
"""

from __future__ import annotations

import sys
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from condshap.seeding import generator
from condshap.types import Floats

_POOL_NUMBERS = 2**21  # 16 MiB of float64
_MIN_NETS, _MAX_NETS = 16, 1024
_EQUALLY_NEAR = 1e-9


def power_of_two_at_least(n: int) -> int:
    """Smallest power of two that is not below n.

    >>> [power_of_two_at_least(n) for n in (1, 5, 64, 250)]
    [1, 8, 64, 256]
    """
    return 1 << max(0, (n - 1).bit_length())


def nearest_power_of_two(n: Floats) -> Floats:
    """Power of two that is nearest on a logarithmic scale, any shape; of two that are equally near the larger one.

    A number half-way, such as 128 sqrt(2), comes with rounding that is another with every CPU, so it is not looked at.

    >>> nearest_power_of_two(np.array([5.0, 6.0, 128 * np.sqrt(2), 128 * np.sqrt(2) - 1e-12]))
    array([  4.,   8., 256., 256.])
    """
    return np.asarray(2.0 ** np.floor(np.log2(n) + (0.5 + _EQUALLY_NEAR)))


def pool_size(n_points: int, n_dims: int) -> int:
    """Number of nets in a pool: a function of its shape only, never of a memory budget, so that numbers stay the same."""
    return int(np.clip(_POOL_NUMBERS // (n_points * n_dims), _MIN_NETS, _MAX_NETS))


@lru_cache(maxsize=8)  # a run uses one pool per power of two of K; those of small K are small
def normal_nets(n_points: int, n_dims: int, seed: int) -> Floats:
    """Pool of independent scrambled nets as standard normals, shape (n_nets, n_points, n_dims), read only.

    Parameters
    ----------
    n_points : K, a power of two
    n_dims : number of dimensions
    seed : names the random stream
    """
    from scipy.special import ndtri

    n_nets = pool_size(n_points, n_dims)
    rng = generator(seed, "nets")
    cells = (sobol_points(n_points, n_dims) * n_points).astype(np.int64)  # (K, D)
    pool = np.empty((n_nets, n_points, n_dims))
    at_once = max(1, 2**18 // (n_points * n_dims))
    for start in range(0, n_nets, at_once):
        some = pool[start : start + at_once]
        some[:] = np.take_along_axis(_scramble(len(some), n_points, n_dims, rng), cells[None], axis=1)
    pool += rng.random(pool.shape)
    pool /= n_points
    np.clip(pool, 2.0**-53, 1 - 2.0**-53, out=pool)
    ndtri(pool, out=pool)
    pool.flags.writeable = False
    return pool


def sobol_points(n_points: int, n_dims: int) -> Floats:
    """First points of the unscrambled Sobol sequence, shape (n_points, n_dims).

    Notes
    -----
    torch and SciPy have the same sequence to the last bit, but importing scipy.stats takes half a second: where torch is
    there already, it is asked.
    """
    if "torch" in sys.modules:
        import torch

        engine = torch.quasirandom.SobolEngine(n_dims)  # type: ignore[no-untyped-call]
        return np.asarray(engine.draw(n_points, dtype=torch.float64).numpy())
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(n_dims, scramble=False).random(n_points))


def _scramble(n_nets: int, n_points: int, n_dims: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Random nested permutations of the cells 0, ..., K-1 in each dimension, shape (n_nets, K, D)."""
    levels = n_points.bit_length() - 1
    flips = rng.integers(0, 2, size=(n_nets, n_points, n_dims), dtype=np.uint8)  # node 2^l + prefix of level l
    place = np.tile(np.arange(n_points, dtype=np.int32)[:, None], (n_nets, 1, n_dims))
    for level in range(levels):
        nodes = flips[:, 2**level : 2 ** (level + 1)].astype(np.int32) << (levels - 1 - level)
        place ^= np.repeat(nodes, n_points >> level, axis=1)
    return place
