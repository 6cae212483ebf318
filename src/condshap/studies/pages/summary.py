"""Results of a study -> one line per cell, method and criterion: mean, standard error, and the paper's figure beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from condshap.exceptions import StorageError, listing
from condshap.studies.pages.published import paper_name, published_for
from condshap.studies.problems.cells import Cell
from condshap.studies.running.defaults import VERSION, by_age, is_present, outdated
from condshap.studies.running.runner import TRUTH, Study
from condshap.studies.running.store import Key, Result, Store
from condshap.types import Floats


@dataclass(frozen=True, slots=True)
class Results:
    """Results of one study.

    Attributes
    ----------
    study : which cells and methods are looked at; its repetitions are not
    places : results by cell key and method, then by repetition in their order
    older : those places whose results are by an older default, because there are none by the present one
    """

    study: Study
    places: dict[tuple[str, str], dict[int, Result]]
    older: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def gather(
        cls, study: Study, found: Iterable[Result], version: str | None = None, older: Iterable[Result] = ()
    ) -> Results:
        """Pick the results of a study, with its seed.

        Parameters
        ----------
        version : of condshap that wrote them; None for those by the present defaults, see `is_present`
        older : results to show where there are no others; of several versions the last one
        """
        places = _places(study, found, is_present if version is None else lambda key: key.version == version)
        before = _places(study, older, lambda _: True)
        before = {place: _of_one_version(some) for place, some in before.items() if place not in places}
        return cls(study, places | before, frozenset(before))

    @property
    def versions(self) -> list[str]:
        """Versions of condshap that wrote them, the oldest first."""
        return by_age({result.key.version for result in self.used})

    def is_older(self, cell: Cell, method: str) -> bool:
        """Whether the results of a method in a cell are by an older default."""
        return (cell.key, method) in self.older

    def only(self, repetitions: Collection[int]) -> Results:
        """Results of these repetitions."""
        kept = {place: {r: one for r, one in some.items() if r in repetitions} for place, some in self.places.items()}
        return replace(self, places=kept)

    def of(self, cell: Cell, method: str) -> dict[int, Result]:
        """Results of a method in a cell by repetition."""
        return self.places.get((cell.key, method), {})

    def values(self, cell: Cell, method: str, criterion: str, repetitions: Iterable[int] | None = None) -> Floats:
        """A criterion (R,) of the repetitions that were run, or of these."""
        results = self.of(cell, method)
        wanted = results if repetitions is None else repetitions
        return np.array([float(getattr(results[r], criterion)) for r in wanted])

    def common(self, cell: Cell, methods: Iterable[str]) -> list[int]:
        """Repetitions that all of these methods have."""
        have = [set(self.of(cell, method)) for method in methods]
        return sorted(set.intersection(*have)) if have else []

    @property
    def used(self) -> list[Result]:
        """All results that the study's cells and methods have."""
        pairs = product(self.study.cells, (TRUTH, *self.study.methods))
        return [result for cell, method in pairs for result in self.of(cell, method).values()]


def read_results(
    study: Study, stores: Sequence[Path], version: str | None = None, older: Sequence[Path] = ()
) -> Results:
    """Results of a study in some files; of several with the same key the last one counts.

    Parameters
    ----------
    version : that wrote them; None for those by the present defaults, and then others must not be there
    older : files of results by older defaults, which count where there are no others
    """
    for path in (*stores, *older):
        if not path.is_file():
            raise StorageError(f"results must be in an existing file, got '{path}'. Run the study, or pass --store.")
    for path in stores:
        others = outdated(study.name, Store(path))
        if version is None and others:
            raise StorageError(
                f"results of study '{study.name}' in {path} must be of version {VERSION} of condshap, or by "
                f"the same defaults, but the file has results of {listing(others)}. Name the version with --of-version, "
                "or pass the file with --older."
            )
    found, before = (
        {key: one for path in paths for key, one in Store(path).read().items()} for paths in (stores, older)
    )
    return Results.gather(study, found.values(), version, before.values())


def _places(
    study: Study, found: Iterable[Result], fits: Callable[[Key], bool]
) -> dict[tuple[str, str], dict[int, Result]]:
    """Results of a study by cell and method, then by repetition; of several versions the last one."""
    kept = [one for one in found if (one.key.study, one.key.seed) == (study.name, study.seed) and fits(one.key)]
    ages = {version: age for age, version in enumerate(by_age({one.key.version for one in kept}))}
    places: dict[tuple[str, str], dict[int, Result]] = {}
    for one in sorted(kept, key=lambda one: (one.key.repetition, ages[one.key.version])):
        places.setdefault((one.key.cell, one.key.method), {})[one.key.repetition] = one
    return places


def _of_one_version(some: dict[int, Result]) -> dict[int, Result]:
    """Results of the last version only: a mean over two defaults would be of neither."""
    last = by_age({one.key.version for one in some.values()})[-1]
    return {repetition: one for repetition, one in some.items() if one.key.version == last}


