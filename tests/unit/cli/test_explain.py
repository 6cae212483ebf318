"""condshap explain, approaches and demo: what they write, and what they refuse."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap
from condshap.approaches.base import Capabilities
from tests.unit.cli.commands import explain_files, make_table, message_of, run


def test_explain_writes_what_the_api_computes(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", "--seed", 3, "--n-samples", 20, "--base-value", 0.5)
    assert result.exit_code == 0, result.output
    found = condshap.load_explanation(tmp_path / "out.parquet")
    model = joblib.load(folder / "linear.joblib")
    wanted = condshap.explain(
        model, make_table(60, 0), make_table(4, 1), approach="independence", seed=3, n_samples=20, base_value=0.5
    )
    np.testing.assert_allclose(found.values, wanted.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.base_values, 0.5)


def test_explain_says_what_it_did_and_where_the_file_is(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "new" / "out.parquet")
    assert "Explained 4 rows, 4 features, with approach 'independence' and all coalitions (16)" in result.stdout
    assert "95 % interval" in result.stdout
    assert f"Written: {tmp_path / 'new' / 'out.parquet'}" in result.stdout
    assert (tmp_path / "new" / "out.parquet").is_file()


def test_text_columns_of_a_csv_are_categorical(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", "--approach", "gaussian")
    assert result.exit_code == 1
    assert "approach 'gaussian' needs continuous features, got categorical columns ['colour']" in message_of(result)


def test_numeric_columns_can_be_declared_categorical(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", "--approach", "gaussian", "--categorical", "code")
    assert "categorical columns ['colour', 'code']" in message_of(result)


@pytest.mark.parametrize(("train", "rows"), [("train.parquet", "rows.parquet"), ("train.csv", "rows.parquet")])
def test_csv_and_parquet_give_the_same_numbers(folder: Path, tmp_path: Path, train: str, rows: str) -> None:
    assert explain_files(folder, tmp_path / "a.parquet").exit_code == 0
    assert explain_files(folder, tmp_path / "b.parquet", train=train, rows=rows).exit_code == 0
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in "ab")
    np.testing.assert_allclose(a.values, b.values, rtol=0, atol=1e-12)


def test_columns_that_the_model_does_not_use_are_left_out_aloud(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", train="train_with_y.csv")
    assert result.exit_code == 0
    assert "has columns ['y'] that the model does not use" in message_of(result)
    assert condshap.load_explanation(tmp_path / "out.parquet").feature_names == ("size", "mass", "colour", "code")


@pytest.mark.parametrize(("given", "position"), [("5", 1), ("2", 2), ("-1", 2)])
def test_an_output_is_a_class_or_else_a_position(folder: Path, tmp_path: Path, given: str, position: int) -> None:
    assert explain_files(folder, tmp_path / "all.parquet", model="classes.skops").exit_code == 0
    result = explain_files(folder, tmp_path / "one.parquet", f"--output={given}", model="classes.skops")
    assert result.exit_code == 0, result.output
    every, one = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in ("all", "one"))
    assert every.output_names == ("3", "5", "8")
    np.testing.assert_allclose(one.values, every.values[:, :, position], atol=1e-12)


@pytest.mark.parametrize("model", ["linear.pkl", "linear.joblib"])
def test_files_that_can_run_code_need_trust(folder: Path, tmp_path: Path, model: str) -> None:
    refused = explain_files(folder, tmp_path / "out.parquet", model=model)
    assert refused.exit_code == 1
    assert "Add --trust-model" in message_of(refused)
    assert explain_files(folder, tmp_path / "out.parquet", "--trust-model", model=model).exit_code == 0


class Bomb:
    """Something that leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def test_nothing_of_an_untrusted_pickle_is_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "trace")))
    result = explain_files(folder, tmp_path / "out.parquet", model=tmp_path / "bomb.pkl")
    assert result.exit_code == 1
    assert not (tmp_path / "trace").exists()


