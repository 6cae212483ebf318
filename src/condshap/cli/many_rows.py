"""Many rows on the command line: a saved explainer, its model and a dataset -> a folder of explanations."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condshap.cli.screen import Stopped, print_json

if TYPE_CHECKING:
    from condshap.bulk.opening import ExplanationSet
    from condshap.explainer import Explainer


class Kept(StrEnum):
    """What is kept of every row."""

    full = "full"
    compact = "compact"


RowsPerPart = Annotated[int | None, typer.Option(help="Many rows: how many to explain and write at a time.")]
Columns = Annotated[
    list[str] | None, typer.Option("--column", help="Many rows: column to carry along; may be repeated.")
]
KeyColumn = Annotated[str | None, typer.Option(help="Many rows: column that identifies each row.")]
Values = Annotated[
    Kept,
    typer.Option(metavar="<kept>", help="Many rows: full, or compact, which leaves out v(S) and the rows themselves."),
]
Cluster = Annotated[str | None, typer.Option(help="Many rows: address of a Dask scheduler, such as tcp://host:8786.")]
Workers = Annotated[int | None, typer.Option(help="Many rows: number of local worker processes.")]
Resume = Annotated[bool, typer.Option(help="Many rows: continue the run in the folder; otherwise it must be empty.")]


@dataclass(frozen=True, slots=True)
class Bulk:
    """Options for many rows, as the user gave them."""

    rows_per_part: int | None
    column: list[str] | None
    key: str | None
    values: Kept
    cluster: str | None
    workers: int | None
    resume: bool

    def check(self, out: Path, explainer: Path | None, given: frozenset[str]) -> None:
        """Refuse what cannot be combined."""
        if explainer is None:
            raise typer.BadParameter(
                "a folder needs a saved explainer, see 'condshap fit'; for a single file, let --out end in .parquet.",
                param_hint="--explainer",
            )
        for option in sorted({"loss", "target"} & given):
            raise typer.BadParameter(
                f"works only with a single file: leave it out, or let --out '{out}' end in .parquet.",
                param_hint=f"--{option}",
            )
        if self.cluster is not None and self.workers is not None:
            raise typer.BadParameter("give either --cluster or --workers.", param_hint="--workers")

    def refuse(self, given: frozenset[str]) -> None:
        """Refuse options that would have no effect on a single table."""
        for option in sorted({"rows_per_part", "column", "key", "values", "cluster", "workers", "resume"} & given):
            raise typer.BadParameter(
                "works only when --out is a folder: leave it out.",
                param_hint=f"--{option.replace('_', '-')}",
            )

    def explain(self, fitted: Explainer, rows: Path, out: Path, *, as_json: bool) -> None:
        """Explain a dataset, and say how to go on if somebody stops it."""
        start = time.perf_counter()
        options: dict[str, Any] = {"rows_per_part": self.rows_per_part, "columns": self.column, "key": self.key}
        cluster = self.cluster if self.cluster is not None else self.workers
        try:
            found = fitted.explain_dataset(
                rows, out, **options, cluster=cluster, resume=self.resume, values=self.values.value
            )
        except KeyboardInterrupt:
            raise Stopped(f"finished parts are in '{out}'. Repeat the same command to continue.") from None
        _show(found, out, time.perf_counter() - start, as_json=as_json)


def _show(found: ExplanationSet, out: Path, seconds: float, *, as_json: bool) -> None:
    if as_json:
        parts = [{"file": done.file, "rows": done.part.n_rows, "seconds": done.seconds} for done in found.parts]
        summary = found.summary().reset_index().to_dict("records")
        print_json(
            {"n_rows": len(found), "seconds": seconds, "parts": parts, "summary": summary, "written": [out]},
        )
        return
    typer.echo(f"Explained {len(found):,} rows in {len(found.parts)} parts; this call took {seconds:.1f} s.")
    typer.echo(f"Written: {out}")
