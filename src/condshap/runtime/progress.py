"""Whether to show progress -> a bar with the time left: on a terminal, in a notebook, or nowhere."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_PATIENCE = 0.5  # seconds that nobody needs a bar for


def make_bar(items: Any = None, *, show: bool | None, **options: Any) -> Any:
    """Bar of tqdm, by widgets where a notebook has them.

    Parameters
    ----------
    items : to go through; None for a bar that is updated by hand
    show : always, never, or None for a terminal or notebook where something takes its time
    options : of tqdm
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")  # without widgets a bar of text will do
        from tqdm.auto import tqdm
    shown = is_watched() if show is None else show
    return tqdm(items, disable=not shown, delay=0.0 if show else _PATIENCE, **options)


def is_watched() -> bool:
    """Whether somebody sees what is written to stderr: a terminal, or a notebook, whose kernel is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel") or bool(getattr(sys.stderr, "isatty", bool)())
