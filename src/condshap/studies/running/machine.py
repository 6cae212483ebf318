"""Where and when a result was found, as text to stand above a table."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import condshap


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
