"""Players, budget -> coalition plan."""

from __future__ import annotations

from condshap.coalitions.exact import all_coalitions
from condshap.coalitions.nested import VERY_FEW, fixed_plan, kriged_from
from condshap.coalitions.plan import CoalitionPlan
from condshap.coalitions.players import Players
from condshap.coalitions.sampled import sample_coalitions
from condshap.exceptions import CoalitionError

__all__ = ["CoalitionPlan", "Players", "all_coalitions", "make_plan", "sample_coalitions"]

DEFAULT_EXACT_PLAYERS = 10
DEFAULT_SAMPLED = 1000


def make_plan(n_players: int, n_coalitions: int | None, *, seed: int) -> CoalitionPlan:
    """All coalitions when they are wanted or few enough, some pairs of a coalition and its complement otherwise.

    Pairs are spread out and solved by kriging; with up to five players, fewer than 5 P + 2 coalitions are drawn by the
    kernel and solved by regression. Fewer than 2 P + 6 coalitions, two pairs more than there are players, cannot estimate
    their own error: 2 P + 6 are used instead, or all if there are fewer, and `CoalitionPlan.n_repaired` says how many were
    added.

    Parameters
    ----------
    n_players : P
    n_coalitions : how many, the empty and the grand one included; None takes all up to 2^10, beyond that 1000. An odd number
        gives one less, because half a pair is worse than none.
    """
    if n_coalitions is None:
        n_coalitions = 2**n_players if n_players <= DEFAULT_EXACT_PLAYERS else DEFAULT_SAMPLED
        n_coalitions = max(n_coalitions, n_players + 1)
    if n_coalitions < n_players + 1:
        raise CoalitionError(
            f"n_coalitions must be at least {n_players + 1}, one more than the {n_players} players, got {n_coalitions}. "
            "Fewer cannot tell the players apart; use groups to have fewer players."
        )
    if n_coalitions >= 2**n_players:
        return all_coalitions(n_players)
    if n_players > VERY_FEW or n_coalitions >= kriged_from(n_players):
        return fixed_plan(n_players, n_coalitions, seed=seed)
    return sample_coalitions(n_players, n_coalitions, seed=seed)
