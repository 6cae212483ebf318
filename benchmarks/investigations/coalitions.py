"""How many coalitions does ``n_coalitions="auto"`` take, beside R shapr's iterative procedure at the same tolerance?

Answer: 0.23 to 0.53 of R's a row, in all ten problems, with smaller errors: the worst row is off by at most 2.0 % of its
spread, R's by up to 9.1 %.

Both procedures get the same v(S), and the truth comes from all 2^M coalitions. Every problem is there in several designs,
that is models and rows, so that no line hangs on the luck of one. The engine has learned about noise and relevances since;
``game_suite`` measures the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

import condshap as cs
from benchmarks.lib.games import Boosted, ClosedForm, Game, exact_values
from benchmarks.lib.report import parser, publish, read, yes
from benchmarks.lib.shapr_iterative import iterate, without_stopping
from condshap.approaches.base import ALL_KINDS

TOLERANCE = 0.02
MOST = 0.6
"""Share of R's coalitions, and so of its model calls, at which an explanation is clearly cheaper."""
NUMBERS = [2 * round(50 * 1.15**k) for k in range(36)]
DESIGN_SEEDS = (100, 200, 300)  # other designs than those with which the engine's settings were chosen

linear = partial(ClosedForm, interactions=False)
interactions = partial(ClosedForm, interactions=True)
boosted = partial(Boosted, conditional=False)
boosted_given = partial(Boosted, conditional=True)
CASES: dict[str, tuple[Callable[..., Game], int, int]] = {
    "linear, M = 15": (linear, 15, 20),
    "linear, M = 20": (linear, 20, 20),
    "linear, M = 25": (linear, 25, 10),
    "interactions, M = 15": (interactions, 15, 20),
    "interactions, M = 20": (interactions, 20, 20),
    "interactions, M = 25": (interactions, 25, 10),
    "XGBoost, independence, M = 15": (boosted, 15, 10),
    "XGBoost, independence, M = 20": (boosted, 20, 6),
    "XGBoost, conditional, M = 15": (boosted_given, 15, 10),
    "XGBoost, conditional, M = 20": (boosted_given, 20, 6),
}


