"""What may be chosen of a run over a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See `condshap.Explainer.explain_dataset`."""

    rows_per_part: int | None = None
    columns: Any = None
    key: str | None = None
    cluster: Any = None
    resume: bool = True
    values: str = "full"
