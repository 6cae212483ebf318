"""What somebody said, and what is known of seconds -> why a cell or a method of it was not run."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from condshap.studies.problems.cells import Cell
from condshap.studies.running.expected import Expected

FILE = "not-run.csv"
"""Beside the stores: lines with study, settings, method and reason; an empty entry fits everything."""


def read_lines(folder: Path) -> tuple[Mapping[str, str], ...]:
    """Lines of the file in a folder; none without it."""
    path = folder / FILE
    if not path.is_file():
        return ()
    with path.open(newline="") as file:
        return tuple(csv.DictReader(file))


def told(lines: Sequence[Mapping[str, str]], study: str, cell: Cell, method: str) -> str | None:
    """Reason of the first line that fits a method in a cell."""
    wanted = {"study": study, "method": method, **{name: f"{value:g}" for name, value in cell.setting.items()}}
    for line in lines:
        if all(not line.get(name) or line[name] == value for name, value in wanted.items()):
            return line["reason"]
    return None


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why cells and methods were not run.

    Attributes
    ----------
    lines : of the file
    expected : what a repetition takes
    """

    lines: Sequence[Mapping[str, str]]
    expected: Expected

    @classmethod
    def read(cls, folder: Path, expected: Expected) -> Reasons:
        """Reasons from a folder; none without the file."""
        return cls(read_lines(folder), expected)

    def told(self, study: str, cell: Cell, method: str) -> str | None:
        """Reason of the first line that fits."""
        return told(self.lines, study, cell, method)

    def of(self, study: str, cell: Cell, methods: Sequence[str]) -> str:
        """Reason for some methods of a cell: what was told, else that nothing but time is lacking, and how much."""
        told = [self.told(study, cell, method) for method in methods]
        if told[0] is not None and len(set(told)) == 1:
            return told[0]
        found = [self.expected.seconds(cell, method) for method in methods]
        minutes = np.nansum([one.value for one in found]) / 60
        sources = {one.source for one in found}
        if sources == {"unknown"}:
            return "not yet"
        rough = "" if sources == {"measured"} else ", extrapolated"
        return f"not yet, {'less than 0.1' if minutes < 0.1 else f'{minutes:.1f}'} minutes{rough}"
