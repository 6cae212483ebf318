"""One thread for torch: small products gain nothing from a second one, and numbers must not depend on their count."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from condshap.runtime.threads import SharedLimit


def _one_thread() -> int:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    return before


_TORCH = SharedLimit(change=_one_thread, restore=torch.set_num_threads)


def single_threaded_torch() -> AbstractContextManager[None]:
    """Keep torch to one thread inside."""
    return _TORCH.held()
