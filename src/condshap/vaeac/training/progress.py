"""A line that follows training: epochs, which one was best so far, and how long it takes at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from condshap.runtime.progress import progress_line


@contextmanager
def training_line(progress: str | bool) -> Iterator[Callable[[int, int, float, float], None]]:
    """Yield what to call after every epoch with (epoch, epochs, VLB, IWAE); the best epoch is that of the largest IWAE.

    `progress` is "auto" (a line on a terminal or notebook, silence elsewhere), True or False.
    """
    show, best, where = None if progress == "auto" else bool(progress), -float("inf"), 0
    with progress_line("training", show=show, unit="epochs", may_end_early=True) as line:

        def report(epoch: int, epochs: int, _: float, iwae: float) -> None:
            nonlocal best, where
            if iwae > best:  # never where there is none
                best, where = iwae, epoch
            line.reach(epoch, total=epochs, note=f"best so far: {where}" if where else None)

        yield report
