"""Several studies in one pool: the numbers of single runs, also after a run was killed or had no time."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config

from condshap.studies.commands import main
from condshap.studies.problems.cells import BurrCell, CategoricalCell, MixedCell, fit_forest
from condshap.studies.running.runner import TRUTH, How, Outcome, Study, Work, run, run_all
from condshap.studies.running.store import Store

LEVELS = Study("levels", (CategoricalCell(3, 4, 0.5, 200, n_rows=5),), ("independence", "categorical"), (0, 1, 2))
MIXED = Study("mixed", (MixedCell("M4", 0.5, 60, n_rows=3),), ("independence", "ctree:minsplit=30"), (4, 5))
TREES = Study("trees", (BurrCell(5, 60, n_rows=3, n_trees=5),), ("gaussian", "vaeac:epochs=2"), (0, 1))
STUDIES = (LEVELS, MIXED, TREES)


def criteria(path):
    """What a table is made of: everything but seconds."""
    return {key: (found.ec1, found.ec2, found.ec3, found.n_evaluations) for key, found in Store(path).read().items()}


def works(folder):
    return [Work(study, folder / f"{study.name}.jsonl") for study in STUDIES]


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Each study on its own, in this process."""
    folder = tmp_path_factory.mktemp("serial")
    for work in works(folder):
        assert run(work.study, 1, work.store) == ()
    return {study.name: criteria(folder / f"{study.name}.jsonl") for study in STUDIES}


def test_two_processes_find_the_numbers_of_one(serial, tmp_path):
    assert run_all(works(tmp_path), 2, How(threads=2)) == Outcome()
    assert {study.name: criteria(tmp_path / f"{study.name}.jsonl") for study in STUDIES} == serial
    assert [len(found) for found in serial.values()] == [9, 6, 6]


def test_what_has_no_time_is_left_and_comes_the_next_time(serial, tmp_path):
    some = works(tmp_path)
    assert run_all(some, 1, How(until=time.time() - 1.0)) == Outcome(left=21)
    assert all(criteria(work.store) == {} for work in some)

    def slow_trees(_, method):
        return 3600.0 if method == "ctree:minsplit=30" else 0.0

    assert run_all(some, 1, How(until=time.time() + 600), expected=slow_trees) == Outcome(left=2)
    assert {key.method for key in criteria(tmp_path / "mixed.jsonl")} == {TRUTH, "independence"}
    assert run_all(some, 1, How()) == Outcome()
    assert {study.name: criteria(tmp_path / f"{study.name}.jsonl") for study in STUDIES} == serial


def test_a_failure_costs_the_other_studies_nothing(tmp_path):
    broken = replace(MIXED, methods=("gaussian", "independence"), repetitions=(0,))
    pair = [Work(broken, tmp_path / "mixed.jsonl"), Work(replace(LEVELS, repetitions=(0,)), tmp_path / "levels.jsonl")]
    found = run_all(pair, 2, How())
    assert [failure.method for failure in found.failures] == ["gaussian"]
    assert found.left == 0
    assert len(criteria(tmp_path / "levels.jsonl")) == 3


QUICK = [
    "categorical",
    "mixed-low",
    "--rho",
    "0.5",
    "--quick",
    "--methods",
    "independence,ctree",
    "--repetitions",
    "15",
]
RUN = "import sys; from condshap.studies.commands import main; sys.exit(main({words!r}))"


def test_a_killed_command_goes_on_and_ends_with_the_numbers_of_an_undisturbed_one(tmp_path):
    words = ["run", *QUICK, "--jobs", "2", "--store", str(tmp_path / "killed")]
    process = subprocess.Popen([sys.executable, "-c", RUN.format(words=words)], start_new_session=True)
    stores = [tmp_path / "killed" / f"{name}.jsonl" for name in ("categorical", "mixed-low")]
    deadline = time.monotonic() + 240
    while sum(path.read_bytes().count(b"\n") for path in stores if path.exists()) < 10:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)  # the workers as well
    process.wait()
    survived = [criteria(path) for path in stores]
    assert sum(map(len, survived)) < 2 * 15 * 3
    assert main(["run", *QUICK, "--store", str(tmp_path / "killed")]) == 0
    assert main(["run", *QUICK, "--store", str(tmp_path / "undisturbed")]) == 0
    for path, before in zip(stores, survived, strict=True):
        assert criteria(path) == criteria(tmp_path / "undisturbed" / path.name)
        assert before.items() <= criteria(path).items()
        assert len(path.read_text().splitlines()) == len(criteria(path)) == 15 * 3  # every result once


def test_a_forest_is_the_same_with_several_threads():
    problem = BurrCell(5, 300, n_rows=20, n_trees=8).make_problem(3)
    y = np.asarray(problem.design.respond(problem.X_train, 1))
    one = fit_forest(problem.X_train, y, 8, seed=3)
    with parallel_config(backend="threading", n_jobs=2):
        two = fit_forest(problem.X_train, y, 8, seed=3)
    assert (one.n_jobs, two.n_jobs) == (1, 1)
    np.testing.assert_array_equal(one.predict(problem.X), two.predict(problem.X))
