"""Example data -> the ``demo``; arguments after ``study`` -> the commands of `condshap.studies.commands`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from condshap.approaches import available_approaches
from condshap.cli.options import AsJson
from condshap.cli.screen import clear_messages, print_json


class Data(StrEnum):
    """Data sets of the demo."""

    abalone = "abalone"
    penguins = "penguins"


def demo(
    data: Annotated[
        Data, typer.Option(help="abalone: the paper's data; penguins: a classifier and missing values.")
    ] = Data.abalone,
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("demo-output"),
    approach: Annotated[
        list[str] | None,
        typer.Option(
            help="Approach to run; may be repeated. Default: the paper's; for penguins, all that accept missing values.",
            autocompletion=available_approaches,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a model on example data: Abalone, as in Section 5 of the paper, or penguins with missing values."""
    from rich.console import Console

    from condshap.demo import run_demo

    with clear_messages():
        found = run_demo(out, approach or (), data=data.value, console=Console(quiet=as_json))
        if as_json:
            print_json({"data": data.value, "approaches": found.msev.to_dict("records"), "written": found.files})


def study(app: typer.Typer) -> None:
    """Add the command ``study`` to the command line."""
    everything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("study", context_settings=everything)(_study)


def _study(context: typer.Context) -> None:
    """Run the paper's studies and compare the results with its tables: list, run, table, plot."""
    from condshap.studies.commands import main

    raise typer.Exit(main(context.args or ["--help"]))
