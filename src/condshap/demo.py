"""Abalone -> forest -> explanations by several approaches -> tables on screen and in files.

This is Section 5 of the paper, made again: the same rows, the same split, and a forest as near to the authors' as
scikit-learn has one. Their forest came from other software, so compare the approaches with each other rather than a
number with the printed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from condshap.approaches import available_approaches, find_approach
from condshap.approaches.base import check_supported
from condshap.datasets import Dataset, load_abalone
from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.one_call import explain
from condshap.schema import FeatureSchema
from condshap.studies.abalone import choose_three
from condshap.types import Indices

PAPER_MSEV = {"independence": 3.57, "ctree": 1.27, "vaeac": 1.18}
"""EC3 by approach, as printed in Section 5 of the paper."""

_LETTERS = ("A", "B", "C")
_PLACES = ("below", "close to", "above")
_SEXES = {"F": "female", "I": "infant", "M": "male"}


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo found: explanations of the test rows, their MSEv, three rows in detail, and the files written.

    Attributes
    ----------
    explanations : one per approach, all of the same R rows
    msev : frame with one line per approach: approach, msev, std_error, low, high, paper, seconds
    chosen : (3,) positions among the explained rows: predicted below, close to and above the base value
    three_rows : frame with one line per chosen row, approach and feature
    files : what was written
    """

    explanations: tuple[Explanation, ...]
    msev: pd.DataFrame
    chosen: Indices
    three_rows: pd.DataFrame
    files: tuple[Path, ...]


def run_demo(
    out: Path,
    approaches: Sequence[str] = (),
    *,
    n_trees: int = 500,
    n_rows: int | None = None,
    console: Console | None = None,
) -> DemoResult:
    """Run the whole demo; see the module's first line for its way.

    Parameters
    ----------
    out : folder for the files, made if need be
    approaches : names; by default those of the paper that exist
    n_trees, n_rows : a smaller forest and fewer test rows, for a quick look
    console : where to print; by default the terminal
    """
    console = console or Console()
    data = load_abalone()
    names = choose_approaches(approaches, data)
    _make_folder(out)
    console.print(
        f"Abalone: {n_trees} trees, grown on {len(data.train)} snails, predict the rings of "
        f"{n_rows or len(data.test)} others.\nBase value: {data.y_train.mean():.2f}, the mean of the training rows.",
        highlight=False,
    )
    model = fit_forest(data, n_trees)
    explanations = explain_rows(model, data, names, n_rows, console)
    msev = msev_table(explanations)
    chosen = choose_rows(explanations[0], explanations[0].data["Sex"].astype(str).to_numpy())
    three_rows = three_rows_table(explanations, chosen)
    result = DemoResult(explanations, msev, chosen, three_rows, write_files(out, explanations, msev, three_rows))
    print_result(result, console)
    return result


def choose_approaches(names: Sequence[str], data: Dataset) -> tuple[str, ...]:
    """Approaches to run: those asked for, or those of the paper that exist; unfit ones are refused before any work."""
    known = tuple(name for name in PAPER_MSEV if name in available_approaches())
    chosen = tuple(dict.fromkeys(names)) or known
    schema = FeatureSchema.learn(data.X_train)
    for name in chosen:
        check_supported(find_approach(name), schema)
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
) -> tuple[Explanation, ...]:
    """Explain the first `n_rows` test rows with every approach, from the mean training response as base value."""
    rows = data.X_test.iloc[:n_rows]
    base_value = float(data.y_train.mean())
    explanations = []
    for name in approaches:
        console.print(f"Explaining with approach '{name}' ...")
        explanations.append(explain(model, data.X_train, rows, approach=name, base_value=base_value))
    return tuple(explanations)


def msev_table(explanations: Sequence[Explanation]) -> pd.DataFrame:
    """MSEv of every explanation, with its 95 % interval over rows, beside the paper's; smaller is better."""
    lines = []
    for explanation in explanations:
        name, msev = explanation.provenance.approach, explanation.msev
        low, high = msev.interval()
        seconds = sum(explanation.provenance.seconds.values())
        lines.append((name, float(msev), msev.total_std_error(), low, high, PAPER_MSEV.get(name, np.nan), seconds))
    return pd.DataFrame(lines, columns=["approach", "msev", "std_error", "low", "high", "paper", "seconds"])


