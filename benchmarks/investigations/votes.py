"""How should networks and the linear member share the votes where there are only a hundred training rows?

Answer: where columns look normal, held-out rows are drawn towards three quarters for the linear member, which has 0.89 to
0.90 of the errors of held-out rows alone. On Burr and mixed data that costs 3 and 16 %, so there these decide alone.

Every member of the default explains by itself, so that any votes can be tried on one fit: v is linear in them. Repetitions
are later ones than those of the league's normal designs, which report.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.investigations.model_errors import pose_design
from benchmarks.lib.report import parser, publish, table
from condshap import Explainer
from condshap.types import Floats
from condshap.vaeac.votes import doubted, in_hundredths, judge_members, simplex_least_squares

DESIGNS = ("factor-8-100", "equal-8-100", "burr-5-100", "mixed-M4-100")
FIRST, N_REPETITIONS = 20, 4
BASE = "two standard errors"
"""What the other lines are divided by: a pull towards half networks and half linear member."""
Judged = tuple[Floats, Floats]
"""What held-out rows tell of n members: (R, n, n) and (R, n), see `judge_members`."""


def drawn_towards(doubt: float, prior: Callable[[int], Floats]) -> Callable[[Judged], Floats]:
    """Rule: votes of n members by held-out rows, and by a prior that counts as so many standard errors of theirs."""
    return lambda judged: in_hundredths(simplex_least_squares(*doubted(*judged, prior(judged[1].shape[1]), doubt)))


def half(n: int) -> Floats:
    """Half the networks and half the linear member."""
    return np.where(np.arange(n) < 2, 0.5, 0.0)


def thirds(n: int) -> Floats:
    """Networks, the linear member, and the one on normal scores."""
    return np.where(np.arange(n) < 3, 1 / 3, 0.0)


def mostly_linear(n: int) -> Floats:
    """A quarter the networks, the rest the linear member."""
    return np.where(np.arange(n) == 0, 0.25, np.where(np.arange(n) == 1, 0.75, 0.0))


RULES: dict[str, Callable[[Judged], Floats]] = {
    "held-out rows alone": drawn_towards(0.0, half),
    BASE: drawn_towards(2.0, half),
    "four standard errors": drawn_towards(4.0, half),
    "eight standard errors": drawn_towards(8.0, half),
    "two, towards three quarters linear": drawn_towards(2.0, mostly_linear),
    "two, towards thirds with normal scores": drawn_towards(2.0, thirds),
    "always half and half": lambda judged: half(judged[1].shape[1]),
    "networks alone": lambda judged: np.eye(judged[1].shape[1])[0],
    "linear member alone": lambda judged: np.eye(judged[1].shape[1])[1],
}


def errors_of(name: str, repetition: int) -> dict[str, float]:
    """Mean absolute errors of Shapley values over their mean size, by each rule and, of numbers, by `gaussian`."""
    model, X_train, X, plan, base, phi = pose_design(name, repetition)
    options: dict[str, Any] = {"coalitions": plan, "base_value": base, "seed": repetition, "progress": False}
    explainer = Explainer(model, check_draws=False, **options).fit(X_train)
    approach, rows = explainer.parts_[0].approach, explainer.schema_.encode(X_train)
    networks, companions = approach.networks_, approach.companions_
    judged = judge_members(networks, companions, rows, *plan.mask_distribution(), seed=explainer.game_.seed)
    each, n = [], len(approach.votes_)
    for member in range(n):
        approach.votes_ = np.eye(n)[member]
        each.append(explainer.explain(X).values)
    found = {rule: np.tensordot(votes(judged), np.stack(each), 1) for rule, votes in RULES.items()}
    if not name.startswith("mixed"):
        found["gaussian"] = Explainer(model, approach="gaussian", **options).fit(X_train).explain(X).values
    return {rule: float(np.abs(values - phi).mean() / np.abs(phi).mean()) for rule, values in found.items()}


def lines_of(results: dict[str, list[dict[str, float]]]) -> list[dict[str, str]]:
    """A line for each rule: mean errors over those of `BASE`, with the errors themselves in its own line."""
    lines = []
    for rule in (*RULES, "gaussian"):
        line = {"votes": rule}
        for design, found in results.items():
            now, own = (np.mean([one[name] for one in found if name in one] or [np.nan]) for name in (BASE, rule))
            line[design] = "" if np.isnan(own) else f"{own:.3f}" if rule == BASE else f"{own / now:.2f}"
        lines.append(line)
    return lines


def main() -> None:
    options = parser("votes", __doc__).parse_args()
    results: dict[str, list[dict[str, float]]] = {}
    for design in DESIGNS:
        for repetition in range(FIRST, FIRST + N_REPETITIONS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.setdefault(design, []).append(errors_of(design, repetition))
            print(design, repetition, results[design][-1], flush=True)
    publish("votes", results, table(lines_of(results)), write=options.write)


if __name__ == "__main__":
    main()
