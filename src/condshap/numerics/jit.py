"""Decorators for compiled loops that keep the types of what they compile; the only file that loads numba.

All kernels release the interpreter lock and follow IEEE arithmetic to the letter, because ties between splits are decided
by the last bit. What Python calls is cached on disk, with everything that it calls in turn (10 s to compile, once), and
compiled anew by every process where no folder for a cache can be written. Only sums where no tie can hang on rounding may
be reordered for speed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from condshap.runtime.compiling import watch_compiler

P = ParamSpec("P")
R = TypeVar("R")

INTERNAL: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call, for every combination of types; kept on disk where possible."""
    compiled: Any = _compile(function, {})
    try:
        compiled.enable_caching()
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
    return compiled  # type: ignore[no-any-return]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """For functions that only kernels call: without a door to Python and a cache of their own, which take long to make."""
    return _compile(function, INTERNAL)


def reordering_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, but sums may be split into partial sums (vector units) and products fused with additions."""
    return _compile(function, {**INTERNAL, "fastmath": {"reassoc", "contract", "nsz"}})


def _compile(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    """Hand a function to numba, lazily: its signature is that of the first call. Division by zero is as in NumPy."""
    import numba

    watch_compiler()
    function.__qualname__ = f"{function.__qualname__}_{_digest(Path(function.__code__.co_filename).parent)}"
    compiled: Callable[P, R] = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return compiled


@cache
def _digest(folder: Path) -> str:
    """Part of the names in the cache: numba itself would not notice a change in a kernel that another file calls."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()[:12]
