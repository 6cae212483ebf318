"""How near the approaches come to true Shapley values: the paper's Burr study, M = 5, N_train = 1000, a forest of 500 trees.

Run ``python -m benchmarks.burr``; the table goes into benchmarks/README.md. Every finished approach of a repetition is
one line of the store, so a run that was stopped goes on where it was, and approaches that come later are added. True
contribution functions lie beside the store, in a folder of the same name with the ending .truth.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from benchmarks.measure import machine
from condshap.coalitions import all_coalitions
from condshap.evaluation import ec1, ec2, ec3
from condshap.numerics.shapley import exact_shapley, exact_shapley_variances
from condshap.seeding import derive_seed
from condshap.studies.designs import Burr, burr_design

N_FEATURES, N_TRAIN = 5, 1000
MASKS = all_coalitions(N_FEATURES).masks
PAPER = {  # mean EC1, EC2 and EC3 over 20 repetitions, M = 5, N_train = 1000
    "truth": (0.0, 0.0, 0.4285),
    "independence": (0.1095, 0.1579, 0.5821),
    "empirical": (0.0479, 0.0499, 0.4864),
    "gaussian": (0.0424, 0.0159, 0.4490),
    "copula": (0.0472, 0.0257, 0.4575),
    "ctree": (0.0480, 0.0325, 0.4615),
    "vaeac": (0.0264, 0.0092, 0.4402),
}
APPROACHES = tuple(name for name in PAPER if name != "truth")
TOLERANCE = 0.15
RATIOS = "Ratios are of means over repetitions, with paired standard errors by the delta method."
TRUTH_SAMPLES = {1: 256, 2: 128, 3: 128, 4: 128}  # by coalition size: small and large ones weigh most in the values
TRUTH_REPLICATES = 2


@dataclass(frozen=True)
class Study:
    """What is asked for: repetitions, explained rows of each, trees of the forest, and the file of results."""

    repetitions: int
    rows: int
    trees: int
    store: Path

    @property
    def setting(self) -> dict[str, int]:
        """What else tells a line of the store from another: lines of other settings are left alone."""
        return {"rows": self.rows, "trees": self.trees}


@dataclass(frozen=True)
class Problem:
    """One repetition: rows, model and base value."""

    design: Burr
    X_train: pd.DataFrame
    X: pd.DataFrame
    model: RandomForestRegressor
    base_value: float


@dataclass(frozen=True)
class Truth:
    """True contribution function and its standard errors, both (C, R), and the CPU seconds that they took."""

    v: np.ndarray
    std_errors: np.ndarray
    cpu: float

    @property
    def phi(self) -> np.ndarray:
        """True Shapley values (R, M)."""
        return exact_shapley(self.v, MASKS).T

    @property
    def error(self) -> float:
        """Mean absolute error of the true Shapley values by sampling: on the scale of EC1, adds in quadrature."""
        variances = exact_shapley_variances(self.std_errors**2, MASKS)
        return float(np.sqrt(2 / np.pi) * np.sqrt(variances).mean())


def make_problem(study: Study, repetition: int) -> Problem:
    """Draw a design, rows and responses, and fit the forest that is nearest to R's ranger; `repetition` seeds it all."""
    design = burr_design(N_FEATURES, repetition)
    X_train = design.draw(N_TRAIN, derive_seed(repetition, "training rows"))
    X = design.draw(study.rows, derive_seed(repetition, "test rows"))
    y = design.respond(X_train, derive_seed(repetition, "training responses"))
    forest = RandomForestRegressor(
        study.trees, max_features="sqrt", min_samples_split=6, random_state=repetition, n_jobs=1
    )
    return Problem(design, X_train, X, forest.fit(X_train, y), float(y.mean()))


def find_truth(study: Study, repetition: int, problem: Problem) -> Truth:
    """Truth of a repetition, from its file if it was computed before."""
    folder = study.store.with_suffix(".truth")
    path = folder / f"{repetition}-{study.rows}-{study.trees}.npz"
    if path.exists():
        with np.load(path) as arrays:
            return Truth(arrays["v"], arrays["std_errors"], float(arrays["cpu"]))
    truth = compute_truth(problem)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part.npz")
    np.savez_compressed(unfinished, v=truth.v, std_errors=truth.std_errors, cpu=truth.cpu)
    unfinished.replace(path)  # a run stopped while it writes leaves no broken file
    return truth


def compute_truth(problem: Problem) -> Truth:
    """Average the forest over exact conditional draws, with more of them where they matter more."""
    start = time.process_time()
    v, std_errors = np.empty((2, len(MASKS), len(problem.X)))
    v[0], std_errors[0] = problem.base_value, 0.0
    v[-1], std_errors[-1] = problem.model.predict(problem.X), 0.0
    for size, n_samples in TRUTH_SAMPLES.items():
        some = MASKS.sum(axis=1) == size
        v[some], std_errors[some] = problem.design.true_values(
            problem.model,
            problem.X,
            MASKS[some],
            method="sampling",
            n_samples=n_samples,
            n_replicates=TRUTH_REPLICATES,
            seed=derive_seed(0, "truth"),
        )
    return Truth(v, std_errors, time.process_time() - start)


def run_approach(name: str, problem: Problem, truth: Truth, seed: int) -> dict[str, float]:
    """Criteria of one approach with its default options; EC2 and EC3 are freed of sampling variance."""
    start = time.process_time()
    found = cs.explain(
        problem.model,
        problem.X_train,
        problem.X,
        approach=name,
        base_value=problem.base_value,
        seed=seed,
        progress=False,
    )
    cpu = time.process_time() - start
    table, inside = found.value_table, slice(1, -1)
    assert np.array_equal(table.coalitions, MASKS)
    errors = np.hypot(truth.std_errors, table.std_errors)[inside]
    return {
        "ec1": float(ec1(truth.phi, found.values)),
        "ec2": float(ec2(truth.v[inside], table.values[inside], std_errors=errors)),
        "ec3": float(found.msev),
        "cpu": cpu,
    }


