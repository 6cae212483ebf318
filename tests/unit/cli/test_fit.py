"""condshap fit, and explain with a saved explainer; options that say how to sample; JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import condshap
from condshap.cli.files import load_model
from tests.unit.cli.commands import explain_files, make_table, message_of, run


def _fit_command(folder: Path, out: Path, *more: object, model="linear.skops"):
    approach = () if "--approach" in more else ("--approach", "ctree")
    return run("fit", "--model", folder / model, "--train", folder / "train.csv", "--out", out, *approach, *more)


def _explain_with(folder: Path, explainer: Path, out: Path, *more: object, model="linear.skops"):
    files = ("--model", folder / model, "--rows", folder / "rows.csv", "--explainer", explainer, "--out", out)
    return run("explain", *files, *more)


def test_fit_then_explain_writes_what_explain_alone_writes(folder: Path, tmp_path: Path) -> None:
    options = ("--seed", 3, "--n-samples", 20, "--base-value", 0.5, "--categorical", "code", "--n-coalitions", 9)
    done = _fit_command(folder, tmp_path / "new" / "explainer", *options)
    assert done.exit_code == 0, done.output
    assert "Fitted approach 'ctree'" in done.stdout
    assert f"Written: {tmp_path / 'new' / 'explainer'}" in done.stdout
    later = _explain_with(folder, tmp_path / "new" / "explainer", tmp_path / "later.parquet")
    assert later.exit_code == 0, later.output
    assert "Explained 4 rows, 4 features, with approach 'ctree'" in later.stdout
    assert explain_files(folder, tmp_path / "once.parquet", "--approach", "ctree", *options).exit_code == 0
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in ("later", "once"))
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.std_errors, b.std_errors)


def test_workers_and_memory_of_a_saved_explainer_may_be_changed(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer").exit_code == 0
    done = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--memory-budget", "5MB")
    assert done.exit_code == 0, done.output
    wrong = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", "--n-jobs", 0)
    assert wrong.exit_code == 1
    assert "n_jobs must not be 0" in message_of(wrong)


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
    result = run("explain", *files)
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
        assert message_of(result).startswith("Error:")
        assert words in message_of(result)
        assert "Traceback" not in result.output


@pytest.mark.filterwarnings("default::condshap.CondShapWarning")
def test_another_model_for_a_saved_explainer_is_announced(folder: Path, tmp_path: Path) -> None:
    assert _fit_command(folder, tmp_path / "explainer").exit_code == 0
    result = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", model="forest.skops")
    assert result.exit_code == 0
    assert "Warning: the model must be the one that the explainer was fitted with" in message_of(result)


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
    assert words in message_of(result)
    assert not (tmp_path / "explainer").exists()


def test_fit_refuses_a_folder_as_its_output_before_any_work(folder: Path, tmp_path: Path) -> None:
    result = _fit_command(folder, tmp_path)
    assert result.exit_code == 1
    assert "the output must be a file" in message_of(result)


def test_vaeac_is_the_approach_when_none_is_named() -> None:
    for command in ("fit", "explain"):
        assert "[default: vaeac]" in run(command, "--help").output


# --- as many coalitions as the precision needs ------------------------------------------------------------------------


def test_auto_coalitions_and_their_tolerance(folder: Path, tmp_path: Path) -> None:
    options = ("--approach", "ctree", "--n-coalitions", "auto", "--tolerance", "0.1", "--max-coalitions", "16")
    done = explain_files(folder, tmp_path / "out.parquet", *options)
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
    assert "tolerance must be a number between 0 and 1" in message_of(wrong)


def test_tolerance_without_auto_and_numbers_that_are_none_are_refused(folder: Path, tmp_path: Path) -> None:
    for option, message in (
        (("--tolerance", "0.1"), "--n-coalitions auto"),
        (("--n-coalitions", "many"), "integer or 'auto'"),
    ):
        wrong = explain_files(folder, tmp_path / "out.parquet", "--approach", "ctree", *option)
        assert wrong.exit_code == 2
        assert message in " ".join(wrong.output.replace("│", " ").split())
    assert _fit_command(folder, tmp_path / "plain").exit_code == 0
    wrong = _explain_with(folder, tmp_path / "plain", tmp_path / "out.parquet", "--tolerance", "0.1")
    assert wrong.exit_code == 2


# --- options that say how to sample -----------------------------------------------------------------------------------


def test_target_error_and_additive_reach_the_explainer(folder: Path, tmp_path: Path) -> None:
    assert (
        explain_files(folder, tmp_path / "a.parquet", "--additive", "yes", "--approach", "independence").exit_code == 0
    )
    assert (
        explain_files(folder, tmp_path / "b.parquet", "--additive", "no", "--approach", "independence").exit_code == 0
    )
    a, b = (condshap.load_explanation(tmp_path / f"{name}.parquet") for name in "ab")
    assert a.value_table.n_evaluations < b.value_table.n_evaluations
    options = ("--target-error", 0.02, "--approach", "independence", "--additive", "no")
    assert explain_files(folder, tmp_path / "c.parquet", *options, model="forest.skops").exit_code == 0
    model = load_model(folder / "forest.skops", trust=True)
    wanted = condshap.explain(
        model, make_table(60, 0), make_table(4, 1), approach="independence", target_error=0.02, additive=False
    )
    found = condshap.load_explanation(tmp_path / "c.parquet")
    np.testing.assert_allclose(found.values, wanted.values, rtol=0, atol=1e-12)
    assert found.provenance.n_samples == wanted.provenance.n_samples
    wrong = explain_files(folder, tmp_path / "d.parquet", "--target-error", 0.02, "--n-samples", 5)
    assert wrong.exit_code == 1
    assert "n_samples and target_error cannot be combined" in message_of(wrong)
    wrong = explain_files(folder, tmp_path / "d.parquet", "--additive", "yes", model="forest.skops")
    assert wrong.exit_code == 1
    assert explain_files(folder, tmp_path / "d.parquet", "--additive", "perhaps").exit_code == 2


@pytest.mark.parametrize("option", [("--target-error", "0.1"), ("--additive", "no")])
def test_they_cannot_be_given_to_a_saved_explainer(folder: Path, tmp_path: Path, option: tuple[str, str]) -> None:
    result = _explain_with(folder, tmp_path / "explainer", tmp_path / "out.parquet", *option)
    assert result.exit_code == 2
    assert option[0] in result.output


# --- for machines -----------------------------------------------------------------------------------------------------


def test_explain_prints_the_numbers_of_the_api_as_json(folder: Path, tmp_path: Path) -> None:
    result = explain_files(folder, tmp_path / "out.parquet", "--json", model="classes.skops")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    model = load_model(folder / "classes.skops", trust=True)
    wanted = condshap.explain(model, make_table(60, 0), make_table(4, 1), approach="independence")
    low, high = wanted.msev.interval()
    assert (found["msev"], found["low"], found["high"]) == pytest.approx((float(wanted.msev), low, high))
    assert (found["approach"], found["n_rows"], found["n_coalitions"]) == ("independence", 4, 16)
    assert found["players"] == ["size", "mass", "colour", "code"]
    assert found["outputs"] == ["3", "5", "8"]
    assert found["model_rows"] == wanted.value_table.n_evaluations
    np.testing.assert_allclose(found["mean_abs"], np.abs(wanted.values).mean(axis=0))
    assert found["written"] == [str(tmp_path / "out.parquet")]


def test_what_is_not_known_is_null_in_json(folder: Path, tmp_path: Path) -> None:
    make_table(1, 1).to_csv(tmp_path / "one.csv", index=False)
    result = explain_files(folder, tmp_path / "out.parquet", "--json", rows=tmp_path / "one.csv")
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["low"] is found["high"] is found["msev_se"] is found["tolerance"] is None


def test_fit_and_approaches_print_json(folder: Path, tmp_path: Path) -> None:
    found = json.loads(_fit_command(folder, tmp_path / "explainer", "--json").stdout)
    assert found["approach"] == "ctree"
    assert found["seconds"] > 0
    assert found["written"] == [str(tmp_path / "explainer")]
    listed = {line["name"]: line for line in json.loads(run("approaches", "--json").stdout)}
    assert sorted(listed) == sorted(condshap.available_approaches())
    assert listed["gaussian"]["features"] == ["continuous"]
    assert (listed["vaeac"]["missing_values"], listed["ctree"]["missing_values"]) == (True, False)
