"""Benchmarks are not installed: tests find them beside the sources."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
