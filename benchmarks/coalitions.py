"""Coalitions that ``n_coalitions="auto"`` takes, beside R shapr's default iterative procedure at the same tolerance.

Run ``python -m benchmarks.coalitions``; the table goes into benchmarks/README.md, the numbers into
benchmarks/results/coalitions.json. Both procedures get the same v(S), and the truth comes from all 2^M coalitions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

import condshap as cs
from benchmarks.games import Boosted, ClosedForm, Game, exact_values
from benchmarks.measure import machine
from benchmarks.shapr_iterative import iterate
from condshap.approaches.base import ALL_KINDS

TOLERANCE = 0.02
BAR = 0.6
DESIGN_SEED = 100  # other designs than those with which the covariance was chosen
RESULTS = Path(__file__).parent / "results" / "coalitions.json"

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
        """v(S), (C, R, 1), of the game's own rows."""
        assert np.array_equal(X, self.game.rows)
        return self.game.values(masks)[..., None]


def ours(game: Game, seed: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Coalitions, Shapley values and standard errors, both (P, R), of ``n_coalitions="auto"``."""
    base = float(game.values(np.zeros((1, game.rows.shape[1]), dtype=bool))[0, 0])
    explainer = cs.Explainer(
        game.predict, approach=Known(game), n_coalitions="auto", tolerance=TOLERANCE, base_value=base, seed=seed
    )
    explanation = explainer.fit(game.rows).explain(game.rows)
    return explanation.provenance.n_coalitions, explanation.values.T, explanation.std_errors.T


def shapr(game: Game, seed: int, *, every_row: bool) -> tuple[int, np.ndarray, np.ndarray]:
    """Run R's procedure."""
    stopped = iterate(game.values, game.rows.shape[1], seed=seed, tolerance=TOLERANCE, every_row=every_row)
    return stopped.n_coalitions, stopped.phi, stopped.sd


def summarise(runs: list[tuple[int, np.ndarray, np.ndarray]], truth: np.ndarray) -> dict[str, float]:
    """Mean number of coalitions and how far the values are from the truth (P, R), over the runs."""
    spread = np.ptp(truth, axis=0)
    errors = np.array([phi - truth for _, phi, _ in runs]) / spread  # (runs, P, R)
    within = [np.abs(phi - truth) <= 2 * se for _, phi, se in runs]
    return {
        "coalitions": float(np.mean([n for n, _, _ in runs])),
        "fewest": min(n for n, _, _ in runs),
        "most": max(n for n, _, _ in runs),
        "rms_worst_row": float(np.sqrt((errors**2).mean(axis=(0, 1))).max()),
        "largest": float(np.abs(errors).max()),
        "within_2_se": float(np.mean(within)),
    }


def run_case(name: str, n_seeds: int) -> dict[str, Any]:
    """Run all procedures of one case on every seed."""
    make, n_features, n_rows = CASES[name]
    game = make(n_features, n_rows, DESIGN_SEED + n_features)
    truth, seeds = exact_values(game), range(n_seeds)
    found = {
        "ours": summarise([ours(game, seed) for seed in seeds], truth),
        "shapr": summarise([shapr(game, seed, every_row=False) for seed in seeds], truth),
        "shapr_every_row": summarise([shapr(game, seed, every_row=True) for seed in seeds], truth),
    }
    ratio = found["ours"]["coalitions"] / found["shapr"]["coalitions"]
    return {"case": name, "rows": n_rows, "seeds": n_seeds, "ratio": ratio, **found}


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown."""
    head = (
        "| problem | auto: coalitions | worst row | largest | within 2 se "
        "| shapr: coalitions | worst row | largest | within 2 sd "
        f"| shapr, every row | ratio | at most {BAR} |"
    )
    text = [head, "|" + " --- |" * 12]
    for line in lines:
        cells = [line["case"]]
        for who in ("ours", "shapr"):
            one = line[who]
            cells += [f"{one['coalitions']:.0f}", f"{one['rms_worst_row']:.1%}", f"{one['largest']:.1%}"]
            cells.append(f"{one['within_2_se']:.0%}")
        verdict = "yes" if line["ratio"] <= BAR else "no"
        cells += [f"{line['shapr_every_row']['coalitions']:.0f}", f"{line['ratio']:.2f}", verdict]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text)


def main() -> None:
    """Print the table and store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--case", action="append", choices=list(CASES), help="may be repeated; by default all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = []
    for name in options.case or CASES:
        lines.append(run_case(name, options.seeds))
        print(table(lines[-1:]).splitlines()[-1], flush=True)
    print(f"\n{machine()}\n\n{table(lines)}")
    options.out.write_text(json.dumps({"machine": machine(), "tolerance": TOLERANCE, "cases": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
