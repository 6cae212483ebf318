"""Studies run to the same results however they are run, and go on where they were killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from condshap.exceptions import OptionError, StorageError
from condshap.studies.pages.study_page import study_page
from condshap.studies.pages.summary import read_results
from condshap.studies.problems.cells import BurrCell, CategoricalCell, MixedCell
from condshap.studies.problems.informative_gaps import InformativeCell
from condshap.studies.running.catalogue import Entry
from condshap.studies.running.runner import TRUTH, Study, missing_tasks, run
from condshap.studies.running.store import Store

CELL = CategoricalCell(3, 4, 0.5, 200, n_rows=5)
STUDY = Study("test", (CELL, replace(CELL, rho=0.9)), ("independence", "categorical"), tuple(range(3)))


def criteria(path):
    """What a table is made of: everything but seconds."""
    return {key: (found.ec1, found.ec2, found.ec3, found.n_evaluations) for key, found in Store(path).read().items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "store.jsonl"
    assert run(STUDY, 1, path) == ()
    return path


def test_every_method_of_every_repetition_is_one_line(undisturbed):
    assert len(undisturbed.read_text().splitlines()) == 2 * 3 * 3
    wanted = {STUDY.key(cell, name, r) for cell in STUDY.cells for name in (TRUTH, *STUDY.methods) for r in range(3)}
    assert set(criteria(undisturbed)) == wanted


def test_memory_of_every_result_is_noted(undisturbed):
    found = [one.peak for one in Store(undisturbed).read().values()]
    assert all(0.01 < peak < 100 for peak in found) or not Path("/proc/self/status").exists()


def test_a_finished_study_is_not_run_again_unless_asked_to(undisturbed):
    before = undisturbed.read_bytes()
    run(STUDY, 1, undisturbed)
    assert undisturbed.read_bytes() == before
    assert missing_tasks(STUDY, undisturbed) == []
    assert {task.methods for task in missing_tasks(STUDY, undisturbed, again=["categorical"])} == {("categorical",)}
    more = replace(STUDY, repetitions=tuple(range(4)))
    assert [task.repetition for task in missing_tasks(more, undisturbed)] == [3, 3]


def test_workers_find_the_same_results(undisturbed, tmp_path):
    run(STUDY, 2, tmp_path / "store.jsonl", progress=False)
    assert criteria(tmp_path / "store.jsonl") == criteria(undisturbed)


def test_the_seed_moves_methods_and_not_data(undisturbed, tmp_path):
    other = replace(STUDY, seed=1, cells=(CELL,), repetitions=(0,))
    run(other, 1, tmp_path / "store.jsonl")
    old, new = criteria(undisturbed), criteria(tmp_path / "store.jsonl")
    assert new[other.key(CELL, TRUTH, 0)] == old[STUDY.key(CELL, TRUTH, 0)]
    assert new[other.key(CELL, "categorical", 0)] == old[STUDY.key(CELL, "categorical", 0)]  # draws nothing
    assert new[other.key(CELL, "independence", 0)] != old[STUDY.key(CELL, "independence", 0)]


LONG = replace(STUDY, repetitions=tuple(range(20)))
RUN = """
from pathlib import Path
from condshap.studies.problems.cells import CategoricalCell
from condshap.studies.running.runner import Study, run
cells = (CategoricalCell(3, 4, 0.5, 200, n_rows=5), CategoricalCell(3, 4, 0.9, 200, n_rows=5))
run(Study("test", cells, ("independence", "categorical"), tuple(range(20))), {jobs}, Path({path!r}))
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_killed_goes_on_and_ends_with_the_table_of_an_undisturbed_one(tmp_path, jobs):
    path = tmp_path / "killed" / "store.jsonl"
    script = RUN.format(jobs=jobs, path=str(path))
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    deadline = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n") >= 8):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)  # the workers as well
    process.wait()
    with path.open("a") as file:
        file.write('{"format": 1, "study": "te')  # the worst that can happen
    survived = criteria(path)
    assert 8 <= len(survived) < 2 * 20 * 3
    assert run(LONG, 1, path) == ()
    lines = path.read_text().splitlines()
    assert len(lines) == len(set(criteria(path))) == 2 * 20 * 3  # every result once
    assert run(LONG, 1, tmp_path / "undisturbed.jsonl") == ()
    assert criteria(path) == criteria(tmp_path / "undisturbed.jsonl")
    assert survived.items() <= criteria(path).items()
    assert table(path) == table(tmp_path / "undisturbed.jsonl")


