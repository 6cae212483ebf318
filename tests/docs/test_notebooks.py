"""The notebooks run from beginning to end, and are stored without what they print."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["credit", "duplicates"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [out.text for cell in notebook.cells for out in cell.get("outputs", ()) if out.get("name") == "stderr"]
    assert ["draws should look like" in text for text in said] == [True] * (path.stem == "duplicates")  # as it explains


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_output(path):
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
