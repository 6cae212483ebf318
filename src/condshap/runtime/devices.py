"""Option "device" -> the torch device of the value engine, or None where the CPU does the work."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


def find_accelerator(device: str) -> str | None:
    """Name of the accelerator that "auto", "cpu" or "cuda" means on this machine.

    Where there is no driver, torch is not asked: importing it takes seconds.
    """
    if device == "cpu" or (device == "auto" and not _has_driver()):
        return None
    try:
        import torch
    except ImportError:
        if device == "auto":
            return None
        raise
    return "cuda" if torch.cuda.is_available() else None


@cache
def _has_driver() -> bool:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
