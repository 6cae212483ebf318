"""The command line: what it writes, what it says, and how it leaves."""

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
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner
from xgboost import XGBRegressor

import condshap
from condshap.approaches.base import Capabilities
from condshap.cli import app
from condshap.cli.files import load_model
from condshap.numerics.readable import estimate, interval, typed

COLOURS = np.array(["blue", "green", "red"])


def _table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "mass": rng.normal(size=n),
            "colour": rng.choice(COLOURS, n),
            "code": rng.integers(0, 3, n),
        }
    )


def _fit(estimator, X: pd.DataFrame, y):
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), ["colour"]), remainder="passthrough")
    return make_pipeline(encode, estimator).fit(X, y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with tables as CSV and Parquet, and models in every format."""
    import skops.io

    where = tmp_path_factory.mktemp("cli")
    train, rows = _table(60, 0), _table(4, 1)
    y = train["size"] + (train["colour"] == "red")
    for name, frame in (("train", train), ("rows", rows)):
        frame.to_csv(where / f"{name}.csv", index=False)
        frame.to_parquet(where / f"{name}.parquet")
    train.assign(y=y).to_csv(where / "train_with_y.csv", index=False)
    linear = _fit(LinearRegression(), train, y)
    skops.io.dump(linear, where / "linear.skops")
    models = {
        "forest": RandomForestRegressor(3),
        "xgboost": XGBRegressor(n_estimators=3),
        "lightgbm": LGBMRegressor(n_estimators=3, verbose=-1),
        "process": GaussianProcessRegressor(DotProduct(), optimizer=None),
    }
    for name, model in models.items():
        skops.io.dump(_fit(model, train, y), where / f"{name}.skops")
    skops.io.dump(_fit(LogisticRegression(), train, np.array([3, 5, 8])[train["code"]]), where / "classes.skops")
    joblib.dump(linear, where / "linear.joblib")
    (where / "linear.pkl").write_bytes(pickle.dumps(linear))
    return where


def _run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _explain(folder: Path, out: Path, *more: object, model="linear.skops", train="train.csv", rows="rows.csv"):
    files = ("--model", folder / model, "--train", folder / train, "--rows", folder / rows, "--out", out)
    approach = () if "--approach" in more else ("--approach", "independence")
    return _run("explain", *files, *approach, *more)


def _message(result) -> str:
    return " ".join(result.stderr.split())


def test_explain_writes_what_the_api_computes(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.parquet", "--seed", 3, "--n-samples", 20, "--base-value", 0.5)
    assert result.exit_code == 0, result.output
    found = condshap.load_explanation(tmp_path / "out.parquet")
    model = joblib.load(folder / "linear.joblib")
    wanted = condshap.explain(
        model, _table(60, 0), _table(4, 1), approach="independence", seed=3, n_samples=20, base_value=0.5
    )
    np.testing.assert_allclose(found.values, wanted.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.base_values, 0.5)


def test_explain_says_what_it_did_and_where_the_file_is(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "new" / "out.parquet")
    assert "Explained 4 rows, 4 features, with approach 'independence' and all coalitions (16)" in result.stdout
    assert "95 % interval" in result.stdout
    assert f"Written: {tmp_path / 'new' / 'out.parquet'}" in result.stdout
    assert (tmp_path / "new" / "out.parquet").is_file()


def test_text_columns_of_a_csv_are_categorical(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.parquet", "--approach", "gaussian")
    assert result.exit_code == 1
    assert "approach 'gaussian' needs continuous features, got categorical columns ['colour']" in _message(result)


def test_numeric_columns_can_be_declared_categorical(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.parquet", "--approach", "gaussian", "--categorical", "code")
    assert "categorical columns ['colour', 'code']" in _message(result)


@pytest.mark.parametrize(("train", "rows"), [("train.parquet", "rows.parquet"), ("train.csv", "rows.parquet")])
def test_csv_and_parquet_give_the_same_numbers(folder: Path, tmp_path: Path, train: str, rows: str) -> None:
    assert _explain(folder, tmp_path / "a.parquet").exit_code == 0
    assert _explain(folder, tmp_path / "b.parquet", train=train, rows=rows).exit_code == 0
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in "ab")
    np.testing.assert_allclose(a.values, b.values, rtol=0, atol=1e-12)


def test_columns_that_the_model_does_not_use_are_left_out_aloud(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.parquet", train="train_with_y.csv")
    assert result.exit_code == 0
    assert "has columns ['y'] that the model does not use" in _message(result)
    assert condshap.load_explanation(tmp_path / "out.parquet").feature_names == ("size", "mass", "colour", "code")


@pytest.mark.parametrize(("given", "position"), [("5", 1), ("2", 2), ("-1", 2)])
def test_an_output_is_a_class_or_else_a_position(folder: Path, tmp_path: Path, given: str, position: int) -> None:
    assert _explain(folder, tmp_path / "all.parquet", model="classes.skops").exit_code == 0
    result = _explain(folder, tmp_path / "one.parquet", f"--output={given}", model="classes.skops")
    assert result.exit_code == 0, result.output
    every, one = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in ("all", "one"))
    assert every.output_names == ("3", "5", "8")
    np.testing.assert_allclose(one.values, every.values[:, :, position], atol=1e-12)


@pytest.mark.parametrize("model", ["linear.pkl", "linear.joblib"])
def test_files_that_can_run_code_need_trust(folder: Path, tmp_path: Path, model: str) -> None:
    refused = _explain(folder, tmp_path / "out.parquet", model=model)
    assert refused.exit_code == 1
    assert "Add --trust-model" in _message(refused)
    assert _explain(folder, tmp_path / "out.parquet", "--trust-model", model=model).exit_code == 0


class Bomb:
    """Something that leaves a trace when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def test_nothing_of_an_untrusted_pickle_is_run(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bomb.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "trace")))
    result = _explain(folder, tmp_path / "out.parquet", model=tmp_path / "bomb.pkl")
    assert result.exit_code == 1
    assert not (tmp_path / "trace").exists()


