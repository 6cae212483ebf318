"""Option `budget` -> seconds, or a number of labels: rows explained with few samples each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from condshap.exceptions import OptionError
from condshap.options import as_number

_ADVICE = "Write seconds as a number, such as 300, or rows to explain as text, such as '20000 rows'."


@dataclass(frozen=True)
class Budget:
    """How much may be spent on labels: seconds, or how many labels; the other one is None."""

    seconds: float | None
    rows: int | None

    @classmethod
    def of(cls, given: Any) -> Budget:
        """Read the option.

        >>> Budget.of(300).seconds, Budget.of("20000 rows").rows
        (300.0, 20000)
        """
        if isinstance(given, str):
            found = re.fullmatch(r"\s*(\d[\d_,]*)\s*rows?\s*", given)
            rows = int(re.sub("[_,]", "", found[1])) if found else 0
            if rows > 0:
                return cls(None, rows)
        seconds = as_number(given)
        if not 0 < seconds < float("inf"):
            raise OptionError(f"budget must be seconds or a number of rows, above 0, got {given!r}. {_ADVICE}")
        return cls(seconds, None)

    def is_over(self, seconds: float) -> bool:
        """Whether so many seconds are all there are; rows are counted by whoever explains them."""
        return self.seconds is not None and seconds >= self.seconds
