"""Colours, and a figure -> a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

COLOURS = {
    "independence": "#D55E00",
    "ctree": "#009E73",
    "vaeac": "#0072B2",
    "vaeac-paper": "#56B4E9",
    "vaeac-uniform": "#56B4E9",
    "gaussian": "#CC79A7",
    "copula": "#E69F00",
    "empirical": "#666666",
    "categorical": "#999933",
    "regression_separate": "#F0E442",
    "regression_surrogate": "#882255",
    "truth": "#000000",
}
"""By method; they can be told apart by the colour-blind."""

GREY = "#BBBBBB"
_DPI = 150


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Empty figure, in inches, and its axes (rows, columns); no window and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=_DPI)
    return path
