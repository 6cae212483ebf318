"""Explanation files -> a report or a plot (``report``, ``plot``); and the list of ``approaches``."""

from __future__ import annotations

from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from condshap.approaches import available_approaches, find_approach
from condshap.cli.csv_file import text_columns
from condshap.cli.files import load_explanations, make_room, read_table, suffix_of
from condshap.cli.options import AsJson, is_given, read_output, read_row
from condshap.cli.screen import clear_messages, print_json, print_written
from condshap.exceptions import OptionError, listing
from condshap.storage.writing import write_figure

if TYPE_CHECKING:
    import pandas as pd

    from condshap.explanation import Explanation

_PICTURES = (".png", ".pdf", ".svg")
_DPI = 150


class Kind(StrEnum):
    """Kinds of plots that need only explanation files."""

    bar = "bar"
    waterfall = "waterfall"
    beeswarm = "beeswarm"
    scatter = "scatter"
    force = "force"
    heatmap = "heatmap"
    compare = "compare"
    msev = "msev"


class By(StrEnum):
    """What MSEv is averaged over."""

    overall = "overall"
    row = "row"
    size = "size"


_SEVERAL = {Kind.compare, Kind.msev}
_TAKES = {
    Kind.bar: {"row", "max_features"},
    Kind.waterfall: {"row", "max_features"},
    Kind.beeswarm: {"max_features"},
    Kind.scatter: {"feature", "color"},
    Kind.force: {"row", "max_features"},
    Kind.heatmap: {"max_features"},
    Kind.compare: {"row", "max_features"},
    Kind.msev: {"by"},
}
"""Options that only some kinds of plots accept; all kinds accept the others."""

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Explanations of the same rows, as written by 'condshap explain'."),
]


