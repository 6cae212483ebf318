"""Command line -> the same calls as the API.

Exit codes: 0 on success; 1 with a clear message on stderr and no traceback when a file, table or model does not fit; 2 when
the command line itself is wrong; 130 when Ctrl-C has stopped it. Results go to stdout, progress and notes to stderr. Help
and completion should not wait for packages that only the computations need, so functions import those.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from condshap.cli.demo_and_study import demo, study
from condshap.cli.explaining import compare, explain, fit
from condshap.cli.machine import doctor, warm_up
from condshap.cli.reports_and_plots import approaches, plot, report
from condshap.cli.screen import INTERRUPTED, Stopped, say

app = typer.Typer(
    help="Explain predictions of any model with conditional Shapley values, which account for dependent features.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _example(*lines: str) -> str:
    """Example commands, shown at the end of the help."""
    return "\n".join(["Example:", *(f"  {line}" for line in lines)])


_FILES = "--model model.skops --train train.csv"

app.command("demo", epilog=_example("condshap demo --data penguins --out penguins"))(demo)
app.command("approaches", epilog=_example("condshap approaches --json"))(approaches)
app.command("fit", epilog=_example(f"condshap fit {_FILES} --out fitted.condshap"))(fit)
app.command(
    "explain",
    epilog=_example(
        f"condshap explain {_FILES} --rows rows.csv \\", "  --approach ctree --out ctree.parquet", "# after 'condshap fit':",
        "condshap explain --model model.skops --explainer fitted.condshap \\", "  --rows rows.csv --out rows.parquet",
        "# many rows, on four processes; after Ctrl-C the same command continues:",
        "condshap explain --model model.skops --explainer fitted.condshap \\", "  --rows data/ --out explained/ --workers 4",
    ),
)(explain)  # fmt: skip
app.command(
    "compare",
    epilog=_example(
        f"condshap compare {_FILES} --rows rows.csv \\",
        "  --approach independence --approach ctree --out comparison",
    ),
)(compare)
app.command("report", epilog=_example("condshap report comparison/*.parquet --out report.html"))(report)
app.command(
    "plot",
    epilog=_example(
        "condshap plot ctree.parquet --kind waterfall --row 3 --out row3.png",
        "condshap plot comparison/*.parquet --kind msev --out msev.pdf",
    ),
)(plot)
app.command("doctor", epilog=_example("condshap doctor --json"))(doctor)
app.command("warm-up")(warm_up)
study(app)


def main() -> None:
    """Run the command line: the entry point ``condshap``."""
    try:
        app(prog_name="condshap")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            left = "finished files are kept, and no others were written."
            say(f"Stopped: {end.left if isinstance(end, Stopped) else left}")
        raise


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"condshap {version('condshap')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