def table(path):
    """The page of a store, without seconds, which no two runs share."""
    entry = Entry(LONG, "a study", criteria=("ec1", "ec2", "ec3"))
    page = study_page(entry, read_results(LONG, [path]), "command")
    assert "| 3 | 4 | 200 | 0.9 | 20 |" in page
    return page


def test_a_method_that_fails_is_reported_and_costs_the_others_nothing(tmp_path):
    cell = MixedCell("M4", 0.5, 60, n_rows=3)
    study = Study("test", (cell,), ("gaussian", "independence"), (0,))
    (failure,) = run(study, 1, tmp_path / "store.jsonl")
    assert (failure.cell, failure.method, failure.repetition) == (cell.key, "gaussian", 0)
    assert "SchemaError" in failure.reason
    assert study.key(cell, "independence", 0) in criteria(tmp_path / "store.jsonl")


def test_an_unknown_method_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(OptionError, match="a method must be one of"):
        run(replace(STUDY, methods=("gausian",)), 1, tmp_path / "store.jsonl")
    assert not (tmp_path / "store.jsonl").exists()


def test_a_store_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="must be written to"):
        run(STUDY, 1, tmp_path / "file" / "store.jsonl")


def test_criteria_of_the_categorical_study_are_weighted_by_cells(tmp_path):
    cell = CategoricalCell(3, 4, 0.9, 200)
    study = Study("test", (cell,), ("independence",), (0,))
    run(study, 1, tmp_path / "store.jsonl")
    found = Store(tmp_path / "store.jsonl").read()[study.key(cell, "independence", 0)]
    from condshap.evaluation import ec1
    from condshap.explainer import explain
    from condshap.studies.problems.truths import compute_truth

    problem = cell.make_problem(0)
    explanation = explain(
        problem.model, problem.X_train, problem.X, approach="independence", base_value=problem.base_value
    )
    truth = compute_truth(problem)
    expected = float(ec1(truth.phi, explanation.values, weights=problem.row_weights))
    assert found.ec1 == pytest.approx(expected, rel=0.1)  # donors are drawn, with another seed
    assert abs(found.ec1 - float(ec1(truth.phi, explanation.values))) > abs(found.ec1 - expected)


def test_vaeac_runs_in_every_family(tmp_path):
    burr = BurrCell(5, 60, n_rows=3, n_trees=3, missing=0.2)
    high = BurrCell(15, 60, n_rows=3, n_trees=3, n_coalitions=60)
    cells = (burr, high, MixedCell("M4", 0.5, 60, n_rows=3), CELL, InformativeCell(60, 3))
    study = Study("test", cells, ("vaeac:epochs=2,scales=('standard',)",), (0,))
    assert run(study, 1, tmp_path / "store.jsonl", forest="sklearn") == ()
    found = Store(tmp_path / "store.jsonl").read().values()
    assert len(found) == 2 * len(cells)
    assert all(np.isfinite([result.ec1, result.ec2, result.ec3]).all() for result in found)


ABSENT = ("sklego", "skops", "typer", "rich", "matplotlib", "jinja2", "safetensors", "polars", "xgboost", "shap")
BARE = """
import sys
for name in {absent!r}:
    sys.modules[name] = None
{run}
"""


def test_nothing_but_the_numerical_packages_is_needed(tmp_path):
    script = BARE.format(absent=ABSENT, run=RUN.format(jobs=1, path=str(tmp_path / "store.jsonl"))).replace(
        "range(20)", "range(1)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert len(criteria(tmp_path / "store.jsonl")) == 2 * 3