def run_repetition(study: Study, repetition: int, approaches: Iterable[str]) -> None:
    """Compute what a repetition still lacks and store each result at once."""
    problem = make_problem(study, repetition)
    truth = find_truth(study, repetition, problem)
    for name in approaches:
        found = truth_criteria(truth) if name == "truth" else run_approach(name, problem, truth, seed=repetition)
        line = {"repetition": repetition, "approach": name, **study.setting, **found}
        with study.store.open("a") as file:
            file.write(json.dumps(line) + "\n")  # one short write: lines of several processes do not mix


def truth_criteria(truth: Truth) -> dict[str, float]:
    """EC3 of the truth itself, and as EC1 its own sampling error."""
    inside = slice(1, -1)
    found = ec3(truth.v[-1], truth.v[inside], std_errors=truth.std_errors[inside])
    return {"ec1": truth.error, "ec2": 0.0, "ec3": float(found), "cpu": truth.cpu}


def read_store(study: Study) -> dict[tuple[int, str], dict[str, Any]]:
    """Lines of this setting by repetition and approach; of several the last one counts."""
    if not study.store.exists():
        return {}
    lines = [json.loads(line) for line in study.store.read_text().splitlines()]
    own = [line for line in lines if study.setting.items() <= line.items()]
    return {(line["repetition"], line["approach"]): line for line in own}


def run_missing(study: Study, jobs: int, again: Iterable[str]) -> None:
    """Run every repetition that lacks an approach, several at a time."""
    study.store.parent.mkdir(parents=True, exist_ok=True)
    names = ["truth", *(name for name in APPROACHES if name in cs.available_approaches())]
    done = {key for key in read_store(study) if key[1] not in set(again)}
    missing = {r: [name for name in names if (r, name) not in done] for r in range(study.repetitions)}
    work = [delayed(run_repetition)(study, r, lacking) for r, lacking in missing.items() if lacking]
    Parallel(n_jobs=jobs, batch_size=1)(work)


def ratio_of_means(values: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Ratio of two means over the same repetitions and its standard error by the delta method."""
    ratio = values.mean() / others.mean()
    if len(values) < 2:
        return float(ratio), np.nan
    return float(ratio), float((values - ratio * others).std(ddof=1) / np.sqrt(len(values)) / others.mean())


def verdict(ratio: float, std_error: float, expected: float) -> str:
    """Say whether a ratio lies within 15 % or two paired standard errors of the paper's."""
    off = abs(ratio - expected)
    reasons = {"15 %": off <= TOLERANCE * expected, "2 standard errors": off <= 2 * std_error}
    outside = "neither: better" if ratio < expected else "**neither**"
    return " and ".join(reason for reason, holds in reasons.items() if holds) or outside


def print_table(study: Study) -> None:
    """Print a line per approach, over the repetitions that have all of them."""
    found = read_store(study)
    names = [name for name in APPROACHES if any(key[1] == name for key in found)]
    complete = [r for r in range(study.repetitions) if all((r, name) in found for name in ("truth", *names))]
    if not complete:
        print("No repetition is complete.")
        return
    results = pd.DataFrame([found[r, name] for r in complete for name in ("truth", *names)])
    truth_error = results.loc[results["approach"] == "truth", "ec1"].mean()
    print(f"{machine()}\n\n{len(complete)} repetitions, {study.rows} rows each, {study.trees} trees. {RATIOS}")
    print(f"The sampling error of the truth is {truth_error:.4f} on the scale of EC1, where it adds in quadrature.\n")
    print("| approach | EC1 | paper | over independence | paper | within | EC2 | paper | EC3 | paper | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ("truth", *names):
        print(_line(name, results))
    absent = [name for name in APPROACHES if name not in names]
    print(f"\nNot measured yet: {', '.join(absent)}." if absent else "")


def _line(name: str, results: pd.DataFrame) -> str:
    """One approach beside the paper's figures."""
    own = results[results["approach"] == name]
    others = results.loc[results["approach"] == "independence", "ec1"].to_numpy()
    values, paper = own["ec1"].to_numpy(), PAPER[name]
    if name == "truth":
        first = "- | - | - | - | -"
    else:
        ratio, std_error = ratio_of_means(values, others)
        expected = paper[0] / PAPER["independence"][0]
        judged = "-" if name == "independence" else verdict(ratio, std_error, expected)
        first = (
            f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan:.4f} | "
            f"{paper[0]:.4f} | {ratio:.3f} ± {std_error:.3f} | {expected:.3f} | {judged}"
        )
    ec2_, ec3_, cpu = (own[key].mean() for key in ("ec2", "ec3", "cpu"))
    return f"| {name} | {first} | {ec2_:.4f} | {paper[1]:.4f} | {ec3_:.4f} | {paper[2]:.4f} | {cpu:.1f} |"


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100, help="explained rows of each repetition")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2, help="repetitions at a time")
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/burr_m5.jsonl"))
    parser.add_argument("--again", nargs="*", default=[], metavar="APPROACH", help="compute these once more")
    given = parser.parse_args()
    study = Study(given.repetitions, given.rows, given.trees, given.store)
    run_missing(study, given.jobs, given.again)
    print_table(study)


if __name__ == "__main__":
    main()