def approaches(as_json: AsJson = False) -> None:
    """List the approaches: what they support and what they assume."""
    found = []
    for name in available_approaches():
        approach = find_approach(name)
        kinds = sorted((kind.value for kind in approach.supports), reverse=True)
        about = (getdoc(approach) or "").partition("\n")[0].replace("``", "")
        found.append({"name": name, "features": kinds, "missing_values": approach.handles_missing, "about": about})
    if as_json:
        print_json(found)
        return
    table = Table("approach", "features", "missing values", "what it does", box=box.ROUNDED)
    for line in found:
        missing = "yes" if line["missing_values"] else "no"
        table.add_row(str(line["name"]), "\n".join(line["features"]), missing, escape(str(line["about"])))
    Console().print(table)


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Explanations of the same rows, as written by 'condshap explain', or one folder of many rows.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Report to write, .html; it needs no network connection.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Name of an explanation, once per file. Default: its approach.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Training rows, .csv or .parquet: the report marks rows outside their range.")
    ] = None,
    model_name: Annotated[str | None, typer.Option(help="Name of the model, shown in the report.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write explanations to one HTML page: how good they are, which features matter, and every row in detail."""
    if suffix_of(out) not in {".html", ".htm"}:
        raise typer.BadParameter(f"must end in .html, got '{out}'.", param_hint="--out")
    if name and len(name) != len(files):
        raise typer.BadParameter(f"must be given once per file, got {len(name)} for {len(files)}.", param_hint="--name")
    from condshap.bulk.opening import open_explanations
    from condshap.reporting import report as write_report

    with clear_messages():
        make_room(out)
        if len(files) == 1 and files[0].is_dir():
            folder = open_explanations(files[0])
            rows = _training_rows(train, folder.to_explanation(1))
            folder.report(out, names=name, title=title, model=model_name, train=rows)
        else:
            found = load_explanations(files)
            rows = _training_rows(train, next(iter(found.values())))
            labels = name or list(found)
            write_report(list(found.values()), out, names=labels, title=title, model=model_name, train=rows)
        print_written([out], as_json=as_json)


def _training_rows(train: Path | None, like: Explanation) -> pd.DataFrame | None:
    """Training rows, read with the types of explained rows."""
    from condshap.tables.reading import to_pandas

    return None if train is None else read_table(train, text_columns(to_pandas(like.data)), like.feature_names)


def plot(
    context: typer.Context,
    files: Files,
    kind: Annotated[Kind, typer.Option(help="What to draw.")],
    out: Annotated[Path, typer.Option(help="File to write: .png, .pdf or .svg.")],
    row: Annotated[
        list[str] | None,
        typer.Option(
            help="A row: its position from 0, or its label in the index ('label:7' if that is a number). With --kind bar, "
            "repeat it, or leave it out for all rows."
        ),
    ] = None,
    feature: Annotated[str | None, typer.Option(help="With --kind scatter: the feature on the x-axis.")] = None,
    color: Annotated[str | None, typer.Option(help="With --kind scatter: the feature that colours the points.")] = None,
    by: Annotated[
        By, typer.Option(help="With --kind msev: overall, by row, or by number of known features.")
    ] = By.overall,
    output: Annotated[str | None, typer.Option(help="Which of several outputs to draw: a name or a position.")] = None,
    facet: Annotated[bool, typer.Option("--facet", help="Draw one panel per output.")] = False,
    max_features: Annotated[int, typer.Option(min=2, help="Features to show; the rest are added up as one.")] = 12,
    as_json: AsJson = False,
) -> None:
    """Draw one plot of explanations."""
    _check_plot(context, kind, files, out)
    rows = None if row is None else [read_row(text) for text in row]
    given = {"row": (rows or [0])[0], "feature": feature, "color": color, "by": by.value, "max_features": max_features}
    options: dict[str, Any] = {name: value for name, value in given.items() if name in _TAKES[kind]}
    if kind is Kind.bar:
        del options["row"]
        options["rows"] = rows
    with clear_messages():
        make_room(out)
        _draw(kind, load_explanations(files), out, options, output=output, facet=facet)
        print_written([out], as_json=as_json)


def _draw(
    kind: Kind, found: dict[str, Explanation], out: Path, options: dict[str, Any], *, output: str | None, facet: bool
) -> None:
    import matplotlib

    matplotlib.use("agg")  # files only: no display is needed
    import matplotlib.pyplot as plt

    from condshap import plots

    draw = getattr(plots, kind.value)
    what = found if kind in _SEVERAL else next(iter(found.values()))
    if facet:
        axes = plots.facet(draw, what, **options)[0]
    else:
        chosen = _choose_output(kind, next(iter(found.values())), output)
        axes = draw(what, output=chosen, **options)
    write_figure(axes.figure, out, dpi=_DPI, bbox_inches="tight")
    plt.close(axes.figure)


def _choose_output(kind: Kind, explanation: Explanation, output: str | None) -> str | int | None:
    """One output by name or position, required if there are several, except for MSEv, which is summed over outputs."""
    names = explanation.output_names
    if output is None and explanation.values.ndim == 3 and kind is not Kind.msev:
        raise OptionError(
            f"a {kind} plot shows one output, got {len(names)}: {listing(names)}. Choose one by name or position with "
            "--output, or draw all of them with --facet."
        )
    return read_output(output)


def _check_plot(context: typer.Context, kind: Kind, files: list[Path], out: Path) -> None:
    """Refuse options that cannot be combined."""
    if suffix_of(out) not in _PICTURES:
        raise typer.BadParameter(f"must end in {', '.join(_PICTURES)}, got '{out}'.", param_hint="--out")
    if kind not in _SEVERAL and len(files) > 1:
        several = " or ".join(sorted(_SEVERAL))
        raise typer.BadParameter(
            f"--kind {kind} takes one file, got {len(files)}; for several use {several}.", param_hint="FILE"
        )
    for option in sorted(set.union(*_TAKES.values()) - _TAKES[kind]):
        if is_given(option, context):
            kinds = ", ".join(one for one, taken in _TAKES.items() if option in taken)
            raise typer.BadParameter(f"works only with --kind {kinds}.", param_hint=f"--{option.replace('_', '-')}")
    if is_given("facet", context) and is_given("output", context):
        raise typer.BadParameter("draws all outputs: leave out --output.", param_hint="--facet")
    if kind is Kind.scatter and context.params["feature"] is None:
        raise typer.BadParameter("is required by --kind scatter.", param_hint="--feature")
    if kind is not Kind.bar and len(context.params["row"] or ()) > 1:
        raise typer.BadParameter(f"must be given only once with --kind {kind}.", param_hint="--row")
