"""Players, causal order -> components with causes first, and the coalitions that respect them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condshap.coalitions import DEFAULT_EXACT_PLAYERS, make_plan
from condshap.coalitions.plan import CoalitionPlan, assemble
from condshap.coalitions.players import Players
from condshap.exceptions import CoalitionError, OptionError, listing
from condshap.numerics.chains import Chain
from condshap.types import Masks

_EXAMPLE = "Write e.g. causal_ordering=[['age', 'sex'], ['income']], causes first."


@dataclass(frozen=True, slots=True)
class Ordering:
    """Components of players in causal order.

    Attributes
    ----------
    components : positions of players, component by component, causes first; a partition of the players
    confounded : whether something unseen causes the players of each component, so that setting one of them tells nothing
        about the others; None where v(S) is conditional as usual
    is_asymmetric : only orders of players that respect the components count
    """

    components: tuple[tuple[int, ...], ...]
    confounded: tuple[bool, ...] | None
    is_asymmetric: bool

    @classmethod
    def of(cls, players: Players, causal_ordering: Any, confounding: Any, asymmetric: Any) -> Ordering | None:
        """Read the options of an `Explainer`, or refuse them; None where there is no order."""
        if asymmetric not in (True, False) or not isinstance(asymmetric, (bool, np.bool_)):
            raise OptionError(f"asymmetric must be True or False, got {asymmetric!r}.")
        if causal_ordering is None:
            for name, is_given in (("confounding", confounding is not None), ("asymmetric", bool(asymmetric))):
                if is_given:
                    raise OptionError(f"{name} needs causal_ordering, which is None. {_EXAMPLE}")
            return None
        named = _as_names(causal_ordering, players)
        _check_partition(named, players)
        position = {name: i for i, name in enumerate(players.names)}
        components = tuple(tuple(sorted(position[name] for name in component)) for component in named)
        return cls(components, _as_flags(confounding, len(components)), bool(asymmetric))

    @property
    def is_causal(self) -> bool:
        """Whether v(S) differs from the conditional one: a single component without confounding does not change it."""
        return self.confounded is not None and (len(self.components) > 1 or self.confounded[0])

    @property
    def changes_nothing(self) -> bool:
        """Whether neither v(S) nor the orders of players depend on the components."""
        return self.confounded is None and not self.is_asymmetric

    def names(self, players: Players) -> list[list[str]]:
        """Components by the names of their players."""
        return [[players.names[i] for i in component] for component in self.components]

    def describe(self, players: Players) -> str:
        """The order in one line: components joined by arrows."""
        return " -> ".join(", ".join(component) for component in self.names(players))


def chain_of(ordering: Ordering | None, players: Players) -> Chain | None:
    """How features are drawn after others were set; None where v(S) is conditional."""
    if ordering is None or not ordering.is_causal:
        return None
    assert ordering.confounded is not None
    components = [np.asarray(players.membership[list(one)].any(axis=0)) for one in ordering.components]
    return Chain(np.stack(components), ordering.confounded)


def drawing_plan(chain: Chain, plan: CoalitionPlan) -> CoalitionPlan:
    """What an approach is asked for to draw a plan over features along a chain: known features of single steps, by weight.

    Drawing with nothing known is one of these questions, so the empty coalition may stand among the interior ones.
    """
    masks, weights = plan.masks[:-1], np.append(plan.weights.max(initial=0.0) or 1.0, plan.weights[1:-1])
    given, counts = [], []
    for k in range(len(chain.components)):
        some = chain.drawn(k, masks).any(axis=1)
        given.append(chain.given(k, masks)[some])
        counts.append(weights[some])
    unique, which = np.unique(np.concatenate(given), axis=0, return_inverse=True)
    summed = np.bincount(which.ravel(), weights=np.concatenate(counts))
    return assemble(unique, summed / summed.sum(), np.ones(len(unique)))


def ordered_plan(ordering: Ordering, n_coalitions: int | None, *, seed: int) -> CoalitionPlan:
    """Coalitions that respect the components: one is touched only if all earlier ones are complete.

    Components of up to ten players have all their coalitions, larger ones `n_coalitions` each, by default 1000.
    """
    n_players = sum(len(component) for component in ordering.components)
    weight_of: dict[bytes, tuple[Masks, float, float]] = {}
    earlier = np.zeros(n_players, dtype=bool)
    n_repaired = 0
    for component in ordering.components:
        few = len(component) <= DEFAULT_EXACT_PLAYERS
        own = make_plan(len(component), None if few else n_coalitions, seed=seed)
        n_repaired += own.n_repaired
        masks = np.repeat(earlier[None], len(own.masks), axis=0)
        masks[:, list(component)] = own.masks
        share = own.weights * len(component) / n_players
        for mask, weight, inclusion in zip(masks[1:], share[1:], own.inclusion[1:], strict=True):
            weight_of[mask.tobytes()] = (mask, weight, inclusion)
        earlier = masks[-1]
    del weight_of[earlier.tobytes()]
    masks = np.array([mask for mask, _, _ in weight_of.values()], dtype=bool).reshape(-1, n_players)
    weights, inclusion = np.array([rest for _, *rest in weight_of.values()]).reshape(-1, 2).T
    whole = weights == 0  # a complete component: its v counts in two of them
    weights = np.where(whole, weights.max(initial=0.0) or 1.0, weights)
    plan = assemble(masks, weights / (weights.sum() or 1.0), inclusion, n_repaired=n_repaired)
    return replace(plan, components=ordering.components)


def _as_names(given: Any, players: Players) -> list[list[str]]:
    """Names of the players of every component; a position stands for a name unless a player is called so."""
    is_list = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    components = list(given) if is_list else []
    if not components or any(isinstance(one, (str, bytes)) or not isinstance(one, Iterable) for one in components):
        raise OptionError(f"causal_ordering must be a list of lists of players, got {given!r}. {_EXAMPLE}")
    return [[_as_name(player, players.names) for player in component] for component in components]


def _as_name(player: Any, names: Sequence[str]) -> str:
    is_position = isinstance(player, (int, np.integer)) and not isinstance(player, bool)
    return names[player] if is_position and str(player) not in names and 0 <= player < len(names) else str(player)


def _check_partition(components: Sequence[Sequence[str]], players: Players) -> None:
    named = [name for component in components for name in component]
    for problem, names in (
        ("have a player in every component; these have none:", [k for k, one in enumerate(components, 1) if not one]),
        (f"name players among {listing(players.names)}; these are unknown:", sorted(set(named) - set(players.names))),
        ("name each player once; these occur more than once:", sorted({n for n in named if named.count(n) > 1})),
        ("name every player; these are missing:", [name for name in players.names if name not in named]),
    ):
        if names:
            raise CoalitionError(
                f"causal_ordering must {problem} {listing(names)}. Every player belongs to exactly one component."
            )


def _as_flags(confounding: Any, n_components: int) -> tuple[bool, ...] | None:
    """Whether each component is confounded; one answer counts for all."""
    if confounding is None:
        return None
    if isinstance(confounding, (bool, np.bool_)):
        return (bool(confounding),) * n_components
    is_list = isinstance(confounding, Iterable) and not isinstance(confounding, (str, bytes, Mapping))
    flags = list(confounding) if is_list else []
    if len(flags) != n_components or not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        raise OptionError(
            f"confounding must be True, False or {n_components} of these, one per component of causal_ordering, got "
            f"{confounding!r}."
        )
    return tuple(bool(flag) for flag in flags)
