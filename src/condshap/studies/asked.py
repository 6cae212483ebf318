"""Options of a command -> parts of studies, files of results, and what is known of seconds."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

from condshap.exceptions import OptionError, StorageError
from condshap.studies.pages.reasons import read_lines, told
from condshap.studies.running.catalogue import STUDIES, Choice, choose, find_study
from condshap.studies.running.expected import Expected
from condshap.studies.running.runner import Study, Work
from condshap.studies.running.store import Result, Store


def chosen_part(name: str, given: argparse.Namespace) -> Study:
    """Part of a study that the options ask for."""
    entry = find_study(name)
    if not entry.study.cells:
        raise OptionError(f"this command needs a study with cells, but '{name}' has none: {entry.about}.")
    names = ("M", "n_train", "rho", "levels", "methods", "repetitions", "first", "quick")
    return choose(entry, Choice(**{name: getattr(given, name) for name in names}))


def wanted_works(given: argparse.Namespace) -> list[Work]:
    """Parts of the studies, and their stores; of several studies those count that have a wanted cell.

    Methods for which a file beside the store tells why they were not run are left out, unless they are named.
    """
    if given.jobs == 0:
        raise OptionError("--jobs must be at least 1, or -1 for one per core, got 0.")
    several = len(given.names) > 1
    if several and given.store is not None and given.store.is_file():
        raise OptionError(f"--store must be a folder for several studies, got the file '{given.store}'.")
    works, refused = [], []
    for name in dict.fromkeys(given.names):
        try:
            study = chosen_part(name, given)
        except OptionError as error:
            if not several or not find_study(name).study.cells:
                raise
            refused.append(error)
            continue
        store = store_of(name, given.store, is_folder=several)
        works.append(Work(study if given.methods else leave_out(study, store.parent), store))
    if not works:
        raise refused[0]
    return works


def leave_out(study: Study, folder: Path) -> Study:
    """Study without what a file beside its store gives a reason not to run; methods that are asked for by name are run."""
    lines, pairs = read_lines(folder), product(study.cells, study.methods)
    return replace(study, left_out=frozenset((cell.key, m) for cell, m in pairs if told(lines, study.name, cell, m)))


def store_of(name: str, path: Path | None, *, is_folder: bool = False) -> Path:
    """File of a study's results: the one that was given, or of its name in the folder that was."""
    if path is None:
        return Path(f"{name}.jsonl")
    return path / f"{name}.jsonl" if is_folder or path.is_dir() else path


def older_files(given: argparse.Namespace, name: str) -> list[Path]:
    """Files of results by older defaults: those that were given, and of the study's name in given folders."""
    files = [path / f"{name}.jsonl" if path.is_dir() else path for path in given.older]
    return [path for path, told in zip(files, given.older, strict=True) if path.is_file() or not told.is_dir()]


def known_seconds(given: argparse.Namespace, stores: Iterable[Path], device: str) -> Expected:
    """Seconds by all results at hand: those beside the stores, and older ones."""
    folders = dict.fromkeys(path.parent for path in stores)
    beside = [path for folder in folders for name in STUDIES if (path := folder / f"{name}.jsonl").is_file()]
    older = [path for name in STUDIES for path in older_files(given, name)]
    files = dict.fromkeys([*older, *beside, *(path for path in stores if path.is_file())])
    results: list[Result] = []
    for path in files:
        with suppress(StorageError):  # damage is told where results are wanted, not where their seconds are
            results += Store(path).read().values()
    return Expected.of_results(results, [cell for entry in STUDIES.values() for cell in entry.study.cells], device)
