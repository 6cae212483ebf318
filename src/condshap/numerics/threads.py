"""One thread for small matrix products: on shared machines a second one mostly waits, at the price of CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_entered = 0
_limit: Any = None


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread inside; the first to enter sets the limit, the last to leave lifts it."""
    global _entered, _limit  # as the number of BLAS threads is
    with _lock:
        _entered += 1
        if _entered == 1:
            _limit = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _entered -= 1
            if _entered == 0:
                _limit.restore_original_limits()
