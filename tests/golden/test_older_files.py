"""Files of earlier versions give the numbers that they were written with, or are refused in words that say what to do.

`data/older_files/` has a folder per format version: an explainer with approach "independence" of a model of three columns,
and an explanation of three rows, written by the last commit with that version. Add one when the version is raised.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import condshap as cs
from condshap.exceptions import StorageError
from condshap.storage.file_kinds import FORMAT_VERSION

FOLDERS = sorted((Path(__file__).parent / "data" / "older_files").iterdir())
VALUES = [[0.99989, -0.38074, -0.29449], [-0.08657, -0.17344, -0.14532], [1.51031, -0.33032, 0.16468]]


def model(table):
    return table["x"].to_numpy() * 2 + table["z"].to_numpy() * (table["c"].to_numpy() == "u")


def version_of(folder: Path) -> int:
    return int(folder.name.removeprefix("format_"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_of_an_earlier_version_load_or_are_refused_with_both_versions(folder):
    if version_of(folder) == FORMAT_VERSION:
        explanation = cs.load_explanation(folder / "explanation.parquet")
        np.testing.assert_allclose(explanation.values, VALUES, atol=1e-5)
        again = cs.load_explainer(folder / "explainer", model).explain(explanation.data)
        np.testing.assert_allclose(again.values, explanation.values, rtol=1e-9)
        return
    words = re.escape(
        f"must have format version {FORMAT_VERSION}, got {version_of(folder)}, written by condshap 0.1.0."
    )
    with pytest.raises(StorageError, match=words + " Read it with that version"):
        cs.load_explanation(folder / "explanation.parquet")
    with pytest.raises(StorageError, match=words):
        cs.load_explainer(folder / "explainer", model)


def test_there_are_files_of_several_versions():
    assert {3, 4} <= set(map(version_of, FOLDERS))
