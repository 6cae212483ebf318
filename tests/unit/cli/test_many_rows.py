"""Many rows on the command line: a folder of parts, Ctrl-C, and what cannot be combined."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from typer.testing import CliRunner

import condshap as cs
from condshap.cli import app


def _rows(n: int, seed: int) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 3)), columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model, an explainer, and rows in two files with a key and a column that the model does not use."""
    where = tmp_path_factory.mktemp("many")
    train = _rows(80, 0)
    for name, kind in (("linear", LinearRegression()), ("slow", KNeighborsRegressor(20))):
        model = kind.fit(train, train["a"] - train["b"])
        joblib.dump(model, where / f"{name}.joblib")
        options = {"n_samples": 4 if name == "linear" else 400, "check_draws": False, "progress": False}
        cs.Explainer(model, approach="gaussian", **options).fit(train).save(where / f"{name}.explainer")
    (where / "data").mkdir()
    for i in range(2):
        _rows(30, i + 1).assign(id=range(30 * i, 30 * i + 30), y=0.0).to_csv(where / "data" / f"{i}.csv", index=False)
    return where


def _command(folder: Path, out: object, *more: object, model: str = "linear") -> list[str]:
    files = ["--model", folder / f"{model}.joblib", "--trust-model", "--explainer", folder / f"{model}.explainer"]
    return [str(one) for one in ["explain", *files, "--rows", folder / "data", "--out", out, *more]]


def _run(*given: object, **named: str):
    return CliRunner().invoke(app, _command(*given, **named))


def _reference(folder: Path, model: str = "linear") -> cs.Explanation:
    fitted = cs.load_explainer(folder / f"{model}.explainer", joblib.load(folder / f"{model}.joblib"))
    files = sorted((folder / "data").iterdir())
    rows = pd.concat([pd.read_csv(path, float_precision="round_trip") for path in files], ignore_index=True)
    return fitted.explain(rows[["a", "b", "c"]])


def test_a_folder_of_rows_becomes_a_folder_of_explanations(folder: Path, tmp_path: Path) -> None:
    result = _run(folder, tmp_path / "out", "--key", "id", "--column", "y", "--rows-per-part", 8, "--values", "compact")
    assert result.exit_code == 0, result.output
    assert "Explained 60 rows in 8 parts" in result.stdout
    found = cs.open_explanations(tmp_path / "out")
    np.testing.assert_array_equal(found.to_explanation().values, _reference(folder).values)
    assert found.to_frame()["id"].tolist() == [str(i) for i in range(60)]


def test_a_folder_of_explanations_can_be_reported(folder: Path, tmp_path: Path) -> None:
    assert _run(folder, tmp_path / "out", "--key", "id").exit_code == 0
    _rows(80, 0).to_csv(tmp_path / "train.csv", index=False)
    given = ["--out", tmp_path / "report.html", "--train", tmp_path / "train.csv", "--model-name", "Scores"]
    result = CliRunner().invoke(app, [str(one) for one in ["report", tmp_path / "out", *given]])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "report.html").read_text()
    assert "60 of 60 rows" in page
    assert "Scores" in page


def test_a_folder_of_anything_else_is_no_report(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "report.html")])
    assert result.exit_code == 1
    assert "must be a folder written by explain_dataset" in " ".join(result.stderr.split())


def test_json_has_parts_and_a_summary(folder: Path, tmp_path: Path) -> None:
    result = _run(folder, tmp_path / "out", "--json")
    found = json.loads(result.stdout)
    assert (found["n_rows"], [part["rows"] for part in found["parts"]]) == (60, [30, 30])
    assert [line["player"] for line in found["summary"]] == ["a", "b", "c"]


def test_workers_are_processes(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    result = _run(folder, tmp_path / "out", "--workers", 1)
    assert result.exit_code == 0, result.output
    found = cs.open_explanations(tmp_path / "out").to_explanation()
    np.testing.assert_array_equal(found.values, _reference(folder).values)


@pytest.mark.parametrize("workers", [0, 2])
def test_ctrl_c_leaves_a_folder_that_the_same_command_completes(workers: int, folder: Path, tmp_path: Path) -> None:
    """As in a terminal, all processes get the signal; only the one that made the call says something."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", "from condshap.cli import main; main()"]
    given = _command(folder, out, "--rows-per-part", 2, model="slow")
    more = ["--workers", str(workers)] if workers else []
    options: dict[str, Any] = {"env": {**os.environ, "COLUMNS": "200"}, "start_new_session": True}
    running = subprocess.Popen([*command, *given, *more], stderr=subprocess.PIPE, text=True, **options)
    manifest, deadline = out / "manifest.jsonl", time.monotonic() + 300
    while not (manifest.exists() and manifest.read_text().count('"done"') > 1) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130, said
    assert " ".join(said.split()).endswith("Repeat the same command to continue.")
    assert "Traceback" not in said
    begun = cs.open_explanations(out)
    assert 2 <= len(begun.parts) < 30
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    np.testing.assert_array_equal(cs.open_explanations(out).to_explanation().values, _reference(folder, "slow").values)


def test_a_bad_file_is_one_line_and_exit_code_1(folder: Path, tmp_path: Path) -> None:
    given = [one.replace(str(folder / "data"), str(tmp_path / "bad")) for one in _command(folder, tmp_path / "out")]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "0.csv").write_text("a,b\n1,2\n")
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 1
    assert "'0.csv': rows must have the columns" in " ".join(result.stderr.split())


REFUSED = {
    "needs a saved explainer": ["explain", "--model", "m.skops", "--train", "t.csv", "--rows", "data", "--out", "out"],
    "give either --cluster or --workers": ["--cluster", "tcp://x:1", "--workers", "2"],
    "works only with a single file": ["--loss", "squared_error", "--target", "y"],
    "already fixes these options": ["--seed", "3"],
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_combined_is_refused(message: str, folder: Path, tmp_path: Path) -> None:
    more = REFUSED[message]
    given = more if more[0] == "explain" else _command(folder, tmp_path / "out", *more)
    result = CliRunner().invoke(app, given, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("option", [("--workers", "2"), ("--key", "id"), ("--values", "compact"), ("--no-resume",)])
def test_options_of_many_rows_are_refused_for_one_table(option: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, _command(folder, tmp_path / "out.parquet", *option), env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "works only when --out is a folder" in " ".join(result.stderr.split())