def choose_rows(explanation: Explanation, sexes: np.ndarray[Any, Any]) -> Indices:
    """Positions (3,) of rows predicted far below, close to and far above the base value, each of another sex."""
    return choose_three(explanation.predictions - explanation.base_values, sexes)


def three_rows_table(explanations: Sequence[Explanation], chosen: Indices) -> pd.DataFrame:
    """Shapley values of the chosen rows, one line per row, approach and feature."""
    frames = []
    for letter, position in zip(_LETTERS, chosen, strict=True):
        for explanation in explanations:
            one = explanation[int(position)]
            frame = pd.DataFrame({"feature": one.feature_names, "value": one.data.iloc[0].astype(str).to_numpy()})
            frame["shapley_value"], frame["std_error"] = one.values[0], one.std_errors[0]
            frame["base_value"], frame["prediction"] = one.base_values[0], one.predictions[0]
            frame.insert(0, "approach", one.provenance.approach)
            frame.insert(0, "row", letter)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def write_files(
    out: Path, explanations: Sequence[Explanation], msev: pd.DataFrame, three_rows: pd.DataFrame
) -> tuple[Path, ...]:
    """Write explanations as Parquet and both tables as CSV."""
    written = []
    for explanation in explanations:
        written.append(out / f"{explanation.provenance.approach}.parquet")
        explanation.save(written[-1])
    for name, frame in (("msev.csv", msev), ("three_rows.csv", three_rows)):
        written.append(out / name)
        frame.to_csv(written[-1], index=False)
    return tuple(written)


def print_result(result: DemoResult, console: Console) -> None:
    """Print both tables and where the files are."""
    console.print("\n[bold]MSEv[/bold], the mean squared distance of v(S) from the prediction: smaller is better")
    console.print(_render_msev(result.msev))
    console.print("The paper's forest is another one: compare approaches, not forests.")
    for letter, place, position in zip(_LETTERS, _PLACES, result.chosen, strict=True):
        rows = [explanation[int(position)] for explanation in result.explanations]
        sex = str(rows[0].data["Sex"].iloc[0])
        heading = f"{_SEXES.get(sex, sex)}, predicted {rows[0].predictions[0]:.2f} rings, {place} the base value"
        console.print(f"\n[bold]Row {letter}[/bold]: {heading}", highlight=False)
        console.print(_render_row(rows))
    console.print("\nWritten:")
    for path in result.files:
        console.print(f"  {path}", highlight=False, soft_wrap=True)


def _render_msev(msev: pd.DataFrame) -> Table:
    table = Table("approach", box=box.ROUNDED)
    for heading in ("MSEv", "95 % interval", "paper", "seconds"):
        table.add_column(heading, justify="right")
    for line in msev.to_dict("records"):
        interval = f"{line['low']:.2f} to {line['high']:.2f}"
        paper = "" if np.isnan(line["paper"]) else f"{line['paper']:.2f}"
        table.add_row(line["approach"], f"{line['msev']:.2f}", interval, paper, f"{line['seconds']:.0f}")
    return table


def _render_row(rows: Sequence[Explanation]) -> Table:
    """One explained row: its features, and per approach their Shapley values with standard errors."""
    table = Table(show_footer=True, box=box.ROUNDED)
    table.add_column("feature", footer="base value + sum")
    table.add_column("value", justify="right")
    for one in rows:
        total = f"{one.base_values[0]:.2f} {one.values[0].sum():+.2f} = {one.predictions[0]:.2f}"
        table.add_column(one.provenance.approach, footer=total, justify="right")
    for j, feature in enumerate(rows[0].feature_names):
        value = rows[0].data.iloc[0, j]
        shown = value if isinstance(value, str) else f"{value:g}"
        table.add_row(feature, shown, *(_signed(one.values[0, j], one.std_errors[0, j]) for one in rows))
    return table


def _signed(value: float, error: float) -> Text:
    """Shapley value in red if it raises the prediction, in blue if it lowers it."""
    return Text(f"{value:+.2f} ± {error:.2f}", style="red" if value > 0 else "blue")


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"the output folder must be one that can be made, got '{out}' ({error.strerror}).") from None
