"""Abalone -> forest -> explanations by several approaches -> tables, the paper's figures, a report.

This repeats Section 5 of the paper: the same rows, the same split, and a forest as close to the authors' as scikit-learn
allows. Their forest came from other software, so compare the approaches with each other, not a number with the printed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from condshap.approaches import available_approaches
from condshap.approaches.base import is_sampler
from condshap.comparison import check_approaches
from condshap.datasets import Dataset, load_abalone
from condshap.demo.results import (
    LETTERS,
    DemoResult,
    fit_each,
    msev_table,
    print_files,
    print_msev,
    print_row,
    three_rows_table,
    write_files,
)
from condshap.explainer import Explainer
from condshap.explanation import Explanation
from condshap.options import check_folder
from condshap.studies.problems.abalone import choose_three
from condshap.types import Indices

PAPER_MSEV = {"independence": 3.57, "ctree": 1.27, "vaeac": 1.18}
"""EC3 by approach, as printed in Section 5 of the paper."""

_PLACES = ("below", "close to", "above")
_SEXES = {"F": "female", "I": "infant", "M": "male"}
_TREES = 500
_DRAWS = 250  # conditional samples in the figures, per value of ShellWeight


def run_abalone(
    out: Path, approaches: Sequence[str], *, n_trees: int | None, n_rows: int | None, console: Console
) -> DemoResult:
    """Run the demo; parameters as in `condshap.demo.run_demo`."""
    data = load_abalone()
    names = choose_approaches(approaches, data)
    check_folder(out)
    console.print(
        f"Abalone: a forest of {n_trees or _TREES} trees, trained on {len(data.train)} sea snails, predicts the rings of "
        f"{n_rows or len(data.test)} others.\nBase value: {data.y_train.mean():.2f}, the mean over the training rows.",
        highlight=False,
    )
    model = fit_forest(data, n_trees or _TREES)
    explainers, explanations = explain_rows(model, data, names, n_rows, console)
    msev = msev_table(explanations, PAPER_MSEV)
    chosen = choose_rows(explanations[0], explanations[0].data["Sex"].astype(str).to_numpy())
    three_rows = three_rows_table(explanations, chosen)
    about = {"title": "Abalone: why the forest predicts these rings", "model": model, "train": data.X_train}
    files = write_files(out, explanations, msev, three_rows, **about)
    figures = draw_figures(out, data, explainers, [explanation[chosen] for explanation in explanations])
    result = DemoResult(explanations, msev, chosen, three_rows, (files[0], *figures, *files[1:]))
    print_result(result, console)
    return result


def choose_approaches(names: Sequence[str], data: Dataset) -> tuple[str, ...]:
    """Approaches to run: those asked for, or the paper's; unsuitable ones raise an error."""
    known = tuple(name for name in PAPER_MSEV if name in available_approaches())
    chosen = tuple(dict.fromkeys(names)) or known
    check_approaches(chosen, data.X_train)
    return chosen


def fit_forest(data: Dataset, n_trees: int = 500, seed: int = 0) -> Any:
    """Random forest that reads the raw table: levels of Sex become the codes 0, 1, 2.

    Notes
    -----
    The authors used ranger's defaults. It, too, takes the levels of a factor as ordered, tries floor(sqrt(M)) features
    per split, and splits nodes of more than five rows.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    levels = data.X["Sex"].cat.categories.tolist()
    encode = make_column_transformer((OrdinalEncoder(categories=[levels]), ["Sex"]), remainder="passthrough")
    forest = RandomForestRegressor(n_trees, max_features="sqrt", min_samples_split=6, n_jobs=-1, random_state=seed)
    return make_pipeline(encode, forest).fit(data.X_train, data.y_train)


def explain_rows(
    model: Any, data: Dataset, approaches: Sequence[str], n_rows: int | None, console: Console
) -> tuple[tuple[Explainer, ...], tuple[Explanation, ...]]:
    """Explain the first `n_rows` test rows with every approach, from the mean training response as base value."""
    rows = data.X_test.iloc[:n_rows]
    explainers, explanations = [], []
    for explainer in fit_each(model, data, approaches, console, float(data.y_train.mean())):
        explainers.append(explainer)
        explanations.append(explainer.explain(rows))
    return tuple(explainers), tuple(explanations)


def choose_rows(explanation: Explanation, sexes: np.ndarray[Any, Any]) -> Indices:
    """Positions (3,) of rows predicted far below, close to and far above the base value, each of another sex."""
    return choose_three(explanation.predictions - explanation.base_values, sexes)


def draw_figures(
    out: Path, data: Dataset, explainers: Sequence[Explainer], three: Sequence[Explanation]
) -> tuple[Path, ...]:
    """Write the paper's figures: Shapley values of three rows; conditional samples and responses, where some are drawn."""
    from condshap.studies.figures.bars import draw_bars
    from condshap.studies.figures.densities import draw_densities
    from condshap.studies.figures.samples import draw_samples
    from condshap.studies.figures.scene import AT, Scene, draw_given
    from condshap.studies.figures.style import save

    row = data.X_train.head(1)
    drawn = {
        (str(explainer.approach), value): draw_given(explainer, row, value, _DRAWS, explainer.seed)
        for explainer in explainers
        if is_sampler(explainer.parts_[0].approach)
        for value in AT
    }
    scene = Scene(data.X_train, drawn, {one.provenance.approach: one for one in three})
    figures = [save(draw_bars(scene), out, "shapley-values")]
    if drawn:
        figures += [save(draw_samples(scene), out, "samples"), save(draw_densities(scene), out, "responses")]
    return tuple(figures)


def print_result(result: DemoResult, console: Console) -> None:
    """Print both tables and where the files are."""
    print_msev(result.msev, console)
    console.print("The paper used a different forest, so compare approaches with each other, not with its numbers.")
    for letter, place, position in zip(LETTERS, _PLACES, result.chosen, strict=True):
        rows = [explanation[int(position)] for explanation in result.explanations]
        sex = str(rows[0].data["Sex"].iloc[0])
        heading = f"{_SEXES.get(sex, sex)}, predicted {rows[0].predictions[0]:.2f} rings, {place} the base value"
        console.print(f"\n[bold]Row {letter}[/bold]: {heading}", highlight=False)
        print_row(rows, console)
    print_files(result.files, console)
