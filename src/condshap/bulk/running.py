"""Maker, source, folder -> explained parts in the folder: the run, on this machine or on a cluster.

Rows are streamed, parts are written one by one, and each counts once the manifest says so. A run that ends early, for
whatever reason, is continued by the same call.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condshap.bulk.maker import Maker
from condshap.bulk.manifest import (
    NAME,
    PARTIAL,
    PREFIX,
    Done,
    begin,
    check_run,
    check_source,
    note_done,
    note_failed,
    note_plan,
    read_manifest,
)  # fmt: skip
from condshap.bulk.options import Options
from condshap.bulk.part_files import Rows, Runner, Work, naming, write_part
from condshap.bulk.parts import Part, Plan, make_plan, read_parts
from condshap.bulk.source import Piece, find_pieces
from condshap.bulk.wanted import Wanted
from condshap.exceptions import CondShapError, MissingPackageError, ModelError, OptionError, SchemaError
from condshap.options import as_path, check_choice, check_folder, check_integer
from condshap.runtime.progress import progress_line

if TYPE_CHECKING:
    from condshap.bulk.opening import ExplanationSet


def explain_dataset(maker: Maker, source: Any, out: Any, options: Options) -> ExplanationSet:
    """Explain all rows of a source and write them to a folder, going on with what is there already."""
    from condshap.bulk.opening import open_explanations

    folder = as_path(out)
    check_choice("values", options.values, ("full", "compact"))
    check_choice("resume", options.resume, (True, False))
    if options.rows_per_part is not None:
        check_integer("rows_per_part", options.rows_per_part, least=1)
    pieces = find_pieces(source, folder)
    _check_empty(check_folder(folder), may_resume=options.resume)
    with _alone(folder), _runner(options.cluster) as runner:
        _run(maker, pieces, folder, options, runner)
    return open_explanations(folder)


def _runner(cluster: Any) -> AbstractContextManager[Runner]:
    if cluster is None:
        return nullcontext(run_here)
    try:
        from condshap.bulk.cluster import runner_on
    except ImportError:
        raise MissingPackageError(
            "cluster needs the packages dask and distributed: pip install 'condshap[dask]'."
        ) from None
    return runner_on(cluster)


def _run(maker: Maker, pieces: list[Piece], folder: Path, options: Options, runner: Runner) -> None:
    known = read_manifest(folder)
    size = options.rows_per_part or (known.run["options"]["rows_per_part"] if known else maker.rows_per_part)
    wanted = Wanted.of(maker.schema, _first_names(pieces), options.columns, options.key)
    facts = _facts(maker, wanted, options, size)
    if known is None:
        begin(folder, facts)
    else:
        check_run(known.run, facts, folder)
    show = None if maker.progress == "auto" else bool(maker.progress)
    with progress_line("reading", show=show) as line:
        plan = make_plan(pieces, wanted, size, line)
    if known is None or known.plan is None or check_source(known, plan):
        note_plan(folder, plan)
    done = {} if known is None else {place: one for place, one in known.done.items() if (folder / one.file).exists()}
    _remove_leftovers(folder, done.values())
    missing = [part for part in plan.parts if (part.piece, part.start) not in done]
    rows = read_parts(pieces, wanted, size, missing)
    work = Work(maker.explain, wanted, options.values == "compact")
    with _noting_failure(folder, plan):
        _explain(runner(work, rows, folder), folder, plan, missing, show)


def _explain(finished: Iterator[Done], folder: Path, plan: Plan, missing: list[Part], show: bool | None) -> None:
    """Write down every part that is finished, and show how far it is."""
    n_missing = sum(part.n_rows for part in missing)
    n_before = plan.n_rows - n_missing
    with progress_line("explaining", show=show, total=n_missing) as line:
        note = f"{n_before:,} finished before" if n_before else None
        for done in finished:
            with naming(done.part):
                note_done(folder, done)
            line.update(done.part.n_rows, note=note)


def run_here(work: Work, rows: Rows, folder: Path) -> Iterator[Done]:
    """Explain one part after the other in this process."""
    for part, table in rows:
        done, content = work(part, table)
        write_part(folder, done, content)
        yield done


@contextmanager
def _noting_failure(folder: Path, plan: Plan) -> Iterator[None]:
    """Write down where a run fails, and end it where the plan does."""
    try:
        yield
    except CondShapError as error:
        begins = str(error).startswith
        of_rows = isinstance(error, (SchemaError, ModelError))
        for part in plan.parts:
            if begins(part.piece) or (of_rows and begins(part.text)):
                note_failed(folder, part.piece)
                break
        raise
    if plan.broken is not None:
        note_failed(folder, str(plan.broken_at))
        raise plan.broken


def _first_names(pieces: list[Piece]) -> list[str]:
    first = pieces[0]
    with first.reading():
        return [*first.names(), *(name for name in first.constants if name not in first.names())]


def _facts(maker: Maker, wanted: Wanted, options: Options, size: int) -> dict[str, Any]:
    chosen = {
        "values": options.values,
        "key": wanted.key,
        "columns": [name for name in wanted.carried if name != wanted.key],
        "features": wanted.features,
        "rows_per_part": size,
    }
    packages = ("condshap", "numpy", "pandas", "scikit-learn", "pyarrow")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    return {"explainer": maker.facts, "options": chosen, "versions": versions}


def _check_empty(folder: Path, *, may_resume: bool) -> None:
    is_known = read_manifest(folder) is not None
    found = [one.name for one in folder.iterdir() if one.name != NAME or is_known]
    if found and not (is_known and may_resume):
        what = "an earlier run in it" if is_known else f"other files, such as '{min(found)}'"
        hint = "" if may_resume else ", or leave out resume=False to continue that run"
        raise OptionError(
            f"out must be a new or empty folder, got '{folder}' with {what}. Choose another folder{hint}."
        )


def _remove_leftovers(folder: Path, done: Iterable[Done]) -> None:
    """Remove what a killed run was writing: parts that the manifest does not name, and files without a name yet."""
    counted = {one.file for one in done}
    for path in folder.iterdir():
        is_part = path.name.startswith(PREFIX) and path.name not in counted
        if is_part or (path.name.startswith(".") and path.name.endswith(PARTIAL)):
            with suppress(OSError):
                path.unlink()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder; the system takes the lock away with a process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    (folder / NAME).touch()
    with (folder / NAME).open("rb") as file:  # a lock needs no right to write
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OptionError(
                f"out must be a folder that no other run is writing to, but one is writing to '{folder}'. Wait for it to "
                "end."
            ) from None
        yield
