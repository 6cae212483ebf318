"""condshap compare, completion and help."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import pytest
from typer.testing import CliRunner

import condshap
from condshap.cli import app
from condshap.cli.files import read_table
from condshap.numerics.readable import estimate, interval, typed
from tests.unit.cli.commands import make_table, message_of, run


def _compare(folder: Path, out: Path, *more: object, model="linear.skops"):
    files = ("--model", folder / model, "--train", folder / "train.csv", "--rows", folder / "rows.csv", "--out", out)
    return run("compare", *files, *more)


BOTH = ("--approach", "independence", "--approach", "regression_separate", "--seed", 3)


def test_compare_has_the_numbers_of_the_api(folder: Path, tmp_path: Path) -> None:
    result = _compare(folder, tmp_path / "new" / "out", *BOTH, "--level", 0.9, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    model = joblib.load(folder / "linear.joblib")
    names = ["independence", "regression_separate"]
    wanted = condshap.compare(model, make_table(60, 0), make_table(4, 1), approaches=names, seed=3, level=0.9)
    assert found["level"] == 0.9
    assert [line["approach"] for line in found["approaches"]] == names
    for ours, theirs in zip(found["approaches"], wanted.to_dict("records"), strict=True):
        for key in ("msev", "msev_se", "low", "high", "model_rows"):
            assert ours[key] == pytest.approx(theirs[key])
    assert [Path(path).name for path in found["written"]] == [*(f"{name}.parquet" for name in names), "comparison.csv"]
    for line, path in zip(found["approaches"], found["written"], strict=False):
        explanation = condshap.load_explanation(path)
        assert explanation.provenance.approach == line["approach"]
        assert float(explanation.msev) == line["msev"]
        assert (line["low"], line["high"]) == explanation.msev.interval(0.9)
    assert read_table(Path(found["written"][-1]))["msev"].tolist() == [line["msev"] for line in found["approaches"]]


def test_compare_shows_a_table_within_80_columns_and_the_files(folder: Path, tmp_path: Path) -> None:
    result = _compare(folder, tmp_path, *BOTH, *BOTH)
    lines = [line for line in result.stdout.splitlines() if not line.startswith("Written")]
    assert max(map(len, lines)) <= 80
    explanation = condshap.load_explanation(tmp_path / "independence.parquet")
    low, high, error = *explanation.msev.interval(), explanation.msev.total_std_error()
    (line,) = [line for line in lines if "independence" in line]
    for text in (
        typed(estimate(float(explanation.msev), error)),
        typed(interval(low, high, error)),
        str(explanation.value_table.n_evaluations),
    ):
        assert text in line.replace(",", "")
    assert f"Written: {tmp_path / 'comparison.csv'}" in result.stdout
    assert "Approach 2 of 2: regression_separate" in result.stderr


def test_compare_refuses_before_any_work(folder: Path, tmp_path: Path) -> None:
    wrong = _compare(folder, tmp_path / "out", "--approach", "independence", "--approach", "gausian")
    assert wrong.exit_code == 1
    assert "Did you mean 'gaussian'?" in message_of(wrong)
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    wrong = _compare(folder, tmp_path / "file")
    assert wrong.exit_code == 1
    assert "the output folder must be one that can be created" in message_of(wrong)
    assert _compare(folder, tmp_path / "out", "--tolerance", 0.1).exit_code == 2
    assert _compare(folder, tmp_path / "out", "--level", 2).exit_code == 2
    wrong = _compare(folder, tmp_path / "out", "--approach", "independence", "--approach", "gaussian")
    assert wrong.exit_code == 1
    assert "approach 'gaussian' needs continuous features" in message_of(wrong)
    assert "Approach 1 of 2" not in message_of(wrong)
    wrong = _compare(folder, tmp_path / "out", *BOTH, "--n-samples", 10)
    assert wrong.exit_code == 2
    assert "approaches ['regression_separate'] use no samples" in " ".join(wrong.output.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_compare_takes_the_papers_approaches_when_none_is_named(folder: Path, tmp_path: Path, monkeypatch) -> None:
    from condshap.explainer import Explainer

    monkeypatch.setattr(
        Explainer, "approach", property(lambda self: "independence", lambda self, name: None), raising=False
    )
    result = _compare(folder, tmp_path, "--json")
    written = json.loads(result.stdout)["written"]
    assert [Path(path).stem for path in written] == ["independence", "ctree", "vaeac", "comparison"]


def test_shells_can_complete_commands_and_approaches() -> None:
    environment = {"_CONDSHAP_COMPLETE": "complete_bash", "COMP_WORDS": "condshap co", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], prog_name="condshap", env=environment)
    assert done.stdout.split() == ["compare"]
    environment |= {"COMP_WORDS": "condshap explain --approach reg", "COMP_CWORD": "3"}
    done = CliRunner().invoke(app, [], prog_name="condshap", env=environment)
    assert done.stdout.split() == ["regression_separate", "regression_surrogate"]
    assert "--install-completion" in run("--help").output


@pytest.mark.parametrize("command", ["demo", "approaches", "fit", "explain", "compare", "report", "plot"])
def test_the_help_of_every_command_has_an_example(command: str) -> None:
    text = run(command, "--help").output
    assert f"condshap {command}" in text.partition("Example:")[2]
    assert "--json" in text


@pytest.mark.parametrize("command", ["demo", "fit", "explain", "compare", "report", "plot"])
def test_help_cuts_no_word_on_a_narrow_terminal(command: str, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(command, "--help").output
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
