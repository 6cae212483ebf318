"""Fitted VAEAC -> curves of its training: bounds on the likelihood, and how much the latent units are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from condshap.exceptions import NotFittedError, OptionError
from condshap.plots.style import (
    LABEL_SIZE,
    VALUE_SIZE,
    give_room,
    new_axes,
    open_frame,
)
from condshap.views.palette import DARK, GREY, LOWERS, RAISES

_USED = 0.01  # nats, as in `History.active_units`


def training_curves(vaeac: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the training of VAEAC: VLB on training rows, IWAE on held-out rows, and below, KL divergences of latent units.

    Parameters
    ----------
    vaeac : fitted `condshap.VAEACNetworks`, approach, or Explainer with such an approach

    Notes
    -----
    Thin lines are the networks of the ensemble, thick lines their mean; dots mark the epochs whose weights were kept. The
    KL divergence of a latent unit is measured on held-out rows and averaged over the networks; grey units are unused. The
    first twentieth of the epochs may lie below the axes.
    """
    history = find_history(vaeac)
    ax = new_axes(ax, 6.5, 5.2)
    below = give_room(ax, 0.4, above=False)
    epochs = np.arange(1, len(history.vlb) + 1)
    _draw_bound(ax, epochs, history.vlb, RAISES, "VLB, training rows", "--")
    _draw_bound(ax, history.validated, history.iwae, LOWERS, "IWAE, held-out rows", "-")
    kept = history.validated[:, None] == history.best_epoch  # (n, E)
    places, networks = np.nonzero(kept)
    ax.plot(
        history.validated[places], history.iwae[places, networks], "o", color=DARK, markersize=4, label="kept weights"
    )
    _leave_out_the_start(ax, history)
    ax.set_ylabel("nats per row", fontsize=LABEL_SIZE)
    ax.legend(fontsize=VALUE_SIZE, frameon=False, loc="lower right")
    ax.tick_params(axis="x", labelbottom=False)
    units = history.kl.mean(axis=1)  # (n, d)
    for unit in units.T[np.argsort(-units[-1])] if len(units) else ():
        below.plot(history.validated, unit, color=LOWERS if unit[-1] > _USED else GREY, linewidth=1.0, alpha=0.8)
    below.set_ylabel("KL by latent unit", fontsize=LABEL_SIZE)
    below.set_xlabel("epoch", fontsize=LABEL_SIZE)
    used = int((units[-1] > _USED).sum()) if len(units) else 0
    below.set_title(f"{used} of {units.shape[1]} units in use", fontsize=VALUE_SIZE, loc="right")
    for one in (ax, below):
        one.tick_params(labelsize=VALUE_SIZE)
        open_frame(one)
    return ax


def find_history(vaeac: Any) -> Any:
    """History of training of whatever holds a fitted VAEAC."""
    holders = [vaeac, *(part.approach for part in getattr(vaeac, "parts_", ()))]
    for holder in holders:
        networks = getattr(holder, "networks_", None)
        history = getattr(networks if networks is not None else holder, "history", None)
        if history is not None:
            return history
    if hasattr(vaeac, "config") or hasattr(vaeac, "fit"):
        raise NotFittedError(
            f"training curves need a fitted VAEAC, got {type(vaeac).__name__} without trained networks. Call fit first, "
            "with approach='vaeac'."
        )
    raise OptionError(
        f"training curves need a fitted VAEAC, or an approach or Explainer with one, got {type(vaeac).__name__}."
    )


def _leave_out_the_start(ax: Axes, history: Any) -> None:
    """Let the first twentieth of the epochs leave the axes at the bottom: it would press all that follows together."""
    first = len(history.vlb) // 20
    later = [history.vlb[first:], history.iwae[history.validated > first]]
    heights = np.concatenate([part.mean(axis=1) for part in later])
    low, high = float(heights.min()), float(max(part.max() for part in later if part.size))
    reach = high - low or 1.0
    ax.set_ylim(low - 0.08 * reach, high + 0.08 * reach)


def _draw_bound(ax: Axes, epochs: Any, curves: Any, colour: str, label: str, line: str) -> None:
    """Curves (n, E) of the members of an ensemble and their mean."""
    if curves.shape[1] > 1:
        ax.plot(epochs, curves, color=colour, linewidth=0.6, alpha=0.4)
    ax.plot(epochs, curves.mean(axis=1), color=colour, linewidth=1.8, linestyle=line, label=label)
