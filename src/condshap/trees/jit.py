"""Decorators for compiled loops that keep the types of what they compile; the only file of the trees that loads numba.

Unlike `condshap.ctree.jit` they do without a cache where no folder for one can be written, because forests must be explained
there too. The kernels of an entry are in its own file, so that numba notices by itself when one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

INTERNAL: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def entry_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call, for every combination of types: no lock, IEEE arithmetic, kept on disk where possible."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    try:
        compiled.enable_caching()
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
    return cast("Callable[P, R]", compiled)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """For functions that only kernels call: without a door to Python, which takes long to make."""
    compiled = numba.njit(nogil=True, error_model="numpy", **INTERNAL)(function)
    return cast("Callable[P, R]", compiled)
