"""One thread for BLAS and OpenMP: on shared machines a second one mostly waits, at the price of CPU time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Lock
from typing import Any


class SharedLimit:
    """A setting of the whole process, changed by all who enter and restored by the last to leave.

    Parameters
    ----------
    change : changes the setting and returns what it was; called by everyone, because parts of a setting may belong to
        the calling thread
    restore : takes what the first one found and restores it
    """

    def __init__(self, change: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self._change, self._restore = change, restore
        self._lock = Lock()
        self._entered = 0
        self._before: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the limit inside."""
        with self._lock:
            before = self._change()
            self._before = before if self._entered == 0 else self._before
            self._entered += 1
        try:
            yield
        finally:
            with self._lock:
                self._entered -= 1
                if self._entered == 0:
                    self._restore(self._before)


@cache
def _pools(kind: str) -> Any:
    """Thread pools of the libraries that are loaded when a kind is first limited; one for each kind, for that reason."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api=kind)


_BLAS = SharedLimit(
    change=lambda: _pools("blas").limit(limits=1, user_api="blas"),
    restore=lambda limit: limit.restore_original_limits(),
)


def single_threaded_blas() -> AbstractContextManager[None]:
    """Keep BLAS to one thread inside, in the whole process."""
    return _BLAS.held()


def single_threaded_openmp() -> AbstractContextManager[Any]:
    """Keep OpenMP to one thread inside, for the calling thread only, so that threads do not disturb each other."""
    limit: AbstractContextManager[Any] = _pools("openmp").limit(limits=1, user_api="openmp")
    return limit