class Known(BaseEstimator):
    """Approach that answers with a game's v(S)."""

    name: ClassVar[str] = "known"
    supports: ClassVar[frozenset[Any]] = ALL_KINDS
    handles_missing: ClassVar[bool] = False

    def __init__(self, game: Game) -> None:
        self.game = game

    def __sklearn_clone__(self) -> Known:
        """Share the game."""
        return Known(self.game)

    def fit(self, *_: Any, **__: Any) -> Known:
        """Learn nothing."""
        return self

    def estimate(self, X: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """v(S), (C, R, 1), of some of the game's own rows."""
        asked = [int(np.flatnonzero((self.game.rows == x).all(axis=1))[0]) for x in X]
        return self.game.values(masks)[:, asked, None]


@dataclass(frozen=True)
class Run:
    """Coalitions used (R,), Shapley values and standard errors, both (P, R)."""

    coalitions: np.ndarray
    phi: np.ndarray
    errors: np.ndarray


def ours(game: Game, seed: int) -> Run:
    """Run ``n_coalitions="auto"``."""
    base = float(game.values(np.zeros((1, game.rows.shape[1]), dtype=bool))[0, 0])
    explainer = cs.Explainer(
        game.predict, approach=Known(game), n_coalitions="auto", tolerance=TOLERANCE, base_value=base, seed=seed
    )
    explanation = explainer.fit(game.rows).explain(game.rows)
    used = (~np.isnan(explanation.value_table.values)).sum(axis=0)
    return Run(used, explanation.values.T, explanation.std_errors.T)


def shapr(game: Game, seed: int, *, every_row: bool) -> Run:
    """Run R's procedure, in which all rows have the same coalitions."""
    n_rows, n_players = game.rows.shape
    stopped = iterate(game.values, n_players, seed=seed, tolerance=TOLERANCE, every_row=every_row)
    return Run(np.full(n_rows, stopped.n_coalitions), stopped.phi, stopped.sd)


def worst_row(phis: Sequence[np.ndarray], truth: np.ndarray) -> float:
    """Root mean square over runs and players of the error over the spread, of the row where it is largest."""
    errors = (np.array(phis) - truth) / np.ptp(truth, axis=0)
    return float(np.sqrt((errors**2).mean(axis=(0, 1))).max())


def matching(game: Game, truth: np.ndarray, error: float, n_seeds: int) -> int | None:
    """Coalitions with which shapr's estimates have this error in their worst row; None if NUMBERS are not enough."""
    P = game.rows.shape[1]
    every = [without_stopping(game.values, P, seed=seed, numbers=NUMBERS) for seed in range(n_seeds)]
    by_number = zip(NUMBERS, zip(*every, strict=True), strict=True)
    return next((n for n, phis in by_number if worst_row(phis, truth) <= error), None)


def summarise(runs: list[Run], truth: np.ndarray) -> dict[str, float]:
    """Mean number of coalitions and how far the values are from the truth (P, R), over the runs."""
    errors = np.array([run.phi - truth for run in runs]) / np.ptp(truth, axis=0)  # (runs, P, R)
    within = [np.abs(run.phi - truth) <= 2 * run.errors for run in runs]
    return {
        "coalitions": float(np.mean([run.coalitions.mean() for run in runs])),
        "worst_row_coalitions": float(np.mean([run.coalitions.max() for run in runs])),
        "worst_row": worst_row([run.phi for run in runs], truth),
        "largest": float(np.abs(errors).max()),
        "within_2_se": float(np.mean(within)),
    }


def run_case(name: str, n_designs: int, n_seeds: int) -> dict[str, Any]:
    """Run all procedures of one case on every design and seed."""
    designs = [run_design(name, seed, n_seeds) for seed in DESIGN_SEEDS[:n_designs]]
    return {"case": name, "rows": CASES[name][2], "seeds": n_seeds, **over_designs(designs), "designs": designs}


def over_designs(designs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over designs, but the largest of errors, and None where some design has it."""
    found: dict[str, Any] = {"ratio": float(np.mean([one["ratio"] for one in designs]))}
    same_error = [one["shapr_same_error"] for one in designs]
    found["shapr_same_error"] = None if None in same_error else float(np.mean(same_error))
    for procedure in ("ours", "shapr", "shapr_every_row"):
        every = [one[procedure] for one in designs]
        joined = {key: max if key in ("worst_row", "largest") else np.mean for key in every[0]}
        found[procedure] = {key: float(join([one[key] for one in every])) for key, join in joined.items()}
    return found


def run_design(name: str, seed: int, n_seeds: int) -> dict[str, Any]:
    """Run all procedures of one design of a case on every seed."""
    make, n_features, n_rows = CASES[name]
    game = make(n_features, n_rows, seed + n_features)
    truth, seeds = exact_values(game), range(n_seeds)
    found = {
        "ours": summarise([ours(game, seed) for seed in seeds], truth),
        "shapr": summarise([shapr(game, seed, every_row=False) for seed in seeds], truth),
        "shapr_every_row": summarise([shapr(game, seed, every_row=True) for seed in seeds], truth),
    }
    same_error = matching(game, truth, found["ours"]["worst_row"], n_seeds)
    ratio = found["ours"]["coalitions"] / found["shapr"]["coalitions"]
    return {"design": seed + n_features, "ratio": ratio, "shapr_same_error": same_error, **found}


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown."""
    head = (
        "| problem | auto: coalitions a row | in the worst row | error of the worst row | within 2 se "
        "| shapr: coalitions | error of the worst row | within 2 sd | shapr until every row | shapr for auto's error "
        f"| ratio | of single designs | at most {MOST} |"
    )
    text = [head, "|" + " --- |" * 13]
    for line in lines:
        auto, theirs, ratios = line["ours"], line["shapr"], [one["ratio"] for one in line["designs"]]
        same_error = line["shapr_same_error"]
        cells = [
            line["case"], f"{auto['coalitions']:.0f}", f"{auto['worst_row_coalitions']:.0f}", f"{auto['worst_row']:.1%}",
            f"{auto['within_2_se']:.0%}", f"{theirs['coalitions']:.0f}", f"{theirs['worst_row']:.1%}",
            f"{theirs['within_2_se']:.0%}", f"{line['shapr_every_row']['coalitions']:.0f}",
            f"over {NUMBERS[-1]}" if same_error is None else f"{same_error:.0f}", f"{line['ratio']:.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}", yes(line["ratio"] <= MOST),
        ]  # fmt: skip
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def main() -> None:
    """Run the cases that are asked for, print the table of all and store the numbers."""
    given = parser("coalitions", __doc__)
    given.add_argument("--seeds", type=int, default=10)
    given.add_argument("--designs", type=int, default=3, choices=range(1, len(DESIGN_SEEDS) + 1))
    given.add_argument("--case", action="append", choices=list(CASES), help="may be repeated; by default all")
    options = given.parse_args()
    found = {line["case"]: line for line in (read("coalitions") or {"results": []})["results"]}
    for name in options.case or CASES:
        found[name] = run_case(name, options.designs, options.seeds)
        lines = [found[one] for one in CASES if one in found]
        publish("coalitions", lines, table(lines), write=options.write)


if __name__ == "__main__":
    main()
