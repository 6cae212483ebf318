"""Stored results -> seconds that a method may take in a cell: measured there, or extrapolated from other cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from condshap.studies.problems.cells import Cell
from condshap.studies.running.store import Result
from condshap.types import Floats

Source = Literal["measured", "extrapolated", "elsewhere", "unknown"]
"""In the cell itself, from other cells, from another device only, or not at all."""

_SLOPES = np.array(
    [1.0, 0.5, 0.7]
)  # seconds grow so with features, training rows and coalitions, if nothing else is known
_TRUST = 0.3  # in these slopes, against that of one cell in what was measured
_BASE = {"features": 10.0, "rows": 1000.0, "coalitions": 1000.0}


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of one repetition, and where that is known from; NaN if it is not."""

    value: float
    source: Source


@dataclass(frozen=True, slots=True)
class Expected:
    """What stores know of seconds.

    Attributes
    ----------
    here, elsewhere : seconds (n,) of repetitions by cell key and method, with networks on the device in question and not
    cells : cells by their keys
    """

    here: Mapping[tuple[str, str], Floats]
    elsewhere: Mapping[tuple[str, str], Floats]
    cells: Mapping[str, Cell]
    fits: dict[tuple[str, str], Floats | None] = field(default_factory=dict)

    @classmethod
    def of_results(cls, results: Iterable[Result], cells: Iterable[Cell], device: str = "cpu") -> Expected:
        """Take the seconds of results; `device` is the one in question."""
        found: dict[bool, dict[tuple[str, str], list[float]]] = {True: defaultdict(list), False: defaultdict(list)}
        for one in results:
            found[one.device == device][one.key.cell, one.key.method].append(_seconds(one))
        here, elsewhere = ({place: np.array(some) for place, some in found[side].items()} for side in (True, False))
        return cls(here, elsewhere, {cell.key: cell for cell in cells})

    def seconds(self, cell: Cell, method: str) -> Seconds:
        """Median of what was measured in the cell, or what other cells of its family let one expect."""
        own = self.here.get((cell.key, method))
        if own is not None:
            return Seconds(float(np.median(own)), "measured")
        line = self._line(_family(cell), method)
        if line is not None:
            return Seconds(float(np.exp(line[0] + line[1:] @ _size(cell))), "extrapolated")
        other = Expected(self.elsewhere, {}, self.cells).seconds(cell, method) if self.elsewhere else None
        if other is None or np.isnan(other.value):
            return Seconds(float("nan"), "unknown")
        return Seconds(other.value, "elsewhere")

    def __call__(self, cell: Cell, method: str) -> float:
        """Seconds on the device in question, 0 where nobody knows them."""
        found = self.seconds(cell, method)
        return found.value if found.source in ("measured", "extrapolated") else 0.0

    def _line(self, family: str, method: str) -> Floats | None:
        """Logarithm of the seconds: a constant, and slopes in the logarithms of features, rows and coalitions."""
        place = (family, method)
        if place not in self.fits:
            self.fits[place] = self._fit(family, method)
        return self.fits[place]

    def _fit(self, family: str, method: str) -> Floats | None:
        points = [
            (_size(cell), float(np.log(max(np.median(self.here[key, method]), 1e-3))))
            for key, cell in self.cells.items()
            if (key, method) in self.here and _family(cell) == family
        ]
        if not points:
            return None
        sizes, logs = np.array([size for size, _ in points]), np.array([log for _, log in points])
        left = logs - sizes @ _SLOPES
        spread = sizes - sizes.mean(axis=0)
        slopes = np.linalg.solve(spread.T @ spread + _TRUST * np.eye(3), spread.T @ (left - left.mean()))
        slopes = np.clip(_SLOPES + slopes, 0.0, 3.0)
        return np.concatenate([[(logs - sizes @ slopes).mean()], slopes])


def _seconds(result: Result) -> float:
    """CPU seconds, which do not grow with what else a machine does; wall seconds where the process waited for a GPU."""
    waited = result.device != "cpu" or result.forest == "cuda"
    return result.wall if waited else result.cpu_fit + result.cpu_explain


def _family(cell: Cell) -> str:
    return type(cell).__name__


def _size(cell: Cell) -> Floats:
    """Logarithms of features, training rows and coalitions, from a usual size on."""
    setting = cell.setting
    n_coalitions = getattr(cell, "n_coalitions", None) or 2.0 ** min(setting["M"], 30)
    sizes = (setting["M"], setting["N"], n_coalitions)
    return np.asarray(np.log(np.array(sizes) / np.array(list(_BASE.values()))))