def test_a_skops_file_with_types_that_skops_does_not_trust_names_them(folder: Path, tmp_path: Path) -> None:
    refused = explain_files(folder, tmp_path / "out.parquet", model="process.skops")
    assert refused.exit_code == 1
    assert "['sklearn.gaussian_process.kernels.DotProduct']. Add --trust-model" in message_of(refused)
    assert explain_files(folder, tmp_path / "out.parquet", "--trust-model", model="process.skops").exit_code == 0


def test_skops_files_of_forests_load_without_trust(folder: Path, tmp_path: Path) -> None:
    assert explain_files(folder, tmp_path / "out.parquet", model="forest.skops").exit_code == 0


def test_the_encoder_of_the_readme_needs_no_trust(folder: Path, tmp_path: Path) -> None:
    import skops.io

    train = pd.read_csv(folder / "train.csv")
    text = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough")
    skops.io.dump(make_pipeline(encode, LinearRegression()).fit(train, train["size"]), folder / "readme.skops")
    assert explain_files(folder, tmp_path / "out.parquet", model="readme.skops").exit_code == 0


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_skops_files_of_libraries_that_a_forged_model_can_crash_need_trust(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    refused = explain_files(folder, tmp_path / "out.parquet", model=f"{kind}.skops")
    assert refused.exit_code == 1
    assert "Booster" in message_of(refused)
    assert "Add --trust-model" in message_of(refused)
    assert explain_files(folder, tmp_path / "out.parquet", "--trust-model", model=f"{kind}.skops").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "none.skops"}, "the model must be an existing file"),
        ({"train": "none.csv"}, "the table must be an existing file"),
        ({"model": "train.csv"}, "a model must be a .skops, .pkl, .pickle or .joblib file"),
        ({"rows": "linear.pkl"}, "a table must be a .csv or .parquet file"),
        ({"rows": "broken.csv"}, "must be a readable .csv table"),
        ({"rows": "broken.parquet"}, "must be a readable .parquet table"),
        ({"rows": "empty.csv"}, "must be a readable .csv table"),
        ({"model": "broken.skops"}, "must be a complete model file"),
        ({"rows": "other.csv"}, "rows must have the training columns"),
        ({"rows": "unseen.csv"}, "got unseen levels ['mauve'] in rows [0, 1]"),
    ],
)
def test_bad_files_get_one_clear_message(folder: Path, tmp_path: Path, arguments: dict[str, str], words: str) -> None:
    (folder / "broken.csv").write_bytes(b"a,b\n1,2\n1,2,3,4\n")
    (folder / "empty.csv").write_bytes(b"")
    for name in ("broken.parquet", "broken.skops"):
        (folder / name).write_bytes(b"not what the name says")
    (folder / "other.csv").write_text("a,b\n1,2\n")
    make_table(2, 0).assign(colour="mauve").to_csv(folder / "unseen.csv", index=False)
    result = explain_files(folder, tmp_path / "out.parquet", **arguments)
    assert result.exit_code == 1
    assert message_of(result).startswith("Error:")
    assert words in message_of(result)
    assert "Traceback" not in result.output
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--approach", "gausian"), "Did you mean 'gaussian'?"),
        (("--seed", "-1"), "seed must be an integer of at least 0"),
        (("--n-samples", "0"), "n_samples must be an integer of at least 1"),
        (("--n-coalitions", "3"), "n_coalitions must be at least 5"),
        (("--memory-budget", "lots"), "memory_budget must be bytes or a text"),
        (("--output", "tall"), "output must be a name among ['output']"),
        (("--n-jobs", "0"), "n_jobs must not be 0"),
    ],
)
def test_bad_options_get_the_message_of_the_api(
    folder: Path, tmp_path: Path, option: tuple[str, str], words: str
) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", *option)
    assert result.exit_code == 1
    assert words in message_of(result)


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
def test_warnings_are_lines_without_a_source(folder: Path, tmp_path: Path) -> None:
    make_table(60, 0).assign(code=1).to_csv(tmp_path / "train.csv", index=False)
    make_table(4, 1).assign(code=1).to_csv(tmp_path / "rows.csv", index=False)
    result = explain_files(folder, tmp_path / "out.parquet", train=tmp_path / "train.csv", rows=tmp_path / "rows.csv")
    assert result.exit_code == 0
    assert "Warning: feature 'code' is constant in the training rows" in message_of(result)
    assert "warnings.warn" not in result.stderr


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
@pytest.mark.parametrize(("option", "warns"), [("--check-draws", True), ("--no-check-draws", False)])
def test_draws_that_do_not_look_like_rows_are_announced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, warns: bool
) -> None:
    monkeypatch.setattr("condshap.approaches.independence.Independence.capabilities", Capabilities(default_samples=128))
    make_table(200, 0).assign(mass=lambda table: table["size"]).to_csv(tmp_path / "train.csv", index=False)
    result = explain_files(folder, tmp_path / "out.parquet", option, train=tmp_path / "train.csv")
    assert result.exit_code == 0
    assert ("Warning: draws should look like the training rows" in message_of(result)) == warns


