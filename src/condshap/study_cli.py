"""Words after ``condshap study`` -> the commands of `condshap.studies.commands`, which parse them."""

from __future__ import annotations

import typer


def mount(app: typer.Typer) -> None:
    """Add the command ``study`` to the command line."""
    everything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("study", context_settings=everything)(study)


def study(context: typer.Context) -> None:
    """Run the paper's studies, and hold results against its tables: list, run, table, plot."""
    from condshap.studies.commands import main

    raise typer.Exit(main(context.args or ["--help"]))
