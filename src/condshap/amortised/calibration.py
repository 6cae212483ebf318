"""Held-out rows at full precision -> how far the network is off: relative error, and intervals for every value.

Split conformal prediction (Lei et al. 2018): held-out errors, each over the size that was predicted for it, have a quantile,
and 90 % of new values lie within that many predicted sizes of what the network says, whatever the network and the sizes are,
as long as new rows are like those of the pool. Sizes are predicted from the value, from how far the members of the ensemble
are apart, and from the row's distance to the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from condshap.approaches.base import State
from condshap.numerics.row_means import half_width, not_below_zero
from condshap.options import check_level
from condshap.types import Floats, Masks

LEVEL = 0.90
NORMAL = 1.6448536269514722
"""Standard errors on each side that hold `LEVEL` of a normal distribution."""
_LEAST_SIZE = 1e-6  # of the mean absolute value, so that nothing is divided by zero


@dataclass(frozen=True, eq=False)
class RelativeError:
    """Mean absolute error of held-out values over their mean absolute size; ``float(error)`` is over all outputs.

    Attributes
    ----------
    errors, sizes : (n, O) mean absolute errors and values of held-out rows, over players
    """

    errors: Floats
    sizes: Floats

    @property
    def value(self) -> float:
        """Mean absolute error over mean absolute value; outputs count by the size of their values."""
        return _ratio(self.errors.mean(axis=1), self.sizes.mean(axis=1))

    @property
    def by_output(self) -> Floats:
        """The same for every output, (O,)."""
        return np.array([_ratio(e, s) for e, s in zip(self.errors.T, self.sizes.T, strict=True)])

    @property
    def std_error(self) -> float:
        """Standard error over rows, by linearising the ratio."""
        errors, sizes = self.errors.mean(axis=1), self.sizes.mean(axis=1)
        if sizes.mean() == 0:
            return np.nan
        return float((errors - self.value * sizes).std(ddof=1) / np.sqrt(len(errors)) / sizes.mean())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval over rows, by Student's t, not below 0."""
        half = half_width(self.std_error, len(self.errors), check_level(level))
        return not_below_zero(self.value - half, self.value + half)

    def __float__(self) -> float:
        """Value of the ratio."""
        return self.value

    def __repr__(self) -> str:
        """Say it with its interval."""
        low, high = self.interval()
        return (
            f"RelativeError({self.value:.3g}, 95 % interval {low:.3g} to {high:.3g}, {len(self.errors)} held-out rows)"
        )


def _ratio(errors: Floats, sizes: Floats) -> float:
    total = float(sizes.mean())
    return float(errors.mean()) / total if total > 0 else 0.0 if not errors.any() else np.inf


def relative_error(found: Floats, exact: Floats) -> RelativeError:
    """Relative error of values (n, P, O) of held-out rows."""
    return RelativeError(np.abs(found - exact).mean(axis=1), np.abs(exact).mean(axis=1))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Sizes of errors, and how many of them an interval has on each side.

    Attributes
    ----------
    weights : (4, P, O) of 1, the absolute value, the members' spread and the distance to the pool in the predicted size
    least : (O,) the smallest size
    quantiles : (P, O) predicted sizes on each side of a value that hold `LEVEL` of the held-out values
    """

    weights: Floats
    least: Floats
    quantiles: Floats

    @classmethod
    def learn(cls, tuning: Answered, held_out: Answered) -> Calibration:
        """Predict sizes from some rows at full precision, and take quantiles from others."""
        errors = tuning.errors
        weights = np.zeros((4, *errors.shape[1:]))
        for p, o in np.ndindex(errors.shape[1:]):
            known = ~np.isnan(errors[:, p, o])
            if known.any():
                weights[:, p, o] = nnls(tuning.signs[known, :, p, o], errors[known, p, o])[0]
        least = np.maximum(_LEAST_SIZE * np.abs(tuning.exact).mean(axis=(0, 1)), 1e-300)
        sizes = cls(weights, least, np.zeros(errors.shape[1:])).sizes(held_out.signs)
        return cls(weights, least, _quantiles(held_out.errors / sizes))

    def sizes(self, signs: Floats) -> Floats:
        """Predicted sizes of errors (n, P, O) from signs (n, 4, P, O), added in a given order."""
        total = signs[:, 0] * self.weights[0]
        for i in range(1, 4):
            total += signs[:, i] * self.weights[i]
        return np.asarray(np.maximum(total, self.least))

    def std_errors(self, signs: Floats) -> Floats:
        """Standard errors (n, P, O) of which `NORMAL` on each side hold `LEVEL` of the values."""
        return self.sizes(signs) * self.quantiles / NORMAL

    def to_state(self) -> State:
        """All of it as arrays."""
        return State({"weights": self.weights, "least": self.least, "quantiles": self.quantiles}, {})

    @classmethod
    def from_state(cls, state: State) -> Calibration:
        """Inverse of `to_state`."""
        return cls(**state.arrays)


@dataclass(frozen=True, eq=False)
class Answered:
    """Held-out rows: exact values (n, P, O), those of the network, and signs (n, 4, P, O) of how far it may be off.

    Players that certainly get nothing, where `active` (n, P) is False, say nothing about errors of others.
    """

    exact: Floats
    found: Floats
    signs: Floats
    active: Masks

    @property
    def errors(self) -> Floats:
        """Absolute errors (n, P, O), NaN where nothing could be wrong."""
        return np.where(self.active[..., None], np.abs(self.found - self.exact), np.nan)

    @property
    def relative(self) -> RelativeError:
        """Relative error."""
        return relative_error(self.found, self.exact)


def signs_of_error(found: Floats, spreads: Floats, distances: Floats) -> Floats:
    """What errors may be seen from, (n, 4, P, O): values and spreads (n, P, O), distances to the pool (n,)."""
    return np.stack(
        [np.ones_like(found), np.abs(found), spreads, np.broadcast_to(distances[:, None, None], found.shape)], axis=1
    )


def _quantiles(scores: Floats) -> Floats:
    """Conformal quantiles (P, O) of scores (n, P, O), NaN where there are too few for one."""
    found = np.full(scores.shape[1:], np.nan)
    for p, o in np.ndindex(found.shape):
        known = np.sort(scores[:, p, o][~np.isnan(scores[:, p, o])])
        rank = int(np.ceil((len(known) + 1) * LEVEL))
        if rank <= len(known):
            found[p, o] = known[rank - 1]
    return found
