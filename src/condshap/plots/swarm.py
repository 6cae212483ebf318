"""Values -> offsets, so that points of one line do not hide each other; nothing is random."""

from __future__ import annotations

import numpy as np

from condshap.types import Floats

_BINS = 100


def swarm(values: Floats, extent: float, *, half: float = 0.4, step: float = 0.1) -> Floats:
    """Distances (n,) from the middle line, at most `half`: points that share a place are stacked to both sides in turn.

    `extent` is the length of the axis along which the values lie; a hundredth of it is a place.
    """
    places = np.floor(values / (extent / _BINS if extent > 0 else 1.0))
    order = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(places[order]) != 0])
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values)) - np.repeat(first, np.diff(np.r_[first, len(values)]))
    offsets = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    most = np.abs(offsets).max(initial=1)
    return np.asarray(offsets * min(step, half / max(1, most)), dtype=np.float64)


def spread(n: int, which: int = 0) -> Floats:
    """Numbers (n,) between -1 and 1 that fill the range evenly, another sequence for every `which` (Weyl sequences)."""
    step = (np.sqrt(5.0) - 1.0) / 2.0 if which == 0 else np.sqrt(2.0) - 1.0
    return np.asarray(2.0 * ((np.arange(n) * step + 0.5) % 1.0) - 1.0)
