"""Entry point ``python -m condshap.studies``, which needs the numerical packages only."""

from __future__ import annotations

import sys

from condshap.studies.commands import main

sys.exit(main(prog="python -m condshap.studies"))