def test_an_output_that_is_a_folder_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out.parquet").mkdir()
    result = explain_files(folder, tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert "the output must be a file" in message_of(result)


def test_an_output_that_cannot_be_made_is_an_error_without_a_traceback(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = explain_files(folder, tmp_path / "file" / "out.parquet")
    assert result.exit_code == 1
    assert message_of(result).startswith("Error:")


@pytest.mark.parametrize(
    "arguments",
    [["explain"], ["nonsense"], ["explain", "--nonsense"], ["approaches", "too", "many"]],
)
def test_a_command_written_wrongly_leaves_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_an_output_that_is_not_parquet_is_a_usage_error(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert ".parquet" in result.output


def test_approaches_lists_every_file_of_the_folder() -> None:
    result = run("approaches")
    assert result.exit_code == 0
    for name in condshap.available_approaches():
        assert name in result.stdout


def test_demo_refuses_an_unknown_approach_before_any_work(tmp_path: Path) -> None:
    result = run("demo", "--out", tmp_path / "demo", "--approach", "ctreee")
    assert result.exit_code == 1
    assert "approach must be a known name, got 'ctreee'" in message_of(result)
    assert not (tmp_path / "demo").exists()


def test_demo_passes_its_options_on(tmp_path: Path, monkeypatch) -> None:
    called = []
    monkeypatch.setattr(
        "condshap.demo.run_demo", lambda out, approaches, *, data, console: called.append((out, approaches, data))
    )
    assert run("demo", "--out", tmp_path, "--approach", "independence", "--approach", "copula").exit_code == 0
    assert run("demo", "--out", tmp_path, "--data", "penguins").exit_code == 0
    assert called == [(tmp_path, ["independence", "copula"], "abalone"), (tmp_path, (), "penguins")]
    assert run("demo", "--data", "whales").exit_code == 2


def test_demo_prints_only_json_when_that_is_wanted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("condshap.demo.penguins._TREES", 10)
    result = run("demo", "--data", "penguins", "--approach", "independence", "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    explanation = condshap.load_explanation(tmp_path / "independence.parquet")
    assert found["data"] == "penguins"
    assert found["approaches"][0]["msev"] == float(explanation.msev)
    assert found["approaches"][0]["paper"] is None
    assert str(tmp_path / "report.html") in found["written"]


def test_the_entry_point_leaves_with_0_1_and_2(folder: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("condshap")

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)

    good = run("--version")
    assert (good.returncode, good.stdout, good.stderr) == (0, f"condshap {condshap.__version__}\n", "")
    files = ("--model", folder / "linear.pkl", "--train", folder / "train.csv", "--rows", folder / "rows.csv")
    bad = run("explain", *files, "--approach", "independence", "--out", tmp_path / "out.parquet")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr.startswith("Error: ")
    assert "Traceback" not in bad.stderr
    assert run("explain", "--approach").returncode == 2


def test_help_and_completion_wait_for_no_heavy_package() -> None:
    heavy = {"torch", "matplotlib", "skops", "sklego", "sklearn", "pandas"}
    code = f"import sys, condshap.cli; print(*({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
