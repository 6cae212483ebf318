"""``doctor`` tells the truth about this machine, and ``warm-up`` leaves nothing to wait for."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from condshap.cli import app, machine

COMPILED = """
from condshap.cli.machine import warm_up
from condshap.ctree import nodes, table, tree
from condshap.numerics import curve_kernel
from condshap.trees import cpu
warm_up()
kernels = [cpu.add_trees, curve_kernel.add_curve, curve_kernel.add_expected]
kernels += [nodes.grow, tree.descend, table.column_means, table.cross_products]
print([kernel.py_func.__name__ for kernel in kernels if not kernel.signatures])
"""


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def asks_for(monkeypatch, lines: list[str], extras: list[str]) -> None:
    """Let condshap ask for other packages."""
    metadata = SimpleNamespace(get_all=lambda *_: extras)
    monkeypatch.setattr(machine, "distribution", lambda _: SimpleNamespace(requires=lines, metadata=metadata))


def test_doctor_names_versions_device_threads_and_the_folder_of_compiled_code():
    found = json.loads(run("doctor", "--json").stdout)
    packages = {package["name"]: package for package in found["packages"] if package["extra"] is None}
    assert packages["numpy"]["installed"] == version("numpy")
    assert packages["torch"]["is_fine"]
    assert found["condshap"] == version("condshap")
    assert found["accelerator"] in (None, "cuda")
    assert found["cores"] >= 1
    assert all(library.endswith("threads)") for library in found["native_libraries"])
    assert Path(found["compiled_code"]).parent.is_dir()


def test_doctor_leaves_out_what_only_developers_need():
    assert {package.extra for package in machine.find_packages()} == {None, "dask", "demo", "models", "shap"}


def test_doctor_says_what_is_missing_for_which_extra(monkeypatch):
    lines = ["numpy>=99.0", "scipy>=1.0", "no-such-package>=1; extra == 'dreams'", "tomli; python_version < '3'"]
    asks_for(monkeypatch, lines, ["dreams"])
    result = run("doctor")
    assert result.exit_code == 1
    assert f"packages: numpy {version('numpy')} is not >=99.0. Run: pip install --upgrade condshap\n" in result.stdout
    assert "extra dreams: no-such-package is missing. Run: pip install --upgrade 'condshap[dreams]'\n" in result.stdout
    assert "tomli" not in result.stdout  # not for this Python


def test_a_missing_extra_is_no_failure(monkeypatch):
    asks_for(monkeypatch, ["numpy>=1.0", "no-such-package>=1; extra == 'dreams'"], ["dreams"])
    assert run("doctor").exit_code == 0


def test_doctor_answers_where_a_package_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert json.loads(run("doctor", "--json").stdout)["cores"] is None


@pytest.mark.parametrize(("bounds", "installed", "is_fine"), [(">=2.8", "2.13.0+cpu", True), (">=2.8", "2.7.1", False)])
def test_versions_are_compared_by_their_numbers(monkeypatch, bounds, installed, is_fine):
    asks_for(monkeypatch, [f"torch{bounds}"], [])
    monkeypatch.setattr(machine, "version", lambda _: installed)
    assert [package.is_fine for package in machine.find_packages()] == [is_fine]


def test_warm_up_goes_through_all_that_takes_seconds_to_compile():
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True)
    *lines, idle = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trees", "additive models", "ctree"]
    assert idle == "[]"
