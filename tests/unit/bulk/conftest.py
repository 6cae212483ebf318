"""The explainer and the rows that most tests here use."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from tests.unit.bulk.small import explainer_of, make_rows, write_files


@pytest.fixture(scope="session")
def explainer() -> cs.Explainer:
    return explainer_of(make_rows(120))


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    """Rows to explain, with a key, a column to carry along, and one that nobody wants."""
    found = make_rows(47, seed=1)
    return found.assign(id=1000 + 3 * np.arange(47), branch=[f"b{i % 4}" for i in range(47)], note="x")


@pytest.fixture
def source(tmp_path: Path, rows: pd.DataFrame) -> Path:
    """Three files of 20, 20 and 7 rows."""
    return write_files(tmp_path / "source", rows, 20, 20, 7)
