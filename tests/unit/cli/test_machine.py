"""``doctor`` tells the truth about this machine, and ``warm-up`` leaves nothing to wait for."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from condshap.cli import app, machine
from condshap.cli.machine import Package


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def test_doctor_names_versions_device_and_the_folder_of_compiled_code():
    found = json.loads(run("doctor", "--json").stdout)
    packages = {package["name"]: package for package in found["packages"] if package["extra"] is None}
    assert packages["numpy"]["installed"] == version("numpy")
    assert packages["torch"]["is_fine"]
    assert found["condshap"] == version("condshap")
    assert found["accelerator"] in (None, "cuda")
    assert "__pycache__" in found["compiled_code_is_kept_in"] or found["compiled_code_is_kept_in"] is None


def test_doctor_says_what_is_missing_for_which_extra(monkeypatch):
    lines = ["numpy>=99.0", "scipy>=1.0", "no-such-package>=1; extra == 'dreams'"]
    monkeypatch.setattr(machine, "requires", lambda _: lines)
    result = run("doctor")
    assert result.exit_code == 1
    assert f"numpy {version('numpy')} is too old, needs >=99.0. Run: pip install --upgrade condshap" in result.stdout
    assert "extra dreams: no-such-package is missing. Run: pip install --upgrade 'condshap[dreams]'" in result.stdout


def test_a_missing_extra_is_no_failure(monkeypatch):
    monkeypatch.setattr(machine, "requires", lambda _: ["numpy>=1.0", "no-such-package>=1; extra == 'dreams'"])
    assert run("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("bounds", "installed", "is_fine"),
    [
        (">=2.0", "2.13.0+cpu", True),
        (">=2.8", "2.13.0", True),
        (">=2.8", "2.7.1", False),
        ("", "0.1", True),
        (">=1", None, False),
    ],
)
def test_versions_are_compared_by_their_numbers(bounds, installed, is_fine):
    assert Package("some", bounds, None, installed).is_fine is is_fine


def test_warm_up_goes_through_every_compiled_part():
    result = run("warm-up")
    assert result.exit_code == 0, result.output
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["gaussian", "ctree", "empirical", "vaeac"]
