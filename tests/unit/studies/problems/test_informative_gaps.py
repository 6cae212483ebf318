"""The example of informative gaps: its closed form against simulation."""

import numpy as np
import pytest

from condshap.coalitions import all_coalitions
from condshap.studies.problems.informative_gaps import InformativeCell, InformativeGaps, sum_of_two


@pytest.mark.parametrize("known", [(2,), (0, 2), (0,)])
@pytest.mark.parametrize("is_gap", [True, False])
def test_the_closed_form_agrees_with_rows_of_the_design_near_the_condition(known, is_gap):
    """Means over rows within 0.1 of the condition, of about 10^4 rows: five standard errors and the window's width."""
    design, point = InformativeGaps(), np.array([0.4, -0.3, 0.5])
    X = design.draw(1_000_000, seed=1).to_numpy()
    near = np.ones(len(X), dtype=bool)
    for j in known:
        same = np.isnan(X[:, j]) if j == 2 and is_gap else np.abs(X[:, j] - point[j]) < 0.1
        near &= same
    row = np.where([False, False, is_gap], np.nan, point)[None]
    mask = np.isin(np.arange(3), known)[None]
    v, std_errors = design.true_values(sum_of_two, row, mask)
    inside = X[near]
    f = (point[0] if 0 in known else inside[:, 0]) + inside[:, 1]
    assert v[0, 0] == pytest.approx(np.mean(f), abs=5 * np.std(f) / np.sqrt(len(f)) + 0.005)
    assert std_errors[0, 0] == 0


def test_what_is_known_is_not_averaged_and_two_numbers_settle_the_response():
    design = InformativeGaps()
    X = design.draw(20, seed=2)
    plan = all_coalitions(3)
    v, _ = design.true_values(sum_of_two, X, plan.masks, base_value=0.25)
    both = plan.masks[:, 0] & plan.masks[:, 1]
    np.testing.assert_allclose(v[both], np.broadcast_to(sum_of_two(X), v[both].shape))
    np.testing.assert_array_equal(v[0], 0.25)


def test_with_gaps_by_chance_a_gap_says_nothing():
    design = InformativeGaps(if_negative=0.4, if_positive=0.4)
    row = np.array([[0.7, -1.0, np.nan]])
    v, _ = design.true_values(
        sum_of_two, row, np.array([[True, False, True], [True, False, False], [False, False, True]])
    )
    assert v[0, 0] == pytest.approx(v[1, 0])
    assert v[2, 0] == pytest.approx(0.0)


def test_all_explained_rows_have_a_gap_and_training_rows_of_both_kinds_exist():
    problem = InformativeCell(200, 20).make_problem(0)
    assert problem.X["x3"].isna().all()
    assert 0.3 < problem.X_train["x3"].isna().mean() < 0.7
    assert problem.X_train[["x1", "x2"]].notna().all(axis=None)
