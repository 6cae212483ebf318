"""A plot, an explanation with several outputs -> a panel per output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import OptionError
from condshap.explanation import Explanation
from condshap.games.interactions import Interactions
from condshap.games.owen import OwenValues
from condshap.options import check_choice, check_integer
from condshap.plots.selection import find_output, named

_RESULTS = (Explanation, Interactions, OwenValues)
_LISTS = {  # their values lie on the x-axis, but for the colours of a heat map
    "bar", "waterfall", "beeswarm", "heatmap", "compare", "force"
}  # fmt: skip


def facet(
    plot: Callable[..., Axes],
    explanation: Any,
    *arguments: Any,
    outputs: Sequence[str | int] | None = None,
    columns: int = 2,
    share_scale: bool = False,
    **options: Any,
) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Draw a plot once for every output, side by side.

    Parameters
    ----------
    plot : any function of `condshap.plots` that takes `output`
    explanation : first argument of the plot
    arguments, options : further arguments of the plot, e.g. ``row=3``
    outputs : names or positions; None for all
    columns : number of panels side by side
    share_scale : whether all panels have the same scale of values, so that lengths can be compared between them

    Returns
    -------
    (O,) array of Axes

    Examples
    --------
    ``facet(waterfall, explanation, row=3)`` shows how one row arrives at the probability of each class.
    """
    if {"ax", "output"} & set(options):
        raise OptionError("facet chooses axes and outputs itself, got ax or output. Leave it out, or pass outputs.")
    first = explanation if isinstance(explanation, _RESULTS) else next(iter(named(explanation).values()))
    n_outputs = 1 if first.base_values.ndim == 1 else len(first.output_names)
    chosen = range(n_outputs) if outputs is None else [find_output(first, output) for output in outputs]
    if not chosen:
        raise OptionError("outputs must name at least one, got none. Leave it out to draw all of them.")
    n_columns = min(check_integer("columns", columns, least=1), len(chosen))
    n_lines = min(len(first.player_names), options.get("max_features", 12)) if plot.__name__ in _LISTS else 0
    import matplotlib.pyplot as plt

    size = (9.5 if plot.__name__ == "force" else 6.5, 0.32 * n_lines + 2.2 if n_lines else 4.2)
    n_rows = -(-len(chosen) // n_columns)
    _, axes = plt.subplots(
        n_rows, n_columns, figsize=(size[0] * n_columns, size[1] * n_rows), squeeze=False, layout="constrained"
    )
    for ax, output in zip(axes.flat, chosen, strict=False):
        plot(explanation, *arguments, output=f"position:{output}", ax=ax, **options)
    for ax in axes.flat[len(chosen) :]:
        ax.remove()
    drawn = list(axes.ravel()[: len(chosen)])
    if check_choice("share_scale", share_scale, (False, True)):
        _share_scale(drawn, "x" if plot.__name__ in _LISTS else "y")
    return np.asarray(drawn, dtype=object)


def _share_scale(panels: Sequence[Axes], which: Literal["x", "y"]) -> None:
    """Give the values of all panels the widest limits of any: an axis, or the colours of a heat map."""
    if all(ax.images for ax in panels):
        largest = max(ax.images[0].get_clim()[1] for ax in panels)
        for ax in panels:
            ax.images[0].set_clim(-largest, largest)
        return
    limits = [ax.get_xlim() if which == "x" else ax.get_ylim() for ax in panels]
    for ax in panels:
        ax.set(**{f"{which}lim": (min(low for low, _ in limits), max(high for _, high in limits))})
