"""League of real tables: MSEv of every approach over the best, sanity of draws, and normal designs with duplicates.

``python -m benchmarks league --half tuning`` runs what the store still lacks and writes ``results/league.md``. A machine
without the data packages reads files: ``--export DIR`` writes them here, ``--tables DIR`` reads them there, and
``--store DIR`` says where results go. ``--duplicates`` and ``--normals`` run the designs instead of the tables.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.league.cells import MODELS, Cell, all_cells, run_cell
from benchmarks.league.designs import DUPLICATES, NORMALS, design_page, run_design
from benchmarks.league.report import page
from benchmarks.league.store import LeagueStore
from benchmarks.league.tables import export, names_of
from benchmarks.lib.measure import machine
from benchmarks.lib.report import FOLDER
from benchmarks.lib.sections import write_text
from condshap.studies.pages.markdown import wrapped

DESIGN_APPROACHES = ("gaussian", "vaeac")
Job = Callable[[], list[dict[str, Any]]]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m benchmarks league", description=__doc__)
    made.add_argument("--half", default="tuning", choices=("tuning", "unseen", "all"), help="which tables")
    made.add_argument("--only", nargs="+", metavar="TABLE", help="these tables and no others")
    made.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    made.add_argument("--approaches", nargs="+", default=(), metavar="NAME", help="e.g. gaussian 'vaeac:width=64'")
    made.add_argument("--seed", type=int, default=0, help="of the approaches")
    made.add_argument("--tag", default="", help="name of the code that is tried: results are those of vaeac@TAG")
    made.add_argument("--jobs", type=int, default=1, help="cells at a time, each in a process with one thread")
    made.add_argument("--device", default="cpu", choices=("cpu", "cuda", "auto"))
    made.add_argument("--tables", type=Path, metavar="DIR", help="read tables from files that --export has written")
    made.add_argument("--export", type=Path, metavar="DIR", help="write the tables of both halves to files, no more")
    made.add_argument("--store", type=Path, default=FOLDER, metavar="DIR", help="where results go and are looked for")
    made.add_argument("--duplicates", action="store_true", help="the design with near-duplicate columns")
    made.add_argument("--normals", action="store_true", help="normal designs with 8 and 10 features")
    made.add_argument("--repetitions", type=int, default=5, metavar="R", help="of the designs")
    made.add_argument("--report", action="store_true", help="only write the page of what was run before")
    return made.parse_args(arguments)


def cell_jobs(given: argparse.Namespace, store: LeagueStore) -> list[Job]:
    """Cells that the store lacks."""
    tables = given.only or names_of(given.half)
    done = store.read(tables)
    cells = all_cells(tables, given.models, given.approaches, seed=given.seed, tag=given.tag)
    return [partial(one_cell, cell, given.tables, given.device) for cell in cells if cell.key not in done]


def one_cell(cell: Cell, folder: Path | None, device: str) -> list[dict[str, Any]]:
    return [run_cell(cell, folder, device)]


def design_jobs(given: argparse.Namespace, store: LeagueStore) -> list[Job]:
    """Repetitions of the designs, each with the approaches that the store lacks."""
    done, jobs = store.read(["designs"]), []
    approaches = given.approaches or DESIGN_APPROACHES
    chosen = (*(DUPLICATES if given.duplicates else ()), *(NORMALS if given.normals else ()))
    for repetition in range(given.repetitions):
        for design in chosen:
            cells = {name: Cell("designs", design.name, name, repetition, given.tag) for name in approaches}
            lacking = [name for name, cell in cells.items() if cell.key not in done]
            jobs += [partial(run_design, design.name, repetition, lacking, given.tag, given.device)] if lacking else []
    return jobs


def attempt(job: Job, store: LeagueStore) -> str:
    """Run a job and store its lines at once; what went wrong is told, and must not cost the others their night."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):  # boosted trees are fitted by OpenMP
            lines = job()
    except Exception:
        return f"FAILED {job.args}\n{traceback.format_exc()}"
    for line in lines:
        store.append(line)
    told = [
        f"{line['table']} {line['model']} {line['approach']} {line.get('msev', line.get('rel')):.4g}" for line in lines
    ]
    return "\n".join(told)


def run_all(jobs: Sequence[Job], store: LeagueStore, n_jobs: int) -> Iterator[str]:
    """Run jobs in processes of one thread, and tell of each as it finishes."""
    from joblib import Parallel, delayed, parallel_config

    if n_jobs == 1:
        yield from (attempt(job, store) for job in jobs)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
        yield from pool(delayed(attempt)(job, store) for job in jobs)


def write_page(store: LeagueStore) -> Path:
    """Write the page of all results in a store."""
    lines = list(store.read(names_of("all")).values())
    parts = [page(lines, half) for half in ("tuning", "unseen")]
    path = store.folder / "league.md"
    about = (
        "Written by `python -m benchmarks league`. Intervals are paired over held-out rows, 95 %. Each line\n"
        "of the stores has its date: `vaeac` on fewer than 500 training rows of numbers ran later than the\n"
        "other approaches, and on another machine, so its CPU seconds there are not comparable with theirs."
    )
    designs = design_page(list(store.read(["designs"]).values()))
    write_text(path, wrapped("\n\n".join(["# League of real tables", about, *parts, designs]).rstrip() + "\n"))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    given = parse(arguments)
    store = LeagueStore(given.store)
    if given.export is not None:
        export(names_of("all"), given.export)
        return 0
    store.folder.mkdir(parents=True, exist_ok=True)
    find_jobs = design_jobs if given.duplicates or given.normals else cell_jobs
    jobs = [] if given.report else find_jobs(given, store)
    print(f"{machine()}\n{len(jobs)} jobs", flush=True)
    failed = 0
    for i, told in enumerate(run_all(jobs, store, given.jobs), start=1):
        failed += told.startswith("FAILED")
        print(f"{i}/{len(jobs)} {told}", flush=True)
    print(f"Written: {write_page(store)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