def ratio_of_means(values: Floats, others: Floats) -> tuple[float, float]:
    """Ratio of two means over the same repetitions and its standard error by the delta method.

    >>> ratio_of_means(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    (0.5, 0.0)
    """
    ratio = values.mean() / others.mean()
    if len(values) < 2:
        return float(ratio), np.nan
    return float(ratio), float((values - ratio * others).std(ddof=1) / np.sqrt(len(values)) / others.mean())


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean over repetitions and its standard error; NaN for no, and for fewer than two of them."""
    if len(values) == 0:
        return np.nan, np.nan
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def summarise(results: Results, criteria: Sequence[str], reference: str | None = None) -> pd.DataFrame:
    """One line per criterion, cell and method.

    Returns
    -------
    Frame with the columns cell, M, L, N and rho as far as they apply, method, criterion, and

    - repetitions : how many were run; 0 means not run
    - versions, is_older : of condshap that wrote them, and whether they are by an older default
    - mean, std_error : over repetitions
    - paper, ratio, ratio_error : the paper's figure, ours over it, and the standard error of that by our repetitions alone
    - over_reference, over_reference_error, paper_over_reference : ratios to a method on the same repetitions, paired
    - is_best, is_paper_best : smallest mean in its cell, over the repetitions that all methods there have
    - cpu_fit, cpu_explain : mean seconds
    """
    lines = []
    for criterion, cell in product(criteria, results.study.cells):
        best = best_method(results, cell, criterion)
        paper_best = best_published(results, cell, criterion)
        names = (TRUTH, *results.study.methods) if criterion == "ec3" and cell.truth_key else results.study.methods
        for method in names:
            line = {"cell": cell.key, **cell.setting, "method": method, "criterion": criterion}
            line |= _figures(results, cell, method, criterion)
            line |= _against(results, cell, method, criterion, reference) if reference else {}
            line |= {"is_best": method == best, "is_paper_best": method in paper_best}
            lines.append(line | _ages(results, cell, method))
    return pd.DataFrame(lines)


def _ages(results: Results, cell: Cell, method: str) -> dict[str, object]:
    versions = by_age({result.key.version for result in results.of(cell, method).values()})
    return {"versions": " ".join(versions), "is_older": results.is_older(cell, method)}


def _figures(results: Results, cell: Cell, method: str, criterion: str) -> dict[str, float]:
    values = results.values(cell, method, criterion)
    mean, error = mean_and_error(values)
    paper = published_for(cell, method, criterion.upper())
    figure = np.nan if paper is None else paper
    seconds = {name: mean_and_error(results.values(cell, method, name))[0] for name in ("cpu_fit", "cpu_explain")}
    ours = {"repetitions": len(values), "mean": mean, "std_error": error}
    return {**ours, "paper": figure, "ratio": mean / figure, "ratio_error": error / figure, **seconds}


def _against(results: Results, cell: Cell, method: str, criterion: str, reference: str) -> dict[str, float]:
    """Ratios to another method: ours over the repetitions that both have, and the paper's."""
    both = results.common(cell, (method, reference))
    sides = [results.values(cell, name, criterion, both) for name in (method, reference)]
    ratio, error = ratio_of_means(*sides) if both else (np.nan, np.nan)
    figures = [published_for(cell, name, criterion.upper()) for name in (method, reference)]
    paper = np.nan if figures[0] is None or figures[1] is None else figures[0] / figures[1]
    return {"over_reference": ratio, "over_reference_error": error, "paper_over_reference": paper}


def best_method(results: Results, cell: Cell, criterion: str, methods: Iterable[str] | None = None) -> str | None:
    """Method with the smallest mean over the repetitions that all methods which were run have; None if there is none."""
    names = [name for name in methods or results.study.methods if results.of(cell, name)]
    common = results.common(cell, names)
    if len(names) < 2 or not common:
        return None
    return min(names, key=lambda name: results.values(cell, name, criterion, common).mean())


def best_published(results: Results, cell: Cell, criterion: str) -> tuple[str, ...]:
    """Our names of the paper's best method in a cell, among those of our methods that it has; none if it has none."""
    figures = {name: published_for(cell, name, criterion.upper()) for name in results.study.methods}
    known = {name: figure for name, figure in figures.items() if figure is not None}
    return tuple(name for name, figure in known.items() if figure == min(known.values()))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether our best method of a cell is the paper's, among the methods that both have run."""

    cell: Cell
    ours: str
    paper: str

    @property
    def holds(self) -> bool:
        """Whether they are the same."""
        return self.ours == self.paper


def agreements(results: Results, criterion: str) -> list[Agreement]:
    """Best methods, by the paper's names, in every cell in which at least two of the paper's methods were run."""
    found = []
    for cell in results.study.cells:
        run = [name for name in results.study.methods if results.of(cell, name)]
        figures = {name: published_for(cell, name, criterion.upper()) for name in run}
        shared = {name: figure for name, figure in figures.items() if figure is not None}
        ours = best_method(results, cell, criterion, shared)
        paper = min(shared, key=lambda name: shared[name], default=None)
        if ours is not None and paper is not None and len({paper_name(cell, name) for name in shared}) > 1:
            found.append(Agreement(cell, str(paper_name(cell, ours)), str(paper_name(cell, paper))))
    return found
