"""Explainer -> maker: all that a run over a dataset needs of whatever explains rows.

Anything that has a schema of its features, explains tables and can say in a digest what its numbers depend on can explain
datasets: make a `Maker` of it and call `condshap.bulk.running.explain_dataset`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from condshap.explanation import Explanation
from condshap.options import parse_memory
from condshap.schema import FeatureSchema
from condshap.storage.digests import digest_of_maker
from condshap.types import Table

if TYPE_CHECKING:
    from condshap.explainer import Explainer
    from condshap.game import Game

_SHARE = 8  # of the memory budget goes to what a part keeps until it is written
_COPIES = 6  # of the value table: moments, their parts, what is solved, what is written and checked
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Maker:
    """What explains rows.

    Attributes
    ----------
    explain : table (R, M) -> explanation; it is sent to the workers of a cluster, so it can be pickled
    schema : of the features
    facts : by which the maker is known again, fit for JSON: a digest of all that its numbers depend on, and what helps to
        say what differs
    rows_per_part : as many as fit into memory
    progress : "auto", True or False
    """

    explain: Callable[[Table], Explanation]
    schema: FeatureSchema
    facts: dict[str, Any]
    rows_per_part: int
    progress: str | bool


def maker_of(explainer: Explainer, game: Game, *, n_jobs: int | None = None) -> Maker:
    """Maker of a fitted explainer, which explains as `Explainer.explain` does, but without bars of its own.

    With `n_jobs` by so many workers: one where a cluster takes care of the cores.
    """
    quiet = copy(explainer)
    quiet.progress, quiet.n_jobs = False, explainer.n_jobs if n_jobs is None else n_jobs
    facts: dict[str, Any] = {
        "approach": ", ".join(dict.fromkeys(part.approach.name for part in game.parts)),
        "seed": game.seed,
        "n_coalitions": len(game.plan.masks),
        "n_samples": explainer.n_samples,
        "made_by": digest_of_maker(game),
    }
    if explainer.n_coalitions == "auto":
        facts["tolerance"] = explainer.tolerance
    fit = _rows_that_fit(parse_memory(explainer.memory_budget), game)
    return Maker(quiet.explain, game.schema, facts, fit, explainer.progress)


def _rows_that_fit(budget: int, game: Game) -> int:
    """Rows whose values and v(S), with copies, take their share of the memory budget."""
    n_outputs = len(game.predictor.output_names)
    numbers = 2 * len(game.plan.masks) * n_outputs * _COPIES + 8 * len(game.schema) * n_outputs + 64
    return max(1, min(_MOST, budget // _SHARE // (8 * numbers)))
