"""Bar, waterfall, force and comparison: lengths, order, signs, errors and texts are those of the explanation."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from condshap import plots
from condshap.views.palette import LOWERS, NEUTRAL, RAISES

VALUES = np.array([[0.5, -2.0, 1.0, 0.0], [1.5, 1.0, -3.0, 0.25]])
ERRORS = np.array([[0.1, 0.2, 0.3, 0.0], [0.2, 0.3, 0.1, 0.0]])


@pytest.fixture
def one(explain):
    data = np.array([[1.0, 2.5, np.nan, 4.0], [5.0, 6.0, 7.0, 8.0]])
    return explain(VALUES, errors=ERRORS, data=data, names=["x0", "x1", "x2", "x3"])


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def error_lengths(ax):
    """Half the length of every error bar by its line."""
    found = {}
    for container in ax.containers:
        if container.__class__.__name__ == "ErrorbarContainer":
            for segment in container.lines[2][0].get_segments():
                found[round(float(segment[0, 1]), 6)] = (segment[1, 0] - segment[0, 0]) / 2
    return found


def colours(ax):
    return [to_hex(patch.get_facecolor()).upper() for patch in ax.patches]


def test_bars_of_one_row_are_its_values_by_size_with_signs(one):
    ax = plots.bar(one, 0)
    assert names(ax) == ["x1 = 2.5", "x2 = missing", "x0 = 1", "x3 = 4"]
    np.testing.assert_allclose([patch.get_width() for patch in ax.patches], [-2.0, 1.0, 0.5, 0.0])
    assert colours(ax) == [LOWERS, RAISES, RAISES, RAISES]
    assert [patch.get_hatch() or "" for patch in ax.patches] == ["////", "", "", ""]
    assert texts(ax) == ["−2.00", "+1.00", "+0.50", "0.00"]
    assert error_lengths(ax) == pytest.approx({0: 0.2, 1: 0.3, 2: 0.1})  # nothing random, no error bar
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first line is at the top


def test_bars_of_several_rows_are_mean_sizes(one):
    ax = plots.bar(one)
    assert names(ax) == ["x2", "x1", "x0", "x3"]
    np.testing.assert_allclose([patch.get_width() for patch in ax.patches], [2.0, 1.5, 1.0, 0.125])
    assert set(colours(ax)) == {NEUTRAL}
    assert texts(ax) == ["2.00", "1.50", "1.00", "0.13"]
    assert error_lengths(ax) == pytest.approx({0: 0.2, 1: 0.25, 2: 0.15})
    assert ax.get_xlabel() == "mean |Shapley value| of 2 rows"
    assert names(plots.bar(one, [1])) == ["x2 = 7", "x0 = 5", "x1 = 6", "x3 = 8"]


def test_many_players_are_folded(one):
    ax = plots.bar(one, 0, max_features=2)
    assert names(ax) == ["x1 = 2.5", "3 others"]
    np.testing.assert_allclose([patch.get_width() for patch in ax.patches], [-2.0, 1.5])
    assert error_lengths(ax) == pytest.approx({0: 0.2, 1: 0.2})  # the smaller of 0.1 + 0.3 and 0.2
    ax = plots.bar(one, max_features=2)
    np.testing.assert_allclose([patch.get_width() for patch in ax.patches], [2.0, 2.625])
    assert error_lengths(ax) == pytest.approx({0: 0.2, 1: 0.4})


def test_a_waterfall_goes_from_the_base_value_to_the_prediction(one):
    ax = plots.waterfall(one, 0)
    assert names(ax) == ["prediction = 9.50", "x1 = 2.5", "x2 = missing", "x0 = 1", "x3 = 4", "base value = 10.00"]
    bars = ax.patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], [-2.0, 1.0, 0.5, 0.0])
    starts = [bar.get_x() for bar in bars]
    np.testing.assert_allclose(starts, [11.5, 10.5, 10.0, 10.0])
    np.testing.assert_allclose([bar.get_y() + bar.get_height() / 2 for bar in bars], [1, 2, 3, 4])
    assert colours(ax) == [LOWERS, RAISES, RAISES, RAISES]
    ends = [start + bar.get_width() for start, bar in zip(starts, bars, strict=True)]
    assert ends[0] == pytest.approx(one.predictions[0])
    assert error_lengths(ax) == pytest.approx({1: 0.2, 2: 0.3, 3: 0.1})
    assert [text for text in texts(ax) if text] == ["−2.00", "+1.00", "+0.50", "0.00"]
    marks = next(line for line in ax.lines if line.get_marker() == "D")
    np.testing.assert_allclose(marks.get_xdata(), [9.5, 10.0])


def test_a_folded_waterfall_still_ends_at_the_prediction(one):
    ax = plots.waterfall(one, 1, max_features=3)
    assert names(ax)[1:-1] == ["x2 = 7", "x0 = 5", "2 others"]
    first, last = ax.patches[0], ax.patches[-1]
    assert first.get_x() + first.get_width() == pytest.approx(one.predictions[1])
    assert last.get_x() == pytest.approx(10.0)
    assert last.get_width() == pytest.approx(1.25)


def test_force_stacks_what_raises_left_of_the_prediction_and_what_lowers_right(one):
    ax = plots.force(one, 0)
    spans = {(round(p.get_x(), 6), round(p.get_x() + p.get_width(), 6)): p for p in ax.patches if p.get_width()}
    assert set(spans) == {(8.5, 9.5), (8.0, 8.5), (9.5, 11.5)}
    assert to_hex(spans[8.5, 9.5].get_facecolor()).upper() == RAISES
    assert to_hex(spans[9.5, 11.5].get_facecolor()).upper() == LOWERS
    assert spans[9.5, 11.5].get_hatch() == "////"
    found = [text.strip() for text in texts(ax)]
    assert "prediction = 9.50" in found
    assert "base value = 10.00" in found
    assert "2  x2 = missing  +1.00" in found
    assert "1  x1 = 2.5  −2.00" in found
    assert not any("x3" in text for text in found)  # 0 neither raises nor lowers


def test_the_scale_of_force_tells_its_marks_apart(explain):
    for values, base in (([[1e-5, -2e-5]], 10.0), ([[3e6, -1e6]], 0.0), ([[1.0, 2.0]], -5.0)):
        ax = plots.force(explain(values, base=base, errors=0.0))
        marks = [text.get_text() for text in ax.texts if text.get_va() == "top"]
        assert len(marks) > 2
        assert len(set(marks)) == len(marks)


def test_a_comparison_has_a_bar_for_each_approach(one, explain):
    other = explain(VALUES[:, ::-1], data=one.data, names=list(one.feature_names), approach="ctree")
    other.values[0] = [1.0, -1.0, -0.5, 0.0]
    ax = plots.compare([one, other], 0)
    assert names(ax) == ["x1 = 2.5", "x0 = 1", "x2 = missing", "x3 = 4"]
    np.testing.assert_allclose([p.get_width() for p in ax.patches], [-2, 0.5, 1, 0, -1, 1, -0.5, 0])
    heights = [p.get_y() for p in ax.patches]
    assert heights[0] < heights[4] < heights[1]  # beside each other, line by line
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["gaussian", "ctree"]
    assert ax.get_title() == "prediction = 9.50"
    assert {p.get_hatch() or "" for p in ax.patches[:4]} != {p.get_hatch() or "" for p in ax.patches[4:]}
    assert len(set(colours(ax))) == 2
    unsorted = plots.compare({"a": one, "b": other}, 0, sort=False, legend=False)
    assert names(unsorted) == ["x0 = 1", "x1 = 2.5", "x2 = missing", "x3 = 4"]
    assert unsorted.get_legend() is None


def test_axes_that_are_given_are_used(one):
    figure = Figure()
    ax = figure.subplots()
    assert plots.bar(one, ax=ax) is ax
    assert len(figure.axes) == 1


def test_force_fills_the_width_of_its_axes(one):
    ax = plots.force(one, 0)
    low, high = ax.get_xlim()
    ends = [end for patch in ax.patches for end in (patch.get_x(), patch.get_x() + patch.get_width())]
    assert (max(ends) - min(ends)) / (high - low) > 0.98


def test_axes_of_large_numbers_have_no_offset(one):
    large = replace(one, values=1e7 * one.values, base_values=1e7 * one.base_values, predictions=1e7 * one.predictions)
    for draw in (plots.waterfall, plots.beeswarm, plots.heatmap):
        ax = draw(large)
        ax.figure.canvas.draw()
        for axes in ax.figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                assert axis.get_offset_text().get_text() == ""
                assert not any(
                    "e" in text.get_text() and text.get_text()[:1].isdigit() for text in axis.get_ticklabels()
                )
