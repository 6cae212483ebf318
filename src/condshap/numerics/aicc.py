"""Bandwidths of kernel regression by the corrected Akaike criterion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from condshap.types import Floats

_GRID = np.geomspace(0.01, 10.0, 25)
_ROUNDING = (
    1e-9  # criteria, which are logarithms, that differ by less are equal: else units would decide where they are flat
)


def best_bandwidths(distances: Sequence[Floats], responses: Sequence[Floats]) -> Floats:
    """Bandwidths (R,) that minimise the criterion summed over coalitions and outputs.

    A grid finds the valley for all rows at once, then every row descends into its own.

    Parameters
    ----------
    distances : per coalition (N, N), squared and scaled, between training rows
    responses : per coalition (R, N, O), the model at the training rows' unknown and the explained row's known features
    """
    from scipy.optimize import minimize_scalar

    coarse = np.array([_criterion(h, distances, responses) for h in _GRID])  # (G, R)
    best = (coarse <= coarse.min(axis=0) + _ROUNDING).argmax(axis=0)  # the narrowest of the best
    found = np.empty(len(best))
    for i, g in enumerate(best):
        low, high = _GRID[max(g - 1, 0)], _GRID[min(g + 1, len(_GRID) - 1)]
        own = [response[i : i + 1] for response in responses]

        def valley(log_h: float, own: list[Floats] = own) -> float:
            return float(_criterion(np.exp(log_h), distances, own)[0])

        result = minimize_scalar(valley, bounds=(np.log(low), np.log(high)), method="bounded", options={"xatol": 1e-3})
        found[i] = np.exp(result.x) if result.fun < coarse[g, i] - _ROUNDING else _GRID[g]
    return found


def _criterion(h: float, distances: Sequence[Floats], responses: Sequence[Floats]) -> Floats:
    """Sum over coalitions and outputs of log(RSS / n) + (1 + tr H / n) / (1 - (tr H + 2) / n), shape (R,)."""
    total: Floats = np.zeros(len(responses[0]))
    for distance, response in zip(distances, responses, strict=True):
        n = len(distance)
        hat = np.exp(-distance / (2 * h**2))
        hat /= hat.sum(axis=1, keepdims=True)
        trace = float(np.trace(hat))
        residual = response - hat @ response  # a product per row: together, other rows would change its last bits
        fit = np.log(np.maximum((residual**2).mean(axis=1), np.finfo(np.float64).tiny)).sum(axis=1)
        # too wiggly a curve for n points has no degrees of freedom left: never the best
        penalty = (1 + trace / n) / (1 - (trace + 2) / n) if trace + 2 < n else np.inf
        total = total + fit + penalty * response.shape[2]
    return total
