"""What a release says about itself is true: versions, bounds, files, and the make targets that a public CI calls."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
EXTRAS = PROJECT["optional-dependencies"]


def constraints(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.split("==") for line in lines)


@pytest.fixture
def oldest():
    spec = importlib.util.spec_from_file_location("oldest", Path(__file__).with_name("oldest.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere():
    (cited,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    (day,) = re.findall(r"^date-released: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == PROJECT["version"]
    assert f"\n## [{cited}] - {day}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_oldest_versions_are_the_lower_bounds_of_all_that_users_get(oldest):
    found = oldest.oldest(PROJECT)
    lines = [*PROJECT["dependencies"], *EXTRAS["demo"], *EXTRAS["models"], *EXTRAS["shap"], *EXTRAS["dask"]]
    assert len(found) == len(lines)
    for line in lines:
        asked = Requirement(line)
        assert str(asked.specifier) == f">={found[asked.name]}", line


def test_pinned_versions_are_within_the_bounds():
    pinned = constraints((ROOT / "constraints.txt").read_text())
    for line in [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]:
        asked = Requirement(line)
        if asked.name != "condshap":
            assert asked.specifier.contains(pinned[asked.name]), line


def test_every_python_of_the_classifiers_is_tested_by_the_workflow_and_allowed():
    claimed = [line.split(":: ")[-1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    (tested,) = re.findall(r"\n  test:\n(.*)\n  docs:\n", WORKFLOW.read_text(), re.DOTALL)
    assert set(claimed) <= set(re.findall(r'"(3\.\d+)"', tested))
    assert PROJECT["requires-python"] == f">={claimed[0]}"


def test_the_workflow_calls_make_targets_that_exist():
    text = WORKFLOW.read_text()
    called = {*re.findall(r"run: make ([\w-]+)", text), *re.findall(r"target: \[?([\w-]+)", text)}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"lint", "test", "test-oldest", "test-newest", "docs", "dist-test"} == called
    assert called <= set(targets)
