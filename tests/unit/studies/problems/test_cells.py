"""Cells pose problems that depend on the repetition only, and draw coalitions by shapr's law or the formula's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from condshap.studies.problems.cells import (
    BurrCell,
    CategoricalCell,
    MixedCell,
    draw_coalitions,
    remove_entries,
    speed_up,
)
from condshap.studies.problems.informative_gaps import InformativeCell
from condshap.studies.problems.truths import find_truth
from condshap.studies.running.methods import find_method
from condshap.studies.running.runner import make_explainer, measure_method, measure_truth
from condshap.studies.running.store import Key

SMALL = [
    BurrCell(5, 60, n_rows=4, n_trees=3),
    BurrCell(15, 60, n_rows=4, n_trees=3, n_coalitions=100),
    MixedCell("M4", 0.5, 60, n_rows=4),
    MixedCell("M25", 0.5, 120, n_rows=4, n_coalitions=300),
    CategoricalCell(3, 4, 0.5, 60, n_rows=4),
    InformativeCell(60, 4),
]


@pytest.mark.parametrize("cell", SMALL, ids=lambda cell: cell.key)
def test_a_repetition_is_the_same_problem_every_time_and_another_one_is_not(cell):
    one, two, other = cell.make_problem(3), cell.make_problem(3), cell.make_problem(4)
    pd.testing.assert_frame_equal(one.X_train, two.X_train)
    pd.testing.assert_frame_equal(one.X, two.X)
    assert one.base_value == two.base_value != other.base_value
    np.testing.assert_array_equal(one.plan.masks, two.plan.masks)
    assert not one.X_train.equals(other.X_train)
    assert len(one.X) == 4


@pytest.mark.parametrize("cell", SMALL, ids=lambda cell: cell.key)
def test_cells_of_other_settings_have_other_keys(cell):
    assert len({other.key for other in SMALL} | {other.quick().key for other in SMALL}) == 2 * len(SMALL)
    assert cell.quick().make_problem(0).plan.n_players == cell.make_problem(0).plan.n_players


def test_a_smaller_training_set_is_the_head_of_a_larger_one():
    small, large = (BurrCell(5, n, n_rows=4, n_trees=2).make_problem(1) for n in (30, 50))
    pd.testing.assert_frame_equal(small.X_train, large.X_train.head(30))
    pd.testing.assert_frame_equal(small.X, large.X)


def test_missing_training_entries_change_neither_model_nor_truth():
    complete, gappy = BurrCell(5, 400, n_rows=4, n_trees=3), BurrCell(5, 400, n_rows=4, n_trees=3, missing=0.2)
    one, two = complete.make_problem(0), gappy.make_problem(0)
    assert complete.truth_key == gappy.truth_key
    assert complete.key != gappy.key
    np.testing.assert_array_equal(one.model.predict(one.X), two.model.predict(two.X))
    assert one.base_value == two.base_value
    assert two.X_train.isna().to_numpy().mean() == pytest.approx(0.2, abs=0.04)
    assert two.X.notna().all(axis=None)
    seen = two.X_train.notna()
    pd.testing.assert_frame_equal(two.X_train.where(seen, 0.0), one.X_train.where(seen, 0.0))


def test_no_row_loses_all_of_its_entries():
    gappy = remove_entries(pd.DataFrame(np.ones((500, 2))), 0.9, seed=0)
    assert gappy.notna().any(axis=1).all()


def test_sizes_of_drawn_coalitions_follow_shaprs_law_and_weights_are_frequencies():
    n, M = 200_000, 6
    plan, _ = draw_coalitions(M, n, seed=0)
    sizes = np.arange(1, M)
    law = (M - 1) / (sizes * (M - sizes))
    law /= law.sum()
    found = np.bincount(plan.sizes, weights=plan.weights, minlength=M + 1)[1:M]
    np.testing.assert_allclose(found, law, atol=5 * np.sqrt(0.25 / n))
    np.testing.assert_allclose(plan.weights * n, np.round(plan.weights * n), atol=1e-6)
    pairs = plan.sizes == 2
    np.testing.assert_allclose(plan.weights[pairs], law[1] / 15, rtol=0.06)


def test_the_law_of_the_formula_prefers_large_coalitions_and_keeps_their_frequencies():
    """Chances of sizes are within 5 standard errors, so a right law fails once in a million times."""
    n, M = 200_000, 6
    plan, frequencies = draw_coalitions(M, n, seed=0, law="formula")
    sizes = np.arange(1, M)
    law = 1 / (M - sizes)
    law /= law.sum()
    found = np.bincount(plan.sizes[plan.interior], weights=frequencies, minlength=M)[1:]
    np.testing.assert_allclose(found, law, atol=5 * np.sqrt(0.25 / n))
    np.testing.assert_allclose(frequencies * n, np.round(frequencies * n), atol=1e-6)
    kernel = 1 / (sizes * (M - sizes))
    weights = np.bincount(plan.sizes, weights=plan.weights, minlength=M + 1)[1:M]
    np.testing.assert_allclose(weights, kernel / kernel.sum(), atol=5 * np.sqrt(0.25 / n))


def test_coalitions_count_in_ec3_as_often_as_they_were_drawn(tmp_path):
    cell = MixedCell("M10", 0.5, 60, n_rows=4, n_coalitions=300, law="formula")
    assert cell.key == "mixed M10 rho=0.5 N=60 S=300 by formula rows=4"
    problem = cell.make_problem(0)
    truth = find_truth(cell, 0, problem, tmp_path)
    squares = ((truth.v[problem.plan.interior] - truth.v[-1]) ** 2).mean(axis=1)
    found = measure_truth(Key("s", cell.key, "truth", 0, 0, "0"), problem, truth)
    assert found.ec3 == pytest.approx(np.average(squares, weights=problem.coalition_weights))
    assert abs(found.ec3 - squares.mean()) > 0.05 * found.ec3


def test_methods_are_judged_by_these_frequencies_as_well(tmp_path):
    cell = MixedCell("M10", 0.5, 60, n_rows=4, n_coalitions=300, law="formula")
    problem, method = cell.make_problem(0), find_method("independence")
    truth = find_truth(cell, 0, problem, tmp_path)
    found = measure_method(Key("s", cell.key, "independence", 0, 0, "0"), method, problem, truth, seed=0)
    table = make_explainer(method, problem, seed=0, device="cpu").fit(problem.X_train).explain(problem.X).value_table
    inside = problem.plan.interior
    v, noise = table.values[inside], table.std_errors[inside] ** 2
    for target, criterion in ((truth.v[inside], found.ec2), (truth.v[-1], found.ec3)):
        squares = ((v - target) ** 2 - noise).mean(axis=1)
        assert criterion == pytest.approx(np.average(squares, weights=problem.coalition_weights))
        assert criterion != pytest.approx(squares.mean(), rel=0.01)


def test_a_faster_forest_predicts_the_same_and_other_models_stay():
    problem = BurrCell(5, 60, n_rows=4, n_trees=3).make_problem(0)
    assert isinstance(speed_up(problem, "sklearn").model, RandomForestRegressor)
    np.testing.assert_array_equal(speed_up(problem, "cpu").model.predict(problem.X), problem.model.predict(problem.X))
    linear = MixedCell("M4", 0.5, 60, n_rows=4).make_problem(0)
    assert speed_up(linear, "cpu") is linear


def test_rows_of_the_categorical_study_are_weighted_by_their_probability():
    problem = CategoricalCell(3, 4, 0.5).make_problem(0)
    assert problem.row_weights is not None
    assert len(problem.X) == len(problem.row_weights) == 64
    assert problem.row_weights.sum() == pytest.approx(1.0)
