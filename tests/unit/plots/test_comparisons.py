"""MSEv of approaches: overall, row by row and by coalition size, with intervals over rows."""

import numpy as np
import pytest
from scipy.stats import t as student

from condshap import ValueTable, plots
from condshap.exceptions import OptionError
from condshap.plots.msev import _some, by_size

R = 30
MASKS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)


@pytest.fixture
def two(explain):
    """Two explanations of the same rows whose v(S) miss f by 1 and by 2 on average."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(R, 3))
    predictions = 10.0 + values.sum(axis=1)

    def make(miss, name):
        v = predictions + rng.normal(miss, 0.3, size=(8, R))
        v[0], v[-1] = 10.0, predictions
        table = ValueTable(MASKS, v, np.full((8, R), 0.1), 0)
        return explain(values, table=table, approach=name)

    return {"vaeac": make(1.0, "vaeac"), "independence": make(2.0, "independence")}


def per_row(one, coalitions=slice(1, -1)):
    v = one.value_table.values[coalitions]
    return ((one.predictions - v) ** 2 - 0.01).mean(axis=0)


def interval(values):
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def test_overall_shows_value_and_interval(two):
    ax = plots.msev(two)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["vaeac", "independence"]
    for line, one in enumerate(two.values()):
        span, mark = ax.lines[2 * line : 2 * line + 2]
        np.testing.assert_allclose(span.get_xdata(), interval(per_row(one)))
        np.testing.assert_allclose(mark.get_xdata(), per_row(one).mean())
        assert ax.texts[line].get_text() == f"{per_row(one).mean():.2f}"
    assert ax.get_xlabel() == "MSEv, 95 % interval"
    assert ax.lines[0].get_color() != ax.lines[2].get_color()
    narrow = plots.msev(two, level=0.5).lines[0].get_xdata()
    assert np.ptp(narrow) < np.ptp(ax.lines[0].get_xdata())


def test_rows_are_paired_differences_to_the_first(two):
    ax = plots.msev(two, by="row")
    change = per_row(two["independence"]) - per_row(two["vaeac"])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.sort(change))
    low, high = interval(change)
    (text,) = [entry.get_text() for entry in ax.get_legend().get_texts()]
    assert text == f"independence: +{change.mean():.2f} [+{low:.2f}, +{high:.2f}], smaller in 0% of rows"
    assert ax.get_ylabel() == "MSEv less that of vaeac"
    single = plots.msev(two["vaeac"], by="row")
    np.testing.assert_allclose(single.lines[0].get_ydata(), np.sort(per_row(two["vaeac"])))


def test_sizes_average_their_coalitions(two):
    sizes, criteria = by_size(two["vaeac"])
    assert sizes.tolist() == [1, 2]
    for part, criterion in zip((slice(1, 4), slice(4, 7)), criteria, strict=True):
        values = per_row(two["vaeac"], part)
        assert float(criterion) == pytest.approx(values.mean())
        np.testing.assert_allclose(criterion.interval(), interval(values))
    ax = plots.msev(two, by="size", names=["a", "b"])
    np.testing.assert_allclose(ax.containers[0].lines[0].get_ydata(), [float(c) for c in criteria])
    segment = ax.containers[0].lines[2][0].get_segments()[1]
    np.testing.assert_allclose(segment[:, 1], criteria[1].interval())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.get_xticks().tolist() == [1, 2]


def test_coalitions_that_not_all_rows_have_are_left_out(two):
    two["vaeac"].value_table.values[1, 0] = np.nan
    values = per_row(two["vaeac"], slice(2, 4))
    assert float(by_size(two["vaeac"])[1][0]) == pytest.approx(values.mean())


def test_one_row_has_no_interval_and_one_player_no_size(two, explain):
    ax = plots.msev({name: one[:1] for name, one in two.items()})
    assert ax.get_xlabel() == "MSEv of one row"
    assert plots.msev({name: one[:1] for name, one in two.items()}, by="row").get_legend() is not None
    assert plots.msev({name: one[:1] for name, one in two.items()}, by="size") is not None
    with pytest.raises(OptionError, match="at least two players"):
        plots.msev(explain(np.ones((3, 1))), by="size")
    with pytest.raises(OptionError, match="by must be"):
        plots.msev(two, by="column")


def test_outputs_are_added_up_or_chosen(two, explain):
    first, second = two.values()
    tables = [one.value_table for one in (first, second)]
    both = explain(
        np.stack([first.values, second.values], axis=2), outputs=["yes", "no"],
        table=ValueTable(MASKS, np.stack([t.values for t in tables], 2), np.stack([t.std_errors for t in tables], 2), 0),
    )  # fmt: skip
    assert plots.msev(both).lines[1].get_xdata()[0] == pytest.approx(float(first.msev) + float(second.msev))
    assert plots.msev(both, output="no").lines[1].get_xdata()[0] == pytest.approx(float(second.msev))
    assert plots.msev(first, output=0).lines[1].get_xdata()[0] == pytest.approx(float(first.msev))


def test_markers_of_rows_stand_apart_and_lines_that_meet_are_both_seen():
    for n, n_lines in ((5, 1), (50, 3), (5000, 4)):
        some = [_some(n, which, n_lines) for which in range(n_lines)]
        marked = [set(range(first, n, step)) for first, step in some]
        assert all(marked)
        assert len(set.union(*marked)) == sum(map(len, marked)), "no two lines have markers at the same place"
        assert max(map(len, marked)) <= max(12, n_lines)


def test_lines_by_row_differ_in_colour_marker_and_dashes(two):
    first, second = two.values()
    lines = plots.msev({"a": first, "b": second, "c": second}, by="row").get_lines()[:2]
    for look in ("get_color", "get_marker", "get_linestyle"):
        assert len({getattr(line, look)() for line in lines}) == 2, look


def test_panels_share_their_scale_if_asked_to(explain):
    values = np.array([[0.5, -2.0, 1.0], [1.5, 1.0, -3.0]])
    both = explain(np.stack([values, 10 * values], axis=2), outputs=["small", "large"])
    for plot, limits in ((plots.bar, "get_xlim"), (plots.beeswarm, "get_xlim")):
        own = [getattr(ax, limits)() for ax in plots.facet(plot, both)]
        shared = [getattr(ax, limits)() for ax in plots.facet(plot, both, share_scale=True)]
        assert own[0] != own[1]
        assert shared == [(min(low for low, _ in own), max(high for _, high in own))] * 2
    colours = [ax.images[0].get_clim() for ax in plots.facet(plots.heatmap, both, share_scale=True)]
    assert colours[0] == colours[1] == (-30.0, 30.0)
    with pytest.raises(OptionError, match="share_scale"):
        plots.facet(plots.bar, both, share_scale="all")
