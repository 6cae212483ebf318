"""A bar that follows training, on a terminal or notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isnan

from condshap.runtime.progress import make_bar


@contextmanager
def training_bar(progress: str | bool) -> Iterator[Callable[[int, int, float, float], None] | None]:
    """Yield what to call after every epoch with (epoch, epochs, VLB, IWAE), None where nothing would be seen.

    `progress` is "auto" (a bar on a terminal or notebook, silence elsewhere), True or False.
    """
    with make_bar(show=None if progress == "auto" else bool(progress), desc="VAEAC", unit="epoch") as bar:

        def report(epoch: int, epochs: int, vlb: float, iwae: float) -> None:
            bar.total = epochs
            shown = {"VLB": f"{vlb:.3f}"} if isnan(iwae) else {"VLB": f"{vlb:.3f}", "IWAE": f"{iwae:.3f}"}
            bar.set_postfix(shown, refresh=False)
            bar.update(epoch - bar.n)

        yield None if bar.disable else report
