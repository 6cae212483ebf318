"""Code that is compiled when it is first used -> a line that says why that takes seconds, where progress is shown."""

from __future__ import annotations

from functools import cache
from typing import Any

from condshap.runtime.progress import is_watched, write_above

_wanted: bool | None = None  # of the whole process, because workers compile too


def show_compiling(progress: bool | None) -> None:
    """Say it from now on: always, never, or where somebody watches (None)."""
    global _wanted
    _wanted = progress


@cache
def watch_compiler() -> None:
    """Let numba tell when it compiles a kernel of condshap, rather than load it from its cache."""
    from numba.core.event import Listener, register

    class Watch(Listener):
        was_said = False

        def on_start(self, event: Any) -> None:
            kernel = event.data["dispatcher"]
            is_wanted = is_watched() if _wanted is None else _wanted
            if is_wanted and not self.was_said and kernel.py_func.__module__.startswith("condshap."):
                self.was_said = True
                _say(is_kept=kernel.stats.cache_path is not None)

        def on_end(self, event: Any) -> None:
            pass

    register("numba:compile", Watch())  # type: ignore[no-untyped-call]


def _say(*, is_kept: bool) -> None:
    """Write the line, above one that moves."""
    often = (
        "once; 'condshap warm-up' does it in advance"
        if is_kept
        else "in every process, because no folder to keep it in can be written: set NUMBA_CACHE_DIR to one"
    )
    write_above(f"Compiling code for this machine. That takes some seconds, {often}.")