def test_a_skops_file_with_types_that_skops_does_not_trust_names_them(folder: Path, tmp_path: Path) -> None:
    refused = _explain(folder, tmp_path / "out.parquet", model="process.skops")
    assert refused.exit_code == 1
    assert "['sklearn.gaussian_process.kernels.DotProduct']. Add --trust-model" in _message(refused)
    assert _explain(folder, tmp_path / "out.parquet", "--trust-model", model="process.skops").exit_code == 0


def test_skops_files_of_forests_load_without_trust(folder: Path, tmp_path: Path) -> None:
    assert _explain(folder, tmp_path / "out.parquet", model="forest.skops").exit_code == 0


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_skops_files_of_libraries_that_a_forged_model_can_crash_need_trust(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    refused = _explain(folder, tmp_path / "out.parquet", model=f"{kind}.skops")
    assert refused.exit_code == 1
    assert "Booster" in _message(refused)
    assert "Add --trust-model" in _message(refused)
    assert _explain(folder, tmp_path / "out.parquet", "--trust-model", model=f"{kind}.skops").exit_code == 0


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
        ({"rows": "unseen.csv"}, "got the unseen ['mauve'] in rows [0, 1]"),
    ],
)
def test_bad_files_get_one_clear_message(folder: Path, tmp_path: Path, arguments: dict[str, str], words: str) -> None:
    (folder / "broken.csv").write_bytes(b"a,b\n1,2\n1,2,3,4\n")
    (folder / "empty.csv").write_bytes(b"")
    for name in ("broken.parquet", "broken.skops"):
        (folder / name).write_bytes(b"not what the name says")
    (folder / "other.csv").write_text("a,b\n1,2\n")
    _table(2, 0).assign(colour="mauve").to_csv(folder / "unseen.csv", index=False)
    result = _explain(folder, tmp_path / "out.parquet", **arguments)
    assert result.exit_code == 1
    assert _message(result).startswith("Error:")
    assert words in _message(result)
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
    result = _explain(folder, tmp_path / "out.parquet", *option)
    assert result.exit_code == 1
    assert words in _message(result)


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
def test_warnings_are_lines_without_a_source(folder: Path, tmp_path: Path) -> None:
    _table(60, 0).assign(code=1).to_csv(tmp_path / "train.csv", index=False)
    _table(4, 1).assign(code=1).to_csv(tmp_path / "rows.csv", index=False)
    result = _explain(folder, tmp_path / "out.parquet", train=tmp_path / "train.csv", rows=tmp_path / "rows.csv")
    assert result.exit_code == 0
    assert "Warning: feature 'code' is constant in the training rows" in _message(result)
    assert "warnings.warn" not in result.stderr


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
@pytest.mark.parametrize(("option", "warns"), [("--check-draws", True), ("--no-check-draws", False)])
def test_draws_that_do_not_look_like_rows_are_announced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, warns: bool
) -> None:
    monkeypatch.setattr("condshap.approaches.independence.Independence.capabilities", Capabilities(default_samples=128))
    _table(200, 0).assign(mass=lambda table: table["size"]).to_csv(tmp_path / "train.csv", index=False)
    result = _explain(folder, tmp_path / "out.parquet", option, train=tmp_path / "train.csv")
    assert result.exit_code == 0
    assert ("Warning: draws should look like the training rows" in _message(result)) == warns


