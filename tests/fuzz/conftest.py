"""Files of this folder are found by each other as ``fuzz.<name>``; the two profiles are known before tests are collected."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import fuzz.profiles  # noqa: F401  # registers the profiles
