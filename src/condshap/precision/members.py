r"""Members of an ensemble, their v(S) -> errors of training: how far values would move with another seed.

An approach that averages E members, such as networks trained from different starts, learns a different distribution with
every seed. How far the members differ tells how far their average would: with phi_e the Shapley values of member e,

.. math::

    \operatorname{Var}(\bar\phi) = \frac{1}{E (E - 1)} \sum_e (\phi_e - \bar\phi)^2.

Members share the samples of a coalition out, so that this costs no further call of the model; it holds the Monte Carlo
error as well, which is taken off. Shapley values are linear in v, so that no table of v(S) by member is kept: what members
add to the Shapley values is summed up coalition by coalition, in an order that blocks have no say in.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from condshap.coalitions import CoalitionPlan
from condshap.numerics.noisy_means import logit_slope
from condshap.numerics.shapley import each_column
from condshap.precision.influence import influences
from condshap.types import Floats, Indices, Masks, Values

_PRIOR = 4.0  # members that the average over the players of a row counts as, beside the player's own
_FLOOR = 0.05  # of that average, below which no squared error falls


class MemberSpread:
    """Shapley values of every member as deviations from those of all, gathered block by block.

    Parameters
    ----------
    plan : coalitions by which Shapley values are found
    n_rows, n_outputs : R and O
    positions : (c,) coalitions of the plan that are asked for, by default all
    link : scale on which values are, None for that of the prediction

    Attributes
    ----------
    deviations : (E, R, P, O), None as long as no block had members
    """

    def __init__(
        self,
        plan: CoalitionPlan,
        n_rows: int,
        n_outputs: int,
        positions: Indices | None = None,
        *,
        link: str | None = None,
    ) -> None:
        self._plan, self._positions, self._link = plan, positions, link
        self._shape = (n_rows, plan.n_players, n_outputs)
        self._noise: Floats = np.zeros(self._shape)
        self.deviations: Floats | None = None

    @cached_property
    def operator(self) -> Floats | None:
        """A_jS of the coalitions that are asked for, (P, c); None where they do not tell the players apart."""
        found = influences(self._plan)
        return found if found is None or self._positions is None else found[:, self._positions]

    def add(self, coalitions: Indices, rows: slice, deviations: Values, means: Values | None = None) -> None:
        """Count what members' v (E, c, r, O) differ from that of all, for some of the coalitions and rows.

        `means` (c, r, O), that v of all, is needed with a link.
        """
        if self.operator is None:
            return
        if self._link is not None and means is not None:
            deviations = deviations * logit_slope(means)
        self._make_room(len(deviations))
        assert self.deviations is not None
        total = self.deviations[: len(deviations), rows]  # where there are few samples, the last members have none
        for c, one in zip(coalitions, np.moveaxis(deviations, 1, 0), strict=True):
            total += one[:, :, None, :] * self.operator[:, c, None]

    def _make_room(self, n_members: int) -> None:
        known = 0 if self.deviations is None else len(self.deviations)
        if n_members > known:
            more = np.zeros((n_members - known, *self._shape))
            self.deviations = more if self.deviations is None else np.concatenate([self.deviations, more])

    def count_noise(self, variances: Values, means: Values | None = None) -> None:
        """Note Monte Carlo variances (c, R, O) of v (c, R, O), which deviations hold, too."""
        if self.deviations is not None and self.operator is not None:
            if self._link is not None and means is not None:
                variances = variances * logit_slope(means) ** 2
            columns = variances.reshape(len(variances), -1)
            by_player = each_column(self.operator**2, columns).reshape(-1, *variances.shape[1:])
            self._noise = np.ascontiguousarray(by_player.swapaxes(0, 1))

    def empty(self, n_rows: int) -> MemberSpread:
        """One of the same coalitions, for other rows."""
        return MemberSpread(self._plan, n_rows, self._shape[2], self._positions, link=self._link)

    def take_rows(self, some: Masks, other: MemberSpread) -> None:
        """Take up what another one has gathered for some (R,) of the rows."""
        if other.deviations is not None:
            self._make_room(len(other.deviations))
            assert self.deviations is not None
            self.deviations[: len(other.deviations), some], self._noise[some] = other.deviations, other._noise

    def errors(self, is_null: Masks) -> Floats | None:
        """Errors of training (R, P, O), 0 for players (R, P) that certainly get nothing; None without members.

        A handful of members says little about a single value: squared errors are drawn towards those of the row's other
        players. Other rows have no say: a row's numbers are its own.
        """
        if self.deviations is None or len(self.deviations) < 2:
            return None
        n = len(self.deviations)
        found = pool_squares(self.deviations.var(axis=0, ddof=1) / n - self._noise, n)
        return np.where(is_null[..., None], 0.0, found)


def pool_squares(own: Floats, n: int) -> Floats:
    """Errors (R, P, ...) from squares that n members or refits gave, which may be negative, and their row's average."""
    average = np.maximum(own.mean(axis=1, keepdims=True), 0.0)
    squares = (n * own + _PRIOR * average) / (n + _PRIOR)
    return np.asarray(np.sqrt(np.maximum(squares, _FLOOR * average)))


def member_deviations(f: Floats, weights: Floats | None, members: Indices) -> Floats:
    """What members' v differ from that of all, (E, C, R, O).

    Parameters
    ----------
    f : (C, R, K, O) predictions for samples
    weights : (C, R, K, 1) that sum to 1, or None for equal ones
    members : (K,) who drew each sample, -1 for nobody in particular

    Notes
    -----
    Members count alike, and together as much as their samples do: what others drew dilutes the deviations.
    """
    every = np.unique(members[members >= 0])
    share = np.full((1, 1, f.shape[2], 1), 1 / f.shape[2]) if weights is None else weights
    weighted = share * f
    means, total = [], 0.0
    for e in every:
        own = members == e
        size = share[:, :, own].sum(axis=2)
        means.append(weighted[:, :, own].sum(axis=2) / np.where(size > 0, size, 1.0))
        total = total + size
    stacked = np.stack(means)
    return np.asarray((stacked - stacked.mean(axis=0)) * total)
