"""The demo on a small forest and few rows: the same functions, less to wait for."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import condshap
from condshap.datasets import Dataset, load_abalone
from condshap.demo import (
    PAPER_MSEV,
    DemoResult,
    choose_approaches,
    choose_rows,
    explain_rows,
    fit_forest,
    msev_table,
    run_demo,
)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_abalone()


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[DemoResult, str, Path]:
    """Result, what was printed, and the folder."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    screen = io.StringIO()
    console = Console(file=screen, width=80)
    result = run_demo(folder, ["independence"], n_trees=5, n_rows=12, console=console)
    return result, screen.getvalue(), folder


def test_the_forest_is_the_papers_as_near_as_scikit_learn_has_it(data: Dataset) -> None:
    forest = fit_forest(data, n_trees=2)[-1]
    assert (forest.max_features, forest.min_samples_split, forest.n_estimators) == ("sqrt", 6, 2)
    assert fit_forest.__defaults__ == (500, 0)


def test_the_forest_reads_the_raw_table_with_sex_as_levels(data: Dataset) -> None:
    model = fit_forest(data, n_trees=2)
    assert model.predict(data.X_test).shape == (100,)
    codes = model[0].transform(data.X_test)[:, 0]
    np.testing.assert_array_equal(codes, data.X_test["Sex"].cat.codes)


def test_the_default_approaches_are_those_of_the_paper_that_exist(data: Dataset) -> None:
    wanted = [name for name in ("independence", "ctree", "vaeac") if name in condshap.available_approaches()]
    assert list(choose_approaches((), data)) == wanted


def test_an_approach_named_twice_is_run_once(data: Dataset) -> None:
    assert choose_approaches(["independence", "independence"], data) == ("independence",)


def test_an_approach_that_cannot_handle_sex_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(condshap.CondShapError, match=r"'gaussian' needs continuous features.*\['Sex'\]"):
        run_demo(tmp_path / "out", ["gaussian"])
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(condshap.CondShapError, match="output folder must be one that can be made"):
        run_demo(tmp_path / "file", n_trees=2)


def test_the_base_value_is_the_mean_training_response(demo, data: Dataset) -> None:
    explanation = demo[0].explanations[0]
    np.testing.assert_allclose(explanation.base_values, data.y_train.mean())
    assert explanation.data.index.tolist() == data.test[:12].tolist()


def test_the_msev_table_has_the_papers_numbers_beside_ours(demo) -> None:
    table = demo[0].msev
    assert table.columns.tolist() == ["approach", "msev", "std_error", "low", "high", "paper", "seconds"]
    line = table.iloc[0]
    assert line["msev"] == pytest.approx(float(demo[0].explanations[0].msev))
    assert line["low"] < line["msev"] < line["high"]
    assert line["paper"] == PAPER_MSEV["independence"] == 3.57


def test_an_approach_that_the_paper_has_not_leaves_its_place_empty(demo) -> None:
    from dataclasses import replace

    explanation = demo[0].explanations[0]
    other = replace(explanation, provenance=replace(explanation.provenance, approach="another"))
    assert np.isnan(msev_table([other])["paper"].iloc[0])


def test_three_rows_are_below_close_to_and_above_the_base_value_with_different_sexes(demo) -> None:
    result = demo[0]
    explanation = result.explanations[0]
    below, close, above = (explanation.predictions - explanation.base_values)[result.chosen]
    assert below < 0 < above
    assert abs(close) < min(-below, above)
    assert set(explanation.data["Sex"].iloc[result.chosen]) == {"F", "I", "M"}


def test_rows_that_lack_a_sex_are_refused(data: Dataset) -> None:
    model = fit_forest(data, n_trees=2)
    (explanation,) = explain_rows(model, data, ["independence"], 2, Console(file=io.StringIO()))
    with pytest.raises(condshap.CondShapError, match=r"must hold all three sexes, got \['F', 'M'\]"):
        choose_rows(explanation, explanation.data["Sex"].astype(str).to_numpy())


def test_shapley_values_of_the_three_rows_add_up_to_the_predictions(demo) -> None:
    table = demo[0].three_rows
    for _, lines in table.groupby(["row", "approach"]):
        assert lines["shapley_value"].sum() + lines["base_value"].iloc[0] == pytest.approx(lines["prediction"].iloc[0])
        assert len(lines) == 8
    assert table["row"].unique().tolist() == ["A", "B", "C"]


def test_files_hold_what_was_found(demo) -> None:
    result, _, folder = demo
    assert sorted(path.name for path in folder.iterdir()) == ["independence.parquet", "msev.csv", "three_rows.csv"]
    assert sorted(result.files) == sorted(folder.iterdir())
    loaded = condshap.load_explanation(folder / "independence.parquet")
    np.testing.assert_array_equal(loaded.values, result.explanations[0].values)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "msev.csv"), result.msev, check_dtype=False)
    read = pd.read_csv(folder / "three_rows.csv", dtype={"value": str})
    pd.testing.assert_frame_equal(read, result.three_rows, check_dtype=False)


def test_the_screen_shows_both_tables_and_the_files_within_80_columns(demo) -> None:
    result, screen, _ = demo
    for words in ("MSEv", "3.57", "Row A", "Row B", "Row C", "ShellWeight", "base value + sum", "Written:"):
        assert words in screen
    for path in result.files:
        assert str(path) in screen
    assert max(len(line) for line in screen.splitlines() if "/" not in line) <= 80
