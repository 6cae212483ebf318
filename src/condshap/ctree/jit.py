"""The one place that imports numba: decorators that keep the types of what they compile.

All kernels release the interpreter lock and follow IEEE arithmetic to the letter, because ties between splits are decided
by the last bit. What Python calls is cached on disk, with everything that it calls in turn (10 s to compile, once).
Only sums where no tie can hang on rounding may be reordered for speed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

SOURCES = sorted(Path(__file__).parent.glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]
"""Part of the names in the cache: numba itself would not notice a change in a kernel that another file calls."""

INTERNAL = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call: no lock, cached, division by zero as in NumPy."""
    return _compile(function, {"cache": True})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """For functions that only kernels call: without a door to Python and a cache of their own, which take long to make."""
    return _compile(function, INTERNAL)


def reordering_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, but sums may be split into partial sums (vector units) and products fused with additions."""
    return _compile(function, {**INTERNAL, "fastmath": {"reassoc", "contract", "nsz"}})


def _compile(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    """Hand a function to numba, lazily: its signature is that of the first call."""
    function.__qualname__ = f"{function.__qualname__}_{DIGEST}"
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    return cast("Callable[P, R]", compiled)
