"""Name of a data set -> model -> explanations by several approaches -> tables on screen, a report and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from condshap.demo.abalone import run_abalone
from condshap.demo.penguins import run_penguins
from condshap.demo.results import DemoResult
from condshap.options import check_choice

_RUNS = {"abalone": run_abalone, "penguins": run_penguins}


def run_demo(
    out: Path,
    approaches: Sequence[str] = (),
    *,
    data: str = "abalone",
    n_trees: int | None = None,
    n_rows: int | None = None,
    console: Console | None = None,
) -> DemoResult:
    """Run a demo; `condshap.demo.abalone` and `condshap.demo.penguins` say what each does.

    Parameters
    ----------
    out : folder for the files, created if needed
    approaches : names; by default the paper's, or for penguins all that accept missing values
    data : "abalone" or "penguins"
    n_trees, n_rows : a smaller forest and fewer test rows, for a quick look
    console : where to print; by default the terminal
    """
    run = _RUNS[check_choice("data", data, tuple(_RUNS))]
    return run(out, approaches, n_trees=n_trees, n_rows=n_rows, console=console or Console())
