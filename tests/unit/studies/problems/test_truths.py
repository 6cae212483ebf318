"""Truths of studies: exact where they can be, with an honest error elsewhere, and never stale."""

from dataclasses import replace

import numpy as np
import pytest

from condshap.studies.problems.cells import BurrCell, CategoricalCell, MixedCell
from condshap.studies.problems.informative_gaps import InformativeCell
from condshap.studies.problems.truths import compute_truth, find_truth, truth_samples

BURR = BurrCell(5, 60, n_rows=3, n_trees=5)
HIGH = BurrCell(15, 60, n_rows=3, n_trees=5, n_coalitions=60)


@pytest.mark.parametrize(
    "cell", [MixedCell("M4", 0.5, 60, n_rows=5), CategoricalCell(3, 4, 0.9, 60), InformativeCell(60, 5)]
)
def test_without_a_forest_the_truth_is_exact(cell):
    truth = compute_truth(cell.make_problem(0))
    assert truth.error == 0
    assert not truth.std_errors.any()


@pytest.mark.parametrize("cell", [BURR, HIGH, MixedCell("M25", 0.5, 120, n_rows=3, n_coalitions=300)])
def test_true_shapley_values_sum_to_what_they_explain(cell):
    problem = cell.make_problem(0)
    truth = compute_truth(problem)
    np.testing.assert_allclose(truth.phi.sum(axis=1), problem.model.predict(problem.X) - problem.base_value, atol=1e-10)
    assert np.isfinite(truth.error)


def test_the_error_of_a_sampled_truth_is_what_another_sample_shows():
    """240 values on either side: the estimate of the error is within a factor 1.5 of the truth with many samples."""
    problem = replace(BURR, n_rows=48).make_problem(0)
    truth = compute_truth(problem)
    inside = problem.plan.interior
    v = truth.v.copy()
    v[inside], _ = problem.design.true_values(
        problem.model, problem.X, problem.plan.masks[inside], method="sampling", n_samples=2048, n_replicates=2, seed=9
    )
    from condshap.numerics.shapley import exact_shapley

    found = np.abs(exact_shapley(v, problem.plan.masks).T - truth.phi).mean()
    assert 1 / 1.5 < found / truth.error < 1.5


def test_small_coalitions_get_most_samples():
    samples = truth_samples(BURR.make_problem(0).plan)
    assert samples[1] == samples.max() >= 2 * samples[10]


def test_a_truth_is_computed_once_and_shared_by_cells_that_differ_in_missing_entries_only(tmp_path, monkeypatch):
    first = find_truth(BURR, 0, BURR.make_problem(0), tmp_path)
    monkeypatch.setattr("condshap.studies.problems.truths.compute_truth", None)
    gappy = replace(BURR, missing=0.3)
    again = find_truth(gappy, 0, gappy.make_problem(0), tmp_path)
    np.testing.assert_array_equal(first.v, again.v)
    np.testing.assert_array_equal(first.phi, again.phi)
    assert (first.error, first.cpu, first.wall) == (again.error, again.cpu, again.wall)


@pytest.mark.parametrize("other", [BurrCell(5, 50, n_rows=3, n_trees=5), BurrCell(5, 60, n_rows=4, n_trees=5), HIGH])
def test_a_file_of_another_problem_is_not_believed(tmp_path, other):
    find_truth(BURR, 0, BURR.make_problem(0), tmp_path)
    problem = other.make_problem(0)
    found = find_truth(BURR, 0, problem, tmp_path)
    np.testing.assert_array_equal(found.v, compute_truth(problem).v)
