"""Where, when and with how much memory a result was found."""

from __future__ import annotations

import math
import os
import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import condshap

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@cache
def machine(device: str = "cpu", forest: str = "cpu") -> str:
    """One line on processor, versions, and accelerator if networks or forests were there."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    parts = [cpu, f"{os.cpu_count()} cores", *([_accelerator()] if device != "cpu" or forest == "cuda" else [])]
    return f"{', '.join(parts)}; Python {platform.python_version()}, condshap {condshap.__version__}"


def _accelerator() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator"


def today() -> str:
    """Date in UTC.

    >>> len(today())
    10
    """
    return datetime.now(UTC).strftime("%Y-%m-%d")


def reset_peaks() -> None:
    """Let the peaks of memory begin at what is used now, where the system can do that."""
    with suppress(OSError):  # not Linux, or not allowed; the peak is that of the whole process then
        descriptor = os.open(_CLEAR, os.O_WRONLY)  # a switch of the system, no file that anybody keeps
        try:
            os.write(descriptor, b"5")
        finally:
            os.close(descriptor)
    if _uses_accelerator():
        import torch

        torch.cuda.reset_peak_memory_stats()


def peaks() -> tuple[float, float]:
    """Most memory since then in GiB: of the process, and of tensors on an accelerator; NaN where nobody knows."""
    host = on_device = math.nan
    if _STATUS.exists():
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        host = int(lines["VmHWM"].split()[0]) / 2**20 if "VmHWM" in lines else math.nan
    if _uses_accelerator():
        import torch

        on_device = torch.cuda.max_memory_allocated() / 2**30
    return host, on_device


def _uses_accelerator() -> bool:
    """Whether this process has begun to use one; torch that is not loaded has not."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())
