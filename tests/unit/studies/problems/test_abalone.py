"""Abalone as a cell: the authors' rows, the demo's forest, no truth."""

import json

import numpy as np
import pandas as pd
import pytest

from condshap.exceptions import CondShapError
from condshap.studies.problems.abalone import ROWS_VARIABLE, AbaloneCell, fit_abalone, load_rows
from condshap.studies.problems.cells import speed_up
from condshap.studies.running.runner import Study, missing_tasks, run
from condshap.studies.running.store import Store

pytest.importorskip("sklego")
SMALL = AbaloneCell(n_train=300, n_rows=4, n_trees=5)


def test_the_forest_is_that_of_the_demo():
    from condshap.demo.abalone import fit_forest

    data = load_rows()
    ours, demo = fit_abalone(data, 10, seed=3), fit_forest(data, 10, seed=3)
    np.testing.assert_allclose(ours.predict(data.X_test), demo.predict(data.X_test), rtol=1e-12)


def test_the_repetition_seeds_the_forest_and_not_the_rows():
    one, two = SMALL.make_problem(0), SMALL.make_problem(1)
    pd.testing.assert_frame_equal(one.X, two.X)
    pd.testing.assert_frame_equal(one.X_train, load_rows().X_train.head(300))
    assert one.base_value == two.base_value == load_rows().y_train.head(300).mean()
    assert (one.model.predict(one.X) != two.model.predict(two.X)).any()


def test_a_faster_forest_predicts_the_same():
    problem = SMALL.make_problem(0)
    faster = speed_up(problem, "cpu")
    assert type(faster.model.forest).__name__ == "FastTrees"
    np.testing.assert_array_equal(faster.model.predict(problem.X), problem.model.predict(problem.X))


def test_without_a_truth_there_is_no_ec1_and_no_ec2(tmp_path):
    study = Study("test", (SMALL,), ("independence",), (0, 1))
    path = tmp_path / "store.jsonl"
    assert run(study, 1, path) == ()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["method"] for line in lines] == ["independence", "independence"]
    assert all(line["ec1"] is None and line["ec2"] is None and line["ec3"] > 0 for line in lines)
    assert all(np.isnan(result.ec1) and result.ec3 > 0 for result in Store(path).read().values())
    assert missing_tasks(study, path) == []


def test_rows_may_come_from_a_file(tmp_path, monkeypatch):
    import sklego.datasets

    frame = sklego.datasets.load_abalone(as_frame=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = load_rows()
    monkeypatch.setenv(ROWS_VARIABLE, str(tmp_path / "rows.csv"))
    pd.testing.assert_frame_equal(load_rows().X, expected.X)
    np.testing.assert_array_equal(load_rows().y, expected.y)
    frame.head(100).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(CondShapError, match="must have 4177 rows"):
        load_rows()
    frame.drop(columns="sex").to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(CondShapError, match="'sex'"):
        load_rows()
    monkeypatch.setenv(ROWS_VARIABLE, str(tmp_path / "none.csv"))
    with pytest.raises(CondShapError, match="readable CSV file"):
        load_rows()
