"""Colours, and a figure -> a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from condshap.storage.writing import write_figure
from condshap.views.palette import APPROACHES as COLOURS
from condshap.views.palette import GREY

__all__ = ["COLOURS", "GREY", "new_figure", "save"]

_DPI = 150


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Empty figure, in inches, and its axes (rows, columns); no window and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    write_figure(figure, path, dpi=_DPI)
    return path
