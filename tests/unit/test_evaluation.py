"""Criteria on tables small enough to compute by hand."""

import numpy as np
import pytest

import condshap as cs
from condshap.evaluation import ec1, ec2, ec3
from condshap.exceptions import OptionError


def test_ec1_is_the_mean_absolute_error_over_features_and_rows():
    found = ec1(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[2.0, 0.0], [0.0, -1.0]]))
    assert found.per_row.tolist() == [1.5, 0.5]
    assert float(found) == 1.0
    assert found.std_error == pytest.approx(np.sqrt(0.5) / np.sqrt(2))  # deviation sqrt(0.5) over two rows


def test_ec1_with_probabilities_weighs_the_rows():
    true, estimated = np.zeros((2, 2)), np.array([[3.0, 0.0], [0.0, -1.0]])
    found = ec1(true, estimated, weights=np.array([0.75, 0.25]))
    assert float(found) == 0.75 * 1.5 + 0.25 * 0.5
    assert float(ec1(true, estimated, weights=np.array([3.0, 1.0]))) == float(found)


def test_equal_weights_change_nothing():
    rng = np.random.default_rng(0)
    true, estimated = rng.random((2, 20, 3))
    plain, weighted = ec1(true, estimated), ec1(true, estimated, weights=np.full(20, 7.0))
    assert weighted.value == pytest.approx(plain.value)
    assert weighted.std_error == pytest.approx(plain.std_error)
    assert plain.std_error == pytest.approx(plain.per_row.std(ddof=1) / np.sqrt(20))


def test_ec2_is_the_mean_squared_error_over_coalitions_and_rows():
    v_true = np.array([[1.0, 2.0], [3.0, 4.0]])
    v = np.array([[0.0, 2.0], [3.0, 2.0]])
    found = ec2(v_true, v)
    assert found.per_row.tolist() == [0.5, 2.0]
    assert float(found) == 1.25


def test_ec2_takes_off_the_variance_of_sampling_and_counts_repeated_coalitions():
    v_true = np.array([[1.0, 2.0], [3.0, 4.0]])
    v = np.array([[0.0, 2.0], [3.0, 2.0]])
    assert float(ec2(v_true, v, std_errors=np.full((2, 2), 0.5))) == 1.0
    assert ec2(v_true, v, coalition_weights=np.array([3.0, 1.0])).per_row.tolist() == [0.75, 1.0]


def test_ec3_compares_contributions_with_the_prediction():
    found = ec3(np.array([1.0, 2.0]), np.array([[0.0, 2.0], [3.0, 2.0]]))
    assert found.per_row.tolist() == [2.5, 0.0]
    assert float(found) == 1.25


def test_ec3_less_the_ec3_of_the_truth_is_ec2_on_average():
    """Eq. (11) of the paper, exact here: two equally likely rows that cannot be told apart by what is known."""
    predictions, v_true, v = np.array([1.0, 3.0]), np.array([[2.0, 2.0]]), np.array([[2.5, 2.5]])
    assert float(ec3(predictions, v)) - float(ec3(predictions, v_true)) == float(ec2(v_true, v))


def test_a_single_row_has_no_standard_error():
    assert np.isnan(ec1(np.zeros((1, 2)), np.ones((1, 2))).std_error)


def test_tables_of_different_shapes_and_bad_weights_are_refused():
    with pytest.raises(OptionError, match="same shape"):
        ec1(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(OptionError, match="weights"):
        ec1(np.zeros((2, 2)), np.zeros((2, 2)), weights=np.array([1.0, -1.0, 3.0]))
    with pytest.raises(OptionError, match="weights"):
        ec1(np.zeros((2, 2)), np.zeros((2, 2)), weights=np.array([2.0, -1.0]))
    with pytest.raises(OptionError, match="not all 0"):
        ec1(np.zeros((2, 2)), np.zeros((2, 2)), weights=np.zeros(2))
    with pytest.raises(OptionError, match="same shape"):
        ec3(np.zeros(3), np.zeros((4, 2)))


def test_coalition_weights_leave_every_coalition_its_own_error():
    v_true, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [3.0, 2.0]])
    found = ec2(v_true, v, coalition_weights=np.array([3.0, 1.0]), weights=np.array([1.0, 3.0]))
    assert found.per_coalition.tolist() == [0.25, 3.0]
    assert float(found) == 0.25 * 0.75 + 0.75 * 1.0


def test_several_outputs_are_summed_and_their_standard_error_is_that_of_the_sum():
    true, estimated = np.zeros((2, 1, 2)), np.array([[[1.0, 4.0]], [[3.0, 2.0]]])
    found = ec1(true, estimated)
    assert found.value.tolist() == [2.0, 3.0]
    assert float(found) == 5.0
    np.testing.assert_allclose(found.std_error, [1.0, 1.0])
    assert found.total_std_error() == 0.0  # what one output gains the other loses
    assert found.interval() == (5.0, 5.0)


def test_weights_reach_the_interval():
    true, estimated, weights = np.zeros((3, 1)), np.array([[1.0], [2.0], [4.0]]), np.array([2.0, 1.0, 1.0])
    found = ec1(true, estimated, weights=weights)
    assert found.total_std_error() == pytest.approx(float(found.std_error))
    low, high = found.interval(0.95)
    assert high - float(found) == pytest.approx(4.302653 * float(found.std_error))  # t with 2 degrees of freedom
    assert low == 0.0  # an absolute error is not negative, whatever the formula says


def test_ec3_is_the_msev_of_an_explanation():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    explanation = cs.explain(lambda x: x[:, 0] * x[:, 1] + x[:, 2], X, X[:5], approach="gaussian")
    table = explanation.value_table
    found = ec3(explanation.predictions, table.values[1:-1], std_errors=table.std_errors[1:-1])
    assert float(found) == float(explanation.msev)
    np.testing.assert_array_equal(found.per_coalition, explanation.msev.per_coalition)
