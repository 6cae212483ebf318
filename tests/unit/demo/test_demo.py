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
from condshap.demo import penguins, run_demo
from condshap.demo.abalone import PAPER_MSEV, choose_approaches, choose_rows, explain_rows, fit_forest
from condshap.demo.results import DemoResult, msev_table, one_output


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
    with pytest.raises(condshap.CondShapError, match="output folder must be one that can be created"):
        run_demo(tmp_path / "file", n_trees=2)


def test_the_base_value_is_the_mean_training_response(demo, data: Dataset) -> None:
    explanation = demo[0].explanations[0]
    np.testing.assert_allclose(explanation.base_values, data.y_train.mean())
    assert explanation.data.index.tolist() == data.test[:12].tolist()


def test_the_msev_table_has_the_papers_numbers_beside_ours(demo) -> None:
    table = demo[0].msev
    assert table.columns.tolist() == ["approach", "msev", "msev_se", "low", "high", "paper", "seconds", "model_rows"]
    line = table.iloc[0]
    assert line["msev"] == pytest.approx(float(demo[0].explanations[0].msev))
    assert line["low"] < line["msev"] < line["high"]
    assert line["paper"] == PAPER_MSEV["independence"] == 3.57


def test_an_approach_that_the_paper_has_not_leaves_its_place_empty(demo) -> None:
    from dataclasses import replace

    explanation = demo[0].explanations[0]
    other = replace(explanation, provenance=replace(explanation.provenance, approach="another"))
    assert np.isnan(msev_table([other], PAPER_MSEV)["paper"].iloc[0])


def test_three_rows_are_below_close_to_and_above_the_base_value_with_different_sexes(demo) -> None:
    result = demo[0]
    explanation = result.explanations[0]
    below, close, above = (explanation.predictions - explanation.base_values)[result.chosen]
    assert below < 0 < above
    assert abs(close) < min(-below, above)
    assert set(explanation.data["Sex"].iloc[result.chosen]) == {"F", "I", "M"}


def test_rows_that_lack_a_sex_are_refused(data: Dataset) -> None:
    model = fit_forest(data, n_trees=2)
    _, (explanation,) = explain_rows(model, data, ["independence"], 2, Console(file=io.StringIO()))
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
    pictures = ["responses.png", "samples.png", "shapley-values.png"]
    tables = ["independence.parquet", "msev.csv", "three_rows.csv"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*tables, "report.html", *pictures])
    assert sorted(result.files) == sorted(folder.iterdir())
    loaded = condshap.load_explanation(folder / "independence.parquet")
    np.testing.assert_array_equal(loaded.values, result.explanations[0].values)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "msev.csv"), result.msev, check_dtype=False)
    read = pd.read_csv(folder / "three_rows.csv", dtype={"value": str})
    pd.testing.assert_frame_equal(read, result.three_rows, check_dtype=False)


def test_figures_are_pictures_and_the_report_names_model_and_approach(demo) -> None:
    folder = demo[2]
    for name in ("responses", "samples", "shapley-values"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text()
    assert "Abalone: why the forest predicts these rings" in page
    assert "RandomForestRegressor" in page or "Pipeline" in page
    assert "independence" in page


def test_the_bars_are_those_of_the_three_rows(demo, monkeypatch, tmp_path: Path, data: Dataset) -> None:
    from condshap.demo.abalone import draw_figures
    from condshap.studies.figures import style

    result, drawn = demo[0], {}
    monkeypatch.setattr(style, "save", lambda figure, folder, name: drawn.setdefault(name, figure) and folder / name)
    draw_figures(tmp_path, data, [], [result.explanations[0][result.chosen]])
    assert list(drawn) == ["shapley-values"]  # no approach that draws samples, no figures of samples
    for axis, row in zip(drawn["shapley-values"].axes, result.chosen, strict=True):
        widths = [patch.get_width() for patch in axis.patches]
        np.testing.assert_allclose(widths, result.explanations[0].values[row])


def test_the_screen_shows_both_tables_and_the_files_within_80_columns(demo) -> None:
    result, screen, _ = demo
    for words in ("MSEv", "3.57", "Row A", "Row B", "Row C", "ShellWeight", "base value + sum", "Written:"):
        assert words in screen
    for path in result.files:
        assert str(path) in screen
    assert max(len(line) for line in screen.splitlines() if "/" not in line) <= 80
    assert f"Open {result.files[0]} in a browser" in screen


# --- penguins: missing values and a classifier ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def birds(tmp_path_factory) -> tuple[DemoResult, str, Path]:
    folder, screen = tmp_path_factory.mktemp("penguins"), io.StringIO()
    console = Console(file=screen, width=80)
    result = run_demo(folder, ["independence"], data="penguins", n_trees=20, console=console)
    return result, screen.getvalue(), folder


def test_penguins_keep_their_gaps_and_have_an_output_per_species(birds) -> None:
    explanation = birds[0].explanations[0]
    assert explanation.output_names == ("Adelie", "Chinstrap", "Gentoo")
    assert int(explanation.data.isna().sum().sum()) == 4
    np.testing.assert_allclose(explanation.predictions.sum(axis=1), 1.0)
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=1e-9)


def test_the_three_birds_are_one_with_a_gap_a_doubtful_one_and_a_sure_one(birds) -> None:
    result = birds[0]
    explanation = one_output(result.explanations[0], penguins.SPECIES)
    gap, doubtful, sure = result.chosen
    has_gap = explanation.data.isna().any(axis=1).to_numpy()
    assert has_gap[gap]
    assert not has_gap[doubtful]
    doubt = np.abs(explanation.predictions - 0.5)
    assert doubt[gap] == doubt[has_gap].min()
    assert doubt[doubtful] == doubt[~has_gap].min()
    assert explanation.predictions[sure] == explanation.predictions.min()


def test_one_output_is_that_part_of_everything(birds) -> None:
    every = birds[0].explanations[0]
    one = one_output(every, "Gentoo")
    np.testing.assert_array_equal(one.values, every.values[:, :, 2])
    np.testing.assert_array_equal(one.std_errors, every.std_errors[:, :, 2])
    np.testing.assert_array_equal(one.value_table.values, every.value_table.values[:, :, 2])
    assert float(one.msev) == pytest.approx(every.msev.value[2])


def test_the_screen_shows_the_species_and_what_is_missing(birds) -> None:
    result, screen, folder = birds
    for words in ("P(Adelie)", "missing", "Missing values stay missing: 15 in the training rows, 4", "bill_length_mm"):
        assert words in screen
    assert max(len(line) for line in screen.splitlines() if "/" not in line) <= 80
    assert "paper" not in screen
    names = ["independence.parquet", "msev.csv", "report.html", "three_rows.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    lines = result.three_rows[result.three_rows["row"] == "A"]
    assert "missing" in lines["value"].tolist()
    assert lines["shapley_value"].sum() + lines["base_value"].iloc[0] == pytest.approx(lines["prediction"].iloc[0])


def test_penguins_are_explained_by_all_approaches_that_take_gaps_and_no_others(tmp_path: Path) -> None:
    from condshap.datasets import load_penguins

    assert penguins.choose_approaches((), load_penguins()) == ("independence", "vaeac")
    with pytest.raises(condshap.CondShapError, match="'ctree' needs complete training rows"):
        run_demo(tmp_path / "out", ["ctree"], data="penguins")
    assert not (tmp_path / "out").exists()


def test_other_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(condshap.CondShapError, match=r"data must be one of \['abalone', 'penguins'\], got 'whales'"):
        run_demo(tmp_path, data="whales")