def test_an_output_that_is_a_folder_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out.parquet").mkdir()
    result = _explain(folder, tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert "the output must be a file" in _message(result)


def test_an_output_that_cannot_be_made_is_an_error_without_a_traceback(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = _explain(folder, tmp_path / "file" / "out.parquet")
    assert result.exit_code == 1
    assert _message(result).startswith("Error:")


@pytest.mark.parametrize(
    "arguments",
    [["explain"], ["nonsense"], ["explain", "--nonsense"], ["approaches", "too", "many"]],
)
def test_a_command_written_wrongly_leaves_with_2(arguments: list[str]) -> None:
    assert _run(*arguments).exit_code == 2


def test_an_output_that_is_not_parquet_is_a_usage_error(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.csv")
    assert result.exit_code == 2
    assert ".parquet" in result.output


def test_approaches_lists_every_file_of_the_folder() -> None:
    result = _run("approaches")
    assert result.exit_code == 0
    for name in condshap.available_approaches():
        assert name in result.stdout


def test_demo_refuses_an_unknown_approach_before_any_work(tmp_path: Path) -> None:
    result = _run("demo", "--out", tmp_path / "demo", "--approach", "ctreee")
    assert result.exit_code == 1
    assert "approach must be a known name, got 'ctreee'" in _message(result)
    assert not (tmp_path / "demo").exists()


def test_demo_passes_its_options_on(tmp_path: Path, monkeypatch) -> None:
    called = []
    monkeypatch.setattr(
        "condshap.demo.run_demo", lambda out, approaches, *, data, console: called.append((out, approaches, data))
    )
    assert _run("demo", "--out", tmp_path, "--approach", "independence", "--approach", "copula").exit_code == 0
    assert _run("demo", "--out", tmp_path, "--data", "penguins").exit_code == 0
    assert called == [(tmp_path, ["independence", "copula"], "abalone"), (tmp_path, (), "penguins")]
    assert _run("demo", "--data", "whales").exit_code == 2


def test_demo_prints_only_json_when_that_is_wanted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("condshap.demo.penguins._TREES", 10)
    result = _run("demo", "--data", "penguins", "--approach", "independence", "--out", tmp_path, "--json")
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


# --- fit once, explain later ------------------------------------------------------------------------------------------


def _fit_command(folder: Path, out: Path, *more: object, model="linear.skops"):
    approach = () if "--approach" in more else ("--approach", "ctree")
    return _run("fit", "--model", folder / model, "--train", folder / "train.csv", "--out", out, *approach, *more)


def _explain_with(folder: Path, explainer: Path, out: Path, *more: object, model="linear.skops"):
    files = ("--model", folder / model, "--rows", folder / "rows.csv", "--explainer", explainer, "--out", out)
    return _run("explain", *files, *more)


def test_fit_then_explain_writes_what_explain_alone_writes(folder: Path, tmp_path: Path) -> None:
    options = ("--seed", 3, "--n-samples", 20, "--base-value", 0.5, "--categorical", "code", "--n-coalitions", 9)
    done = _fit_command(folder, tmp_path / "new" / "explainer", *options)
    assert done.exit_code == 0, done.output
    assert "Fitted approach 'ctree'" in done.stdout
    assert f"Written: {tmp_path / 'new' / 'explainer'}" in done.stdout
    later = _explain_with(folder, tmp_path / "new" / "explainer", tmp_path / "later.parquet")
    assert later.exit_code == 0, later.output
    assert "Explained 4 rows, 4 features, with approach 'ctree'" in later.stdout
    assert _explain(folder, tmp_path / "once.parquet", "--approach", "ctree", *options).exit_code == 0
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in ("later", "once"))
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.std_errors, b.std_errors)


def test_workers_and_memory_of_a_saved_explainer_may_be_changed(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer").exit_code == 0
    done = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--memory-budget", "5MB")
    assert done.exit_code == 0, done.output
    wrong = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--n-jobs", 0)
    assert wrong.exit_code == 1
    assert "n_jobs must not be 0" in _message(wrong)


@pytest.mark.parametrize(
    "option",
    [
        ("--train", "train.csv"),
        ("--approach", "vaeac"),
        ("--categorical", "code"),
        ("--n-samples", "5"),
        ("--n-coalitions", "9"),
        ("--base-value", "1"),
        ("--output", "a"),
        ("--seed", "0"),
    ],
)
def test_what_the_fit_has_settled_cannot_be_given_to_a_saved_explainer(
    folder: Path, tmp_path: Path, option: tuple[str, str]
) -> None:
    result = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", *option)
    assert result.exit_code == 2
    assert option[0] in result.output
    assert "--explainer" in result.output


def test_explain_needs_training_rows_or_an_explainer(folder: Path, tmp_path: Path) -> None:
    files = ("--model", folder / "linear.skops", "--rows", folder / "rows.csv", "--out", tmp_path / "out.parquet")
    result = _run("explain", *files)
    assert result.exit_code == 2
    assert "--train" in result.output
    assert "--explainer" in result.output


def test_a_saved_explainer_that_does_not_fit_gets_one_clear_message(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer").exit_code == 0
    for path, model, words in (
        (tmp_path / "nowhere", "linear.skops", "an explainer must be an existing file"),
        (folder / "train.parquet", "linear.skops", "must be a complete safetensors file"),
        (tmp_path / "explainer", "classes.skops", "the model must have the outputs"),
    ):
        result = _explain_with(folder, path, tmp_path / "out.parquet", model=model)
        assert result.exit_code == 1
        assert _message(result).startswith("Error:")
        assert words in _message(result)
        assert "Traceback" not in result.output


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
def test_another_model_for_a_saved_explainer_is_announced(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer").exit_code == 0
    result = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", model="forest.skops")
    assert result.exit_code == 0
    assert "Warning: the model must be the one that the explainer was fitted with" in _message(result)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--approach", "gausian"), "Did you mean 'gaussian'?"),
        (("--approach", "gaussian"), "needs continuous features"),
    ],
)
def test_fit_refuses_as_explain_does(folder: Path, tmp_path: Path, option: tuple[str, str], words: str) -> None:
    result = _fit_command(folder, tmp_path / "explainer", *option)
    assert result.exit_code == 1
    assert words in _message(result)
    assert not (tmp_path / "explainer").exists()


def test_fit_refuses_a_folder_as_its_output_before_any_work(folder: Path, tmp_path: Path) -> None:
    result = _fit_command(folder, tmp_path)
    assert result.exit_code == 1
    assert "the output must be a file" in _message(result)


def test_vaeac_is_the_approach_when_none_is_named() -> None:
    for command in ("fit", "explain"):
        assert "[default: vaeac]" in _run(command, "--help").output


# --- as many coalitions as the precision needs ------------------------------------------------------------------------


def test_auto_coalitions_and_their_tolerance(folder: Path, tmp_path: Path) -> None:
    options = ("--approach", "ctree", "--n-coalitions", "auto", "--tolerance", "0.1", "--max-coalitions", "16")
    done = _explain(folder, tmp_path / "out.parquet", *options)
    assert done.exit_code == 0, done.output
    assert "(tolerance 10.00%)" in done.stdout
    about = condshap.load_explanation(tmp_path / "out.parquet").provenance
    assert (about.tolerance, about.n_coalitions) == (0.1, 16)


def test_tolerance_of_a_saved_explainer_may_be_changed(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer", "--n-coalitions", "auto").exit_code == 0
    done = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--tolerance", "0.3")
    assert done.exit_code == 0, done.output
    assert condshap.load_explanation(tmp_path / "out.parquet").provenance.tolerance == 0.3
    wrong = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--tolerance", "3")
    assert wrong.exit_code == 1
    assert "tolerance must be a number between 0 and 1" in _message(wrong)


def test_tolerance_without_auto_and_numbers_that_are_none_are_refused(folder: Path, tmp_path: Path) -> None:
    for option, message in (
        (("--tolerance", "0.1"), "--n-coalitions auto"),
        (("--n-coalitions", "many"), "integer or 'auto'"),
    ):
        wrong = _explain(folder, tmp_path / "out.parquet", "--approach", "ctree", *option)
        assert wrong.exit_code == 2
        assert message in " ".join(wrong.output.replace("│", " ").split())
    assert _fit_command(folder, tmp_path / "plain").exit_code == 0
    wrong = _explain_with(folder, tmp_path / "plain", tmp_path / "out.parquet", "--tolerance", "0.1")
    assert wrong.exit_code == 2


# --- options that say how to sample -----------------------------------------------------------------------------------


def test_target_error_and_additive_reach_the_explainer(folder: Path, tmp_path: Path) -> None:
    assert _explain(folder, tmp_path / "a.parquet", "--additive", "yes", "--approach", "independence").exit_code == 0
    assert _explain(folder, tmp_path / "b.parquet", "--additive", "no", "--approach", "independence").exit_code == 0
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in "ab")
    assert a.value_table.n_evaluations < b.value_table.n_evaluations
    options = ("--target-error", 0.02, "--approach", "independence", "--additive", "no")
    assert _explain(folder, tmp_path / "c.parquet", *options, model="forest.skops").exit_code == 0
    model = load_model(folder / "forest.skops", trust=True)
    wanted = condshap.explain(
        model, _table(60, 0), _table(4, 1), approach="independence", target_error=0.02, additive=False
    )
    found = condshap.load_explanation(tmp_path / "c.parquet")
    np.testing.assert_allclose(found.values, wanted.values, rtol=0, atol=1e-12)
    assert found.provenance.n_samples == wanted.provenance.n_samples
    wrong = _explain(folder, tmp_path / "d.parquet", "--target-error", 0.02, "--n-samples", 5)
    assert wrong.exit_code == 1
    assert "n_samples and target_error cannot be combined" in _message(wrong)
    wrong = _explain(folder, tmp_path / "d.parquet", "--additive", "yes", model="forest.skops")
    assert wrong.exit_code == 1
    assert _explain(folder, tmp_path / "d.parquet", "--additive", "perhaps").exit_code == 2


@pytest.mark.parametrize("option", [("--target-error", "0.1"), ("--additive", "no")])
def test_they_cannot_be_given_to_a_saved_explainer(folder: Path, tmp_path: Path, option: tuple[str, str]) -> None:
    result = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", *option)
    assert result.exit_code == 2
    assert option[0] in result.output


# --- for machines -----------------------------------------------------------------------------------------------------


def test_explain_prints_the_numbers_of_the_api_as_json(folder: Path, tmp_path: Path) -> None:
    result = _explain(folder, tmp_path / "out.parquet", "--json", model="classes.skops")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    model = load_model(folder / "classes.skops", trust=True)
    wanted = condshap.explain(model, _table(60, 0), _table(4, 1), approach="independence")
    low, high = wanted.msev.interval()
    assert (found["msev"], found["low"], found["high"]) == pytest.approx((float(wanted.msev), low, high))
    assert (found["approach"], found["n_rows"], found["n_coalitions"]) == ("independence", 4, 16)
    assert found["players"] == ["size", "mass", "colour", "code"]
    assert found["outputs"] == ["3", "5", "8"]
    assert found["model_rows"] == wanted.value_table.n_evaluations
    np.testing.assert_allclose(found["mean_abs"], np.abs(wanted.values).mean(axis=0))
    assert found["written"] == [str(tmp_path / "out.parquet")]


def test_what_is_not_known_is_null_in_json(folder: Path, tmp_path: Path) -> None:
    _table(1, 1).to_csv(tmp_path / "one.csv", index=False)
    result = _explain(folder, tmp_path / "out.parquet", "--json", rows=tmp_path / "one.csv")
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["low"] is found["high"] is found["msev_se"] is found["tolerance"] is None


def test_fit_and_approaches_print_json(folder: Path, tmp_path: Path) -> None:
    found = json.loads(_fit_command(folder, tmp_path / "explainer", "--json").stdout)
    assert found["approach"] == "ctree"
    assert found["seconds"] > 0
    assert found["written"] == [str(tmp_path / "explainer")]
    listed = {line["name"]: line for line in json.loads(_run("approaches", "--json").stdout)}
    assert sorted(listed) == sorted(condshap.available_approaches())
    assert listed["gaussian"]["features"] == ["continuous"]
    assert (listed["vaeac"]["missing_values"], listed["ctree"]["missing_values"]) == (True, False)


# --- several approaches -----------------------------------------------------------------------------------------------


def _compare(folder: Path, out: Path, *more: object, model="linear.skops"):
    files = ("--model", folder / model, "--train", folder / "train.csv", "--rows", folder / "rows.csv", "--out", out)
    return _run("compare", *files, *more)


BOTH = ("--approach", "independence", "--approach", "regression_separate", "--seed", 3)


def test_compare_has_the_numbers_of_the_api(folder: Path, tmp_path: Path) -> None:
    result = _compare(folder, tmp_path / "new" / "out", *BOTH, "--level", 0.9, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    model = joblib.load(folder / "linear.joblib")
    names = ["independence", "regression_separate"]
    wanted = condshap.compare(model, _table(60, 0), _table(4, 1), approaches=names, seed=3, level=0.9)
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
    assert pd.read_csv(found["written"][-1])["msev"].tolist() == [line["msev"] for line in found["approaches"]]


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
    assert "Did you mean 'gaussian'?" in _message(wrong)
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    wrong = _compare(folder, tmp_path / "file")
    assert wrong.exit_code == 1
    assert "the output folder must be one that can be created" in _message(wrong)
    assert _compare(folder, tmp_path / "out", "--tolerance", 0.1).exit_code == 2
    assert _compare(folder, tmp_path / "out", "--level", 2).exit_code == 2
    wrong = _compare(folder, tmp_path / "out", "--approach", "independence", "--approach", "gaussian")
    assert wrong.exit_code == 1
    assert "approach 'gaussian' needs continuous features" in _message(wrong)
    assert "Approach 1 of 2" not in _message(wrong)
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
    assert "--install-completion" in _run("--help").output


@pytest.mark.parametrize("command", ["demo", "approaches", "fit", "explain", "compare", "report", "plot"])
def test_the_help_of_every_command_has_an_example(command: str) -> None:
    text = _run(command, "--help").output
    assert f"condshap {command}" in text.partition("Example:")[2]
    assert "--json" in text
