"""Explanations -> what every demo shows and writes: MSEv by approach, three rows in detail, a report, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from condshap.datasets import Dataset
from condshap.explainer import Explainer
from condshap.explanation import Explanation
from condshap.numerics.readable import feature_value, fixed, typed
from condshap.ranking import compare_explanations
from condshap.storage.writing import write_whole
from condshap.types import Indices

LETTERS = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo found: explanations of the test rows, their MSEv, three rows in detail, and the files written.

    Attributes
    ----------
    explanations : one per approach, all of the same R rows
    msev : frame with one line per approach: approach, msev, msev_se, low, high, paper, seconds, model_rows
    chosen : (3,) positions among the explained rows
    three_rows : frame with one line per chosen row, approach and feature
    files : what was written
    """

    explanations: tuple[Explanation, ...]
    msev: pd.DataFrame
    chosen: Indices
    three_rows: pd.DataFrame
    files: tuple[Path, ...]


def fit_each(
    model: Any, data: Dataset, approaches: Sequence[str], console: Console, base_value: float | None = None
) -> Iterator[Explainer]:
    """Fit an explainer with one approach after the other to the training rows."""
    for i, name in enumerate(approaches, start=1):
        console.print(f"Explaining with approach '{name}' ({i} of {len(approaches)}) ...", highlight=False)
        yield Explainer(model, approach=name, base_value=base_value).fit(data.X_train)


def one_output(explanation: Explanation, name: str) -> Explanation:
    """Explanation of one of several outputs."""
    j = explanation.output_names.index(name)
    table = explanation.value_table
    return replace(
        explanation,
        values=explanation.values[:, :, j],
        base_values=explanation.base_values[:, j],
        predictions=explanation.predictions[:, j],
        std_errors=explanation.std_errors[:, :, j],
        model_errors=explanation.model_errors[:, :, j],
        value_table=replace(table, values=table.values[:, :, j], std_errors=table.std_errors[:, :, j]),
        output_names=(name,),
    )


def msev_table(explanations: Sequence[Explanation], paper: dict[str, float]) -> pd.DataFrame:
    """MSEv of every explanation, with its 95 % interval over rows, beside the paper's; smaller is better."""
    table = compare_explanations(explanations)
    table.insert(5, "paper", [paper.get(name, np.nan) for name in table["approach"]])
    return table


def three_rows_table(explanations: Sequence[Explanation], chosen: Indices) -> pd.DataFrame:
    """Shapley values of the chosen rows, one line per row, approach and feature."""
    frames = []
    for letter, position in zip(LETTERS, chosen, strict=True):
        for explanation in explanations:
            one = explanation[int(position)]
            frame = pd.DataFrame({"feature": one.feature_names, "value": [_text(v) for v in one.data.iloc[0]]})
            frame["shapley_value"], frame["error"] = one.values[0], one.errors[0]
            frame["base_value"], frame["prediction"] = one.base_values[0], one.predictions[0]
            frame.insert(0, "approach", one.provenance.approach)
            frame.insert(0, "row", letter)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def write_files(
    out: Path, explanations: Sequence[Explanation], msev: pd.DataFrame, three_rows: pd.DataFrame, **about: Any
) -> tuple[Path, ...]:
    """Write the report, explanations as Parquet and both tables as CSV; `about` goes to `condshap.report`."""
    from condshap.reporting import report

    written = [out / "report.html"]
    report(sorted(explanations, key=lambda one: float(one.msev)), written[0], **about)  # it opens with the best
    for explanation in explanations:
        written.append(out / f"{explanation.provenance.approach}.parquet")
        explanation.save(written[-1])
    for name, frame in (("msev.csv", msev), ("three_rows.csv", three_rows)):
        written.append(out / name)
        write_whole(written[-1], frame.to_csv(index=False), "a table")
    return tuple(written)


def print_files(files: Sequence[Path], console: Console) -> None:
    """Say where everything is, and what to look at first."""
    console.print("\nWritten:")
    for path in files:
        console.print(f"  {escape(str(path))}", highlight=False, soft_wrap=True)
    console.print(f"Open {escape(str(files[0]))} in a browser to explore every row.", highlight=False, soft_wrap=True)


def print_msev(msev: pd.DataFrame, console: Console, digits: int = 2) -> None:
    """Print MSEv by approach, beside the paper's where it has any."""
    console.print("\n[bold]MSEv[/bold], mean squared distance of v(S) from the prediction (smaller is better)")
    has_paper = msev["paper"].notna().any()
    table = Table("approach", box=box.ROUNDED)
    for heading in ("MSEv", "95 % interval", *(["paper"] if has_paper else []), "seconds"):
        table.add_column(heading, justify="right")
    for line in msev.to_dict("records"):
        interval = f"{line['low']:.{digits}f} to {line['high']:.{digits}f}"
        paper = [] if not has_paper else ["" if np.isnan(line["paper"]) else f"{line['paper']:.2f}"]
        table.add_row(line["approach"], f"{line['msev']:.{digits}f}", interval, *paper, f"{line['seconds']:.0f}")
    console.print(table)


def print_row(rows: Sequence[Explanation], console: Console, digits: int = 2) -> None:
    """Print one explained row: its features, and per approach their Shapley values with standard errors."""
    table = Table(show_footer=True, box=box.ROUNDED)
    table.add_column("feature", footer="base value + sum")
    table.add_column("value", justify="right")
    for one in rows:
        base, rise, prediction = one.base_values[0], one.values[0].sum(), one.predictions[0]
        ends = [typed(fixed(value, digits)) for value in (base, prediction)]
        total = f"{ends[0]} {typed(fixed(rise, digits, signed=True))} = {ends[1]}"
        table.add_column(one.provenance.approach, footer=total, justify="right")
    for j, feature in enumerate(rows[0].feature_names):
        value = _text(rows[0].data.iloc[0, j])
        table.add_row(feature, value, *(_signed(one.values[0, j], one.errors[0, j], digits) for one in rows))
    console.print(table)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "missing" if pd.isna(value) else typed(feature_value(value))


def _signed(value: float, error: float, digits: int) -> Text:
    """Shapley value in red if it raises the prediction, in blue if it lowers it."""
    text = f"{typed(fixed(value, digits, signed=True))} ± {fixed(error, digits)}"
    return Text(text, style="red" if value > 0 else "blue")
