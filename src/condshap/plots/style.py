"""Colours, texts and empty axes: what all plots share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.ticker import Formatter, MaxNLocator

from condshap.numerics.readable import feature_value, fixed, number, places_of, tick_texts
from condshap.tables.reading import Column
from condshap.types import Floats
from condshap.views.palette import APPROACHES, CYCLE, DARK, LOWERS, RAISES

STRIPES = "////"
"""On what lowers a prediction, so that it is told apart in black and white."""

HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "oo", "++", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

TITLE_SIZE, LABEL_SIZE, VALUE_SIZE = 10.0, 9.0, 8.0  # points
LONGEST_NAME, LONGEST_VALUE = 40, 16  # characters
_LEGEND = 64  # characters side by side
_LINE, _COLOUR_BAR = 0.32, 0.14  # inches of a line of a list, and across a scale of colours


def low_to_high() -> Colormap:
    """Dark for low values, bright for high ones: told apart by the colour-blind and in black and white."""
    import matplotlib

    return ListedColormap(matplotlib.colormaps["plasma"](np.linspace(0.0, 0.88, 256)), name="low to high")


def lowers_to_raises() -> Colormap:
    """Blue for negative values, white for 0, orange-red for positive ones."""
    return LinearSegmentedColormap.from_list("lowers to raises", [LOWERS, "#FFFFFF", RAISES])


def colours_of(names: Sequence[str]) -> list[str]:
    """Colour of every approach: its own if it is known and still free, else the next free one."""
    free = [colour for colour in CYCLE if colour not in {APPROACHES.get(name) for name in names}] or list(CYCLE)
    found: list[str] = []
    for name in names:
        own = APPROACHES.get(name)
        found.append(own if own is not None and own not in found else free[len(found) % len(free)])
    return found


class Readable(Formatter):
    """Ticks by the rule of all numbers, without an offset or a common power of ten; years of a feature stay years."""

    def __init__(self, *, of_feature: bool = False) -> None:
        self._of_feature = of_feature

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Text of one number, such as that under the pointer."""
        return feature_value(x) if self._of_feature else number(x)

    def format_ticks(self, values: Any) -> list[str]:
        """Texts of all ticks, with the same decimals."""
        return tick_texts(values, of_feature=self._of_feature)


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """`ax`, or the axes of a new figure of pyplot with the given size in inches; either with readable ticks."""
    import matplotlib.pyplot as plt

    return _readable(plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax)


def _readable(ax: Axes) -> Axes:
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(Readable())
    return ax


def give_room(ax: Axes, share: float, *, above: bool) -> Axes:
    """Take a share of the height away from `ax`, at its top or bottom, for new axes with the same x-axis."""
    spec, figure = ax.get_subplotspec(), ax.figure
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=(share, 1 - share) if above else (1 - share, share))
        ax.set_subplotspec(parts[1 if above else 0])
        return _readable(figure.add_subplot(parts[0 if above else 1], sharex=ax))
    box, gap = ax.get_position(), 0.05
    kept, given = (1 - share - gap) * box.height, share * box.height
    ax.set_position((box.x0, box.y0 if above else box.y1 - kept, box.width, kept))
    return _readable(figure.add_axes((box.x0, box.y1 - given if above else box.y0, box.width, given), sharex=ax))


def round_ticks(n: int) -> MaxNLocator:
    """About n ticks at numbers that are easy to read."""
    return MaxNLocator(n, steps=[1, 2, 2.5, 5, 10])


def height_of(n_lines: int, per_line: float = _LINE) -> float:
    """Inches of a plot with a list of lines."""
    return max(1.9, per_line * n_lines + 1.0)


def shorten(text: object, longest: int = LONGEST_NAME) -> str:
    """Cut a text in the middle, where it says least; never read as mathematics.

    >>> shorten("shell weight, measured after drying", 20)
    'shell weig…er drying'
    """
    line = " ".join(str(text).split())
    if len(line) > longest:
        head = (longest - 1 + 1) // 2
        line = f"{line[:head]}…{line[len(line) - (longest - 1 - head) :]}"
    return line.replace("$", r"\$")


