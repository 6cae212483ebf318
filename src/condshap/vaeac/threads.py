"""One thread for torch: small products gain nothing from a second one, and numbers must not depend on their count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_entered = 0
_before = 1


@contextmanager
def single_threaded_torch() -> Iterator[None]:
    """Keep torch to one thread inside; the first to enter sets the limit, the last to leave lifts it."""
    global _entered, _before  # as the number of torch's threads is
    with _lock:
        _entered += 1
        if _entered == 1:
            _before = torch.get_num_threads()
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _entered -= 1
            if _entered == 0:
                torch.set_num_threads(_before)
