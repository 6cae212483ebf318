"""Players, budget -> coalition plan: which v(S) are needed, and with which weights they are solved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from condshap.exceptions import CoalitionError
from condshap.numerics.shapley import can_separate
from condshap.options import floats_or_nan
from condshap.types import Floats, Indices, Masks


@dataclass(frozen=True, slots=True, eq=False)
class CoalitionPlan:
    """Coalitions of P players, in the order in which v(S) is stored and solved.

    Attributes
    ----------
    masks : (C, P) bool
        True = in S. The empty coalition first, the grand coalition last, by size, then lexicographic.
    weights : (C,)
        Regression weights, positive for interior coalitions and 0 for the two trivial ones, which are met exactly.
        With all coalitions they are the Shapley kernel weights.
    inclusion : (C,)
        Probability that the coalition entered the plan; 1 if nothing was random.
    is_exact : bool
        All 2^P coalitions are included, so the Shapley formula (eq. 1 of the paper) can be used.
    n_repaired : int
        Coalitions added because the sample alone could not tell some players apart.
    is_kriged : bool
        The coalitions are complete pairs, none too similar to another, so kriging can replace the regression.
    components : tuple of tuples of positions of players
        In causal order, where only orders of players that respect it count; empty where all orders do.
    """

    masks: Masks
    weights: Floats
    inclusion: Floats
    is_exact: bool
    n_repaired: int = 0
    is_kriged: bool = False
    components: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def given(cls, masks: Masks, weights: Floats) -> CoalitionPlan:
        """Use these interior coalitions (C, P) with these regression weights (C,), on any scale.

        Duplicates are summed; the empty and the grand coalition are added.

        >>> CoalitionPlan.given([[True, False], [True, False], [False, True]], [1, 2, 3]).weights.tolist()
        [0.0, 0.5, 0.5, 0.0]
        """
        if isinstance(masks, np.ma.MaskedArray) and np.ma.getmaskarray(masks).any():
            raise CoalitionError(
                "coalitions must say for every player whether it is in, got masked entries. Fill them."
            )
        masks, weights = np.asarray(masks), floats_or_nan(weights)
        _check_given(masks, weights)
        unique, inverse = np.unique(masks.astype(bool), axis=0, return_inverse=True)
        summed = np.bincount(inverse.ravel(), weights=weights).astype(np.float64)
        if not can_separate(unique, summed):
            raise CoalitionError(
                f"coalitions must be able to tell all {masks.shape[1]} players apart, but these {len(unique)} distinct "
                "ones cannot: some players always appear together. Add coalitions."
            )
        return assemble(unique, summed / summed.sum(), np.ones(len(unique)))

    @property
    def n_players(self) -> int:
        """Number of players P."""
        return int(self.masks.shape[1])

    @property
    def sizes(self) -> Indices:
        """Number of players in each coalition, shape (C,)."""
        return np.asarray(self.masks.sum(axis=1))

    @property
    def interior(self) -> slice:
        """Positions of all coalitions but the empty and the grand one."""
        return slice(1, len(self.masks) - 1)

    def mask_distribution(self) -> tuple[Masks, Floats]:
        """Interior coalitions and the probabilities with which v(S) needs them, proportional to their weights."""
        weights = self.weights[self.interior]
        return self.masks[self.interior], weights / weights.sum() if len(weights) else weights

    @property
    def has_all(self) -> bool:
        """Whether no coalition that counts is left out."""
        return self.is_exact or (bool(self.components) and all(step.plan.is_exact for step in self.steps()))

    def steps(self) -> list[Step]:
        """Games of single components, where there are any: T -> v(all earlier players and T)."""
        steps, earlier = [], np.zeros(self.n_players, dtype=bool)
        for component in self.components:
            players = np.array(component)
            others = np.delete(np.arange(self.n_players), players)
            positions = np.flatnonzero((self.masks[:, others] == earlier[others]).all(axis=1))
            masks, weights = self.masks[np.ix_(positions, players)], self.weights[positions]
            weights[[0, -1]] = 0.0
            is_exact = len(masks) == 2 ** len(players)
            own = CoalitionPlan(
                masks, weights / (weights.sum() or 1.0), self.inclusion[positions], is_exact, is_kriged=not is_exact
            )
            steps.append(Step(players, positions, own))
            earlier[players] = True
        return steps

    def pairs(self) -> list[Indices]:
        """Positions of interior coalitions, each with its complement if that is in the plan too."""
        found: defaultdict[bytes, list[int]] = defaultdict(list)
        flipped = np.where(self.masks[:, :1], ~self.masks, self.masks)  # one name for a coalition and its complement
        for position, name in enumerate(np.packbits(flipped, axis=1)):
            found[name.tobytes()].append(position)
        del found[np.packbits(flipped[0]).tobytes()]
        return [np.array(positions) for positions in found.values()]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The game of one component: its players (n,), and where its coalitions, `plan`, are in the whole plan, (c,)."""

    players: Indices
    positions: Indices
    plan: CoalitionPlan


def assemble(
    masks: Masks,
    weights: Floats,
    inclusion: Floats,
    *,
    is_exact: bool = False,
    n_repaired: int = 0,
    is_kriged: bool = False,
) -> CoalitionPlan:
    """Order interior coalitions by size, then lexicographic, and put the trivial ones around them."""
    order = coalition_order(masks)
    n_players = masks.shape[1]
    trivial = np.zeros((1, n_players), dtype=bool)
    return CoalitionPlan(
        masks=np.concatenate([trivial, masks[order], ~trivial]),
        weights=np.concatenate([[0.0], weights[order], [0.0]]),
        inclusion=np.concatenate([[1.0], inclusion[order], [1.0]]),
        is_exact=is_exact,
        n_repaired=n_repaired,
        is_kriged=is_kriged,
    )


def coalition_order(masks: Masks) -> Indices:
    """Positions that sort coalitions by size, then by their list of members."""
    return np.lexsort((*(~masks.T[::-1]), masks.sum(axis=1)))


def _check_given(masks: Masks, weights: Floats) -> None:
    if masks.ndim != 2 or not np.isin(masks, (0, 1)).all():
        raise CoalitionError(f"coalitions must be a (C, players) table of True and False, got shape {masks.shape}.")
    if weights.shape != (len(masks),) or not np.isfinite(weights).all() or (weights <= 0).any():
        raise CoalitionError(
            f"weights must be {len(masks)} positive finite numbers, one per coalition, got shape {weights.shape}. "
            "Leave out coalitions of weight zero."
        )
    sizes = masks.astype(bool).sum(axis=1)
    trivial = np.flatnonzero((sizes == 0) | (sizes == masks.shape[1]))
    if len(trivial):
        raise CoalitionError(
            f"coalitions must be interior, but rows {trivial.tolist()[:5]} hold no player or all of them. Leave these "
            "out: the empty and the grand coalition are always included."
        )