def legend_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Name for a legend, which would leave out one that begins with an underscore."""
    text = shorten(name, longest)
    return f" {text}" if text.startswith("_") else text


def value_text(column: Column, row: int) -> str:
    """Value of a feature in one row, "missing" if there is none."""
    if column.numbers is not None:
        return feature_value(float(column.numbers[row]))
    assert column.codes is not None
    code = int(column.codes[row])
    return "missing" if code < 0 else shorten(column.levels[code], LONGEST_VALUE)


def with_value(name: str, column: Column | None, row: int, longest: int = LONGEST_NAME) -> str:
    """Name of a player and its value in one row; a group has none."""
    return shorten(name, longest) if column is None else f"{shorten(name, longest)} = {value_text(column, row)}"


def amounts(
    values: Floats, errors: Floats | None = None, *, signed: bool = True, like: Floats | None = None
) -> list[str]:
    """Numbers of one plot with the same decimals: see `places_of`, or as many as those of `like` have.

    >>> amounts(np.array([1.234, -0.5, 0.0]))
    ['+1.23', '−0.50', '0.00']
    """
    places = places_of(values if like is None or not like.any() else like, () if errors is None else errors)
    if like is not None and places is not None:
        places = max(0, places)  # what is known exactly keeps its whole part
    return [fixed(value, places, signed=signed) for value in values]


def name_output(ax: Axes, output: str | None) -> None:
    """Title that says which of several outputs is drawn."""
    if output is not None:
        ax.set_title(shorten(output), fontsize=TITLE_SIZE)


def label_lines(ax: Axes, names: Sequence[str], texts: Sequence[str], below: str, output: str | None) -> None:
    """Name every line on the left, write its number on the right, and say what is drawn, and of which output."""
    list_names(ax, names)
    list_amounts(ax, texts)
    ax.set_xlabel(below, fontsize=LABEL_SIZE)
    name_output(ax, output)


def open_frame(ax: Axes, *sides: str) -> None:
    """Take away the lines at the top and right of the axes, and at other sides."""
    for side in ("top", "right", *sides):
        ax.spines[side].set_visible(False)


def colour_bar(ax: Axes, drawn: ScalarMappable, label: str, *, of_feature: bool = False, **options: Any) -> Axes:
    """Scale of colours beside the axes; `of_feature` where they stand for its values."""
    inches = ax.get_window_extent().height / ax.figure.dpi
    made = ax.figure.colorbar(drawn, ax=ax, aspect=max(10.0, inches / _COLOUR_BAR), pad=0.02, **options)
    made.ax.tick_params(labelsize=VALUE_SIZE)
    if "ticks" not in options:
        made.formatter = Readable(of_feature=of_feature)
        made.update_ticks()
    made.set_label(label, fontsize=VALUE_SIZE)
    made.outline.set_visible(False)
    return made.ax


def add_legend(
    ax: Axes, labels: Sequence[str] = (), handles: Sequence[Artist] | None = None, *, above: bool = False
) -> None:
    """Legend above the axes or below the name of the x-axis, where it hides nothing, in as many columns as fit."""
    drawn, names = ax.get_legend_handles_labels() if handles is None else (list(handles), list(labels))
    most = max(1, min(len(names), _LEGEND // (max(map(len, names)) + 7)))
    columns = -(-len(names) // -(-len(names) // most))  # lines of about the same length
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 4.8}
    if above:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
    ax.legend(drawn, names, **place, ncols=columns, fontsize=VALUE_SIZE, frameon=False)


def list_names(ax: Axes, labels: Sequence[str]) -> None:
    """Write labels as lines from the top, and take away what is not needed."""
    ax.set_yticks(np.arange(len(labels)), labels, fontsize=LABEL_SIZE)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=VALUE_SIZE)
    ax.xaxis.set_major_locator(round_ticks(5))  # long numbers have room beside each other
    open_frame(ax, "left")


def list_amounts(ax: Axes, texts: Sequence[str], **options: Any) -> None:
    """Write texts at the right end of the lines, where they meet neither bars nor names."""
    for line, text in enumerate(texts):
        place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
        ax.annotate(text, (1.0, line), (4, 0), va="center", ha="left", fontsize=VALUE_SIZE, **place, **options)


def signed_bars(ax: Axes, ends: Floats, starts: Floats | float = 0.0, height: float = 0.7) -> None:
    """Bars from `starts` to `ends`, a line each: to the right in one colour, to the left in another one with stripes."""
    starts = np.broadcast_to(np.asarray(starts, dtype=np.float64), ends.shape)
    widths = ends - starts
    patches = ax.barh(np.arange(len(ends)), widths, height, left=starts, edgecolor="white", linewidth=0.0)
    for patch, width in zip(patches, widths, strict=True):
        patch.set_facecolor(RAISES if width >= 0 else LOWERS)
        patch.set_hatch("" if width >= 0 else STRIPES)


def error_bars(ax: Axes, ends: Floats, errors: Floats, lines: Floats | None = None) -> None:
    """One standard error to both sides of `ends`; nothing where nothing is random."""
    places = np.arange(len(ends), dtype=np.float64) if lines is None else lines
    some = errors > 0
    if some.any():
        ax.errorbar(ends[some], places[some], xerr=errors[some], fmt="none", ecolor=DARK, elinewidth=1.0, capsize=2.0)
