"""Penguins with gaps -> classifier -> explanations of its probabilities -> tables, a report.

Nothing is imputed: the forest accepts missing values, and so do the approaches, which model unknown features and leave
known features that are missing as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from condshap.approaches import available_approaches, find_approach
from condshap.comparison import check_approaches
from condshap.datasets import Dataset, load_penguins
from condshap.demo.results import (
    LETTERS,
    DemoResult,
    fit_each,
    msev_table,
    one_output,
    print_files,
    print_msev,
    print_row,
    three_rows_table,
    write_files,
)
from condshap.explanation import Explanation
from condshap.options import check_folder
from condshap.types import Indices, Masks

SPECIES = "Adelie"
"""Species whose probability is shown row by row; the files have all three."""

_TREES = 200
_WHY = ("with a missing value", "with the least certain prediction", f"that is clearly not {SPECIES}")


def run_penguins(
    out: Path, approaches: Sequence[str], *, n_trees: int | None, n_rows: int | None, console: Console
) -> DemoResult:
    """Run the demo; parameters as in `condshap.demo.run_demo`."""
    data = load_penguins()
    names = choose_approaches(approaches, data)
    check_folder(out)
    rows, species = data.X_test.iloc[:n_rows], data.y_test.iloc[:n_rows]
    model = fit_classifier(data, n_trees or _TREES)
    console.print(
        f"Penguins: a forest of {n_trees or _TREES} trees, trained on {len(data.train)} birds, predicts the species of "
        f"{len(rows)} others and gets {int((model.predict(rows) == species).sum())} right.\n"
        f"Missing values stay missing: {int(data.X_train.isna().sum().sum())} in the training rows, "
        f"{int(rows.isna().sum().sum())} in the rows to explain.",
        highlight=False,
    )
    explanations = tuple(explainer.explain(rows) for explainer in fit_each(model, data, names, console))
    msev = msev_table(explanations, {})
    shown = [one_output(explanation, SPECIES) for explanation in explanations]
    chosen = choose_rows(shown[0], rows.isna().any(axis=1).to_numpy())
    three_rows = three_rows_table(shown, chosen)
    about = {"title": "Penguins: why the forest predicts these species", "model": model, "train": data.X_train}
    files = write_files(out, explanations, msev, three_rows, **about)
    result = DemoResult(explanations, msev, chosen, three_rows, files)
    print_result(result, shown, console)
    return result


def choose_approaches(names: Sequence[str], data: Dataset) -> tuple[str, ...]:
    """Approaches to run: those asked for, or all that accept missing values; unsuitable ones raise an error."""
    takes_gaps = tuple(name for name in available_approaches() if find_approach(name).handles_missing)
    chosen = tuple(dict.fromkeys(names)) or takes_gaps
    check_approaches(chosen, data.X_train)
    return chosen


def fit_classifier(data: Dataset, n_trees: int = _TREES, seed: int = 0) -> Any:
    """Random forest that reads the raw table: levels become codes, and what is missing stays missing."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encode = make_column_transformer((OrdinalEncoder(), ["island", "sex"]), remainder="passthrough")
    forest = RandomForestClassifier(n_trees, min_samples_leaf=3, n_jobs=-1, random_state=seed)
    return make_pipeline(encode, forest).fit(data.X_train, data.y_train)


def choose_rows(explanation: Explanation, has_gap: Masks) -> Indices:
    """Positions (3,): the least certain row among those with a gap and among the others, and the smallest probability."""
    doubt = -np.abs(explanation.predictions - 0.5)
    with_gap = int(np.where(has_gap, doubt, -np.inf).argmax())
    complete = int(np.where(has_gap, -np.inf, doubt).argmax())
    return np.array([with_gap, complete, int(explanation.predictions.argmin())], dtype=np.intp)


def print_result(result: DemoResult, shown: Sequence[Explanation], console: Console) -> None:
    """Print MSEv of all three probabilities, three rows of one of them, and where the files are."""
    print_msev(result.msev, console, digits=3)
    console.print("Summed over the probabilities of the three species.")
    for letter, why, position in zip(LETTERS, _WHY, result.chosen, strict=True):
        rows = [explanation[int(position)] for explanation in shown]
        heading = f"a bird {why}, P({SPECIES}) = {rows[0].predictions[0]:.3f}"
        console.print(f"\n[bold]Row {letter}[/bold]: {heading}", highlight=False)
        print_row(rows, console, digits=3)
    print_files(result.files, console)
