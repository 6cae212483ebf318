"""The map in dataflow.md is that of the source: its tree, and every function that its walks name."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condshap as cs
from condshap.learning import settings_of

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = DOCS.parent / "src" / "condshap"
CALL = re.compile(r"\b([\w/]+\.py):([\w.]+)")
PAGES = [DOCS / "dataflow.md", DOCS / "adding_an_approach.md", DOCS.parent / "CONTRIBUTING.md"]
BELOW = ["learning.py", "explaining.py", "game.py", "assembly.py", "solvers.py", "schema.py"]
BELOW += [f"{room}/**/*.py" for room in ("approaches", "models", "values", "precision", "draw_check", "coalitions")]
BELOW += [f"{room}/**/*.py" for room in ("games", "amortised", "bulk", "views", "runtime", "tables")]
BESIDE = {"games/forecasts.py"}  # makes an explainer, as `explain` does


@pytest.fixture(scope="module")
def tree():
    spec = importlib.util.spec_from_file_location("docs_tree", DOCS / "tree.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_shows_the_tree_of_the_source(tree, capsys):
    assert tree.main([]) == 0, capsys.readouterr().out


def test_old_tree_is_found_and_put_right(tree, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"Before\n{tree.FIRST}\nold\n{tree.LAST}\nAfter\n")
    assert tree.main([], page) == 1
    assert "--write" in capsys.readouterr().out
    assert tree.main(["--write"], page) == 0
    assert tree.main([], page) == 0
    assert page.read_text().startswith(f"Before\n{tree.FIRST}\n```text\nsrc/condshap/")
    assert page.read_text().endswith(f"```\n{tree.LAST}\nAfter\n")


def test_page_without_marks_is_refused(tree, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="must have a line"):
        tree.main([], page)


def test_every_module_has_its_line(tree):
    lines = list(tree.lines_of(SOURCE))
    folders = [path.parent for path in SOURCE.rglob("__init__.py")]
    assert len(lines) == sum(len(tree.modules_in(folder)) for folder in folders)
    assert [line for line in lines if len(line) <= tree.COLUMN + 1] == []


def names_in(body: list[ast.stmt], front: str = "") -> set[str]:
    """Functions, classes and methods, also functions inside functions."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found |= {front + node.name} | names_in(node.body, f"{front}{node.name}.")
    return found


def test_walks_name_functions_that_exist():
    named = CALL.findall((DOCS / "dataflow.md").read_text())
    assert len(named) > 50
    missing = [
        f"{path}:{name}" for path, name in named if name not in names_in(ast.parse((SOURCE / path).read_text()).body)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_prose_exist(page):
    text = re.sub(r"<!-- tree -->.*<!-- end of tree -->", "", page.read_text(), flags=re.DOTALL)
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks|[a-z_]+)/[\w/]*(?:\.\w+)?)`", text))
    assert named
    made = {"build/screenshots", "dist/", "docs/examples/plot_NN_name.py"}  # by a run of the tests; a pattern
    assert [path for path in named - made if not ((SOURCE / path).exists() or (DOCS.parent / path).exists())] == []


def test_nothing_below_calls_the_explainer_back():
    found = []
    below = {path for pattern in BELOW for path in SOURCE.glob(pattern)} - {SOURCE / name for name in BESIDE}
    for path in sorted(below):
        text = path.read_text()
        found += [f"{path.name}: {call}" for call in re.findall(r"\bexplainer\.\w+\(", text)]
        nodes = list(ast.walk(ast.parse(text)))
        checks = [n for n in nodes if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
        for_types = {ast.unparse(inner) + str(inner.lineno) for check in checks for inner in check.body}
        found += [
            f"{path.name}: {ast.unparse(node)}"
            for node in nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
            and re.search(r"condshap\.explainer\b", ast.unparse(node))
            and ast.unparse(node) + str(node.lineno) not in for_types
        ]
    assert found == []


def test_question_of_the_contributing_page_is_answered():
    code = re.search(r"```python\n(.*?)```", (DOCS.parent / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code[1], names)
    X = np.random.default_rng(0).normal(size=(100, 3))
    explainer = cs.Explainer(lambda x: x[:, 0] * x[:, 1] + x[:, 2], approach="gaussian").fit(X)
    table = explainer.explain(X[:2]).value_table
    found = names["effects_alone"](explainer.game_, X[:2], settings_of(explainer))
    assert np.array_equal(found[..., 0].T, table.values[1:4] - table.values[0])
