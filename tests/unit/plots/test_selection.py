"""What a plot shows: one output, known rows, players folded into others with an error that is a bound."""

import numpy as np
import pandas as pd
import pytest

from condshap import plots
from condshap.exceptions import OptionError
from condshap.plots.selection import find_rows, make_lines, named, one_output

TWO = np.stack([np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[-1.0, 2.0], [-3.0, -4.0]])], axis=2)


def test_an_output_is_chosen_by_name_or_position(explain):
    both = explain(TWO, outputs=["yes", "no"])
    np.testing.assert_array_equal(one_output(both, "no").values, TWO[..., 1])
    np.testing.assert_array_equal(one_output(both, 0).values, TWO[..., 0])
    assert one_output(both, "no").output == "no"
    assert one_output(explain(TWO[..., 0])).output is None


@pytest.mark.parametrize(
    "draw", [plots.bar, plots.waterfall, plots.beeswarm, plots.force, plots.heatmap, plots.compare]
)
def test_several_outputs_must_be_chosen_and_the_error_names_them(explain, draw):
    both = explain(TWO, outputs=["yes", "no"])
    with pytest.raises(OptionError, match=r"\['yes', 'no'\].*plots\.facet"):
        draw([both] if draw is plots.compare else both)
    with pytest.raises(OptionError, match="got 'perhaps'"):
        draw([both] if draw is plots.compare else both, output="perhaps")


def test_lines_are_by_importance_and_the_rest_is_added_up():
    lines = make_lines(np.array([1.0, 5.0, 3.0, 2.0]), 3)
    assert lines.shown.tolist() == [1, 2]
    np.testing.assert_array_equal(lines.add_up(np.array([10.0, 20.0, 30.0, 40.0])), [20, 30, 50])
    assert lines.label(["a", "b", "c", "d"]) == ["b", "c", "2 others"]
    assert make_lines(np.array([1.0, 5.0, 3.0]), 3).rest.tolist() == []
    assert make_lines(np.array([1.0, 5.0, 3.0, 0.0]), 4, sort=False).shown.tolist() == [0, 1, 2, 3]
    assert make_lines(np.zeros(3), 12).shown.tolist() == [0, 1, 2]


def test_the_error_of_others_is_a_bound_that_holds():
    """Errors that add up to 0 over players, as those of Shapley values do: the sum of the rest never errs by more."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        mixing = rng.normal(size=(6, 6))
        covariance = mixing @ mixing.T
        centre = np.eye(6) - 1 / 6
        covariance = centre @ covariance @ centre
        errors = np.sqrt(np.diag(covariance))
        lines = make_lines(rng.uniform(size=6), 4)
        true = np.sqrt(covariance[np.ix_(lines.rest, lines.rest)].sum())
        bound = lines.bound_errors(errors)
        np.testing.assert_array_equal(bound[:-1], errors[lines.shown])
        assert true <= bound[-1] + 1e-12
        assert bound[-1] == pytest.approx(min(errors[lines.rest].sum(), errors[lines.shown].sum()))


def test_rows_are_positions_slices_lists_or_masks():
    four = pd.RangeIndex(4)
    assert find_rows(four, None).tolist() == [0, 1, 2, 3]
    assert find_rows(four, -1).tolist() == [3]
    assert find_rows(four, slice(1, 3)).tolist() == [1, 2]
    assert find_rows(four, np.array([True, False, True, False])).tolist() == [0, 2]
    for bad in (7, [0, 9], slice(4, 4), []):
        with pytest.raises(OptionError, match="4"):
            find_rows(four, bad)


@pytest.mark.parametrize("draw", [plots.waterfall, plots.force])
def test_rows_outside_are_refused(explain, draw):
    one = explain(TWO[..., 0])
    with pytest.raises(OptionError, match="row must be a position below 2"):
        draw(one, 2)
    assert draw(one, -1) is not None


def test_explanations_have_names_of_their_own(explain):
    a, b = explain(TWO[..., 0], approach="ctree"), explain(TWO[..., 0], approach="vaeac")
    assert list(named([a, b])) == ["ctree", "vaeac"]
    assert list(named([a, a])) == ["ctree", "ctree (2)"]
    assert list(named({"mine": a})) == ["mine"]
    assert list(named([a, b], ["x", "y"])) == ["x", "y"]
    assert list(named(a)) == ["ctree"]
    with pytest.raises(OptionError, match="one entry for each of 2"):
        named([a, b], ["x"])
    with pytest.raises(OptionError, match="at least one Explanation"):
        named([])


def test_comparisons_need_the_same_rows(explain):
    with pytest.raises(OptionError, match="same rows"):
        plots.compare([explain(TWO[..., 0]), explain(TWO[..., 1])])


@pytest.mark.parametrize("where", ["values", "predictions", "base_values"])
@pytest.mark.parametrize("draw", [plots.bar, plots.waterfall, plots.beeswarm, plots.force, plots.heatmap])
def test_numbers_that_are_not_finite_are_refused_with_their_rows(explain, draw, where):
    one = explain(TWO[..., 0])
    getattr(one, where)[1] = np.nan
    with pytest.raises(OptionError, match=r"must be finite.*rows \[1\]"):
        draw(one)


def test_what_is_no_explanation_is_refused(explain):
    with pytest.raises(OptionError, match="needs an Explanation, got ndarray"):
        plots.bar(TWO)
    with pytest.raises(OptionError, match="at least one row"):
        plots.bar(explain(TWO[..., 0])[:0])
    with pytest.raises(OptionError, match="max_features must be an integer of at least 2"):
        plots.bar(explain(TWO[..., 0]), max_features=1)
