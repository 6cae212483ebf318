"""Beeswarm, scatter and heatmap: points stand where the values are, and colours mean what the legend says."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from condshap import plots
from condshap.exceptions import OptionError
from condshap.plots.beeswarm import PLAIN, shades_of
from condshap.plots.style import low_to_high

R = 40


@pytest.fixture
def one(explain):
    rng = np.random.default_rng(3)
    size = rng.normal(size=R)
    size[5] = np.nan
    data = pd.DataFrame({"size": size, "kind": pd.Categorical(rng.choice(["b", "a"], R), ["b", "a", "unused"])})
    data["same"] = 1.0
    return explain(rng.normal(size=(R, 3)) * [1, 3, 0.1], data=data, names=list(data))


def points(collection):
    return np.asarray(collection.get_offsets())


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_a_swarm_has_every_row_of_every_player(one):
    ax = plots.beeswarm(one)
    assert names(ax.yaxis) == ["kind", "size", "same"]
    for line, player in enumerate((1, 0, 2)):
        found = [points(c) for c in ax.collections if len(points(c)) and round(points(c)[:, 1].mean()) == line]
        found = np.concatenate(found)
        np.testing.assert_allclose(np.sort(found[:, 0]), np.sort(one.values[:, player]))
        assert np.abs(found[:, 1] - line).max() <= 0.4


def test_a_swarm_is_coloured_by_value_and_grey_where_there_is_none(one):
    ax = plots.beeswarm(one)
    kind, missing, size, same = ax.collections
    assert to_hex(kind.get_facecolor()[0]).upper() == PLAIN
    assert len(points(missing)) == 1
    assert to_hex(missing.get_facecolor()[0]) == "#ffffff"
    ax.figure.canvas.draw()
    present = one.data["size"].dropna().to_numpy()
    dark, bright = (to_hex(size.get_facecolor()[i]) for i in (present.argmin(), present.argmax()))
    assert (dark, bright) == (to_hex(low_to_high()(0.0)), to_hex(low_to_high()(1.0)))
    assert len({to_hex(c) for c in same.get_facecolor()}) == 1
    (bar,) = [axes for axes in ax.figure.axes if axes is not ax]
    assert names(bar.yaxis) == ["low", "high"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["missing"]


def test_others_of_a_swarm_are_row_sums(one):
    ax = plots.beeswarm(one, max_features=2)
    assert names(ax.yaxis) == ["kind", "2 others"]
    np.testing.assert_allclose(points(ax.collections[-1])[:, 0], one.values[:, [0, 2]].sum(axis=1))


def test_shades_run_between_quantiles():
    numbers = np.append(np.arange(101.0), np.nan)
    shades = shades_of(numbers)
    np.testing.assert_allclose(shades[[0, 5, 50, 95, 100]], [0, 0, 0.5, 1, 1])
    assert np.isnan(shades[-1])
    assert shades_of(np.array([2.0, 2.0])).tolist() == [0.5, 0.5]
    assert shades_of(np.array([0.0] * 99 + [1.0])).max() == 1.0  # quantiles are equal, the ends are not


def test_a_scatter_plot_has_values_across_and_shapley_values_up(one):
    ax = plots.scatter(one, "size")
    found = points(ax.collections[0])
    np.testing.assert_allclose(found[:, 1], one.values[:, 0])
    present = one.data["size"].notna().to_numpy()
    np.testing.assert_allclose(found[present, 0], one.data["size"][present])
    assert ax.get_xlabel() == "size"
    assert ax.get_ylabel() == "Shapley value"


def test_missing_values_have_a_strip_of_their_own(one):
    ax = plots.scatter(one, "size")
    (place,) = ax.get_xticks(minor=True)
    assert [label.get_text() for label in ax.get_xticklabels(minor=True)] == ["missing"]
    assert place > np.nanmax(one.data["size"])
    assert points(ax.collections[0])[5, 0] == pytest.approx(place)
    assert ax.get_xticks().max() < place
    assert not len(plots.scatter(one, "same").get_xticks(minor=True))


def test_the_histogram_counts_the_rows_below_the_points(one):
    ax = plots.scatter(one, "size")
    bars = ax.patches
    heights = np.array([bar.get_height() for bar in bars])
    counts = heights / heights[-1]  # the last bar counts the one missing value
    edges = [bar.get_x() for bar in bars[:-1]] + [bars[-2].get_x() + bars[-2].get_width()]
    np.testing.assert_allclose(counts[:-1], np.histogram(one.data["size"].dropna(), edges)[0], atol=1e-9)
    assert counts.sum() == pytest.approx(R)
    ax.figure.canvas.draw()
    lowest = ax.transData.transform(points(ax.collections[0]))[:, 1].min()
    assert max(bar.get_window_extent().y1 for bar in bars) < lowest
    assert min(ax.get_yticks()) >= one.values[:, 0].min() - 0.3


def test_levels_are_strips_in_their_order_with_counts(one):
    ax = plots.scatter(one, "kind")
    assert names(ax.xaxis) == ["b", "a"]
    found = points(ax.collections[0])
    codes = one.data["kind"].cat.codes.to_numpy()
    np.testing.assert_array_equal(np.round(found[:, 0]), codes)
    np.testing.assert_allclose(found[:, 1], one.values[:, 1])
    heights = [bar.get_height() for bar in ax.patches]
    assert heights[0] / heights[1] == pytest.approx((codes == 0).sum() / (codes == 1).sum())


def test_many_levels_share_the_last_strip(explain):
    levels = [f"level {i}" for i in range(20)]
    data = pd.DataFrame({"city": pd.Categorical(levels * 2 + levels[8:] * 3, levels)})
    ax = plots.scatter(explain(np.ones((len(data), 1)), data=data, names=["city"]), 0)
    assert names(ax.xaxis) == [*levels[8:19], "9 others"]
    assert (np.round(points(ax.collections[0])[:8, 0]) == 11).all()


def test_a_scatter_plot_is_coloured_by_another_feature(one):
    ax = plots.scatter(one, "same", color="size")
    missing, present = ax.collections[:2]
    assert len(points(missing)) == 1
    np.testing.assert_allclose(present.get_array(), one.data["size"].dropna())
    assert [axes.get_ylabel() for axes in ax.figure.axes if axes is not ax] == ["size"]
    ax = plots.scatter(one, "size", color="kind")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["b", "a"]
    assert ax.get_legend().get_title().get_text() == "kind"
    assert [len(points(c)) for c in ax.collections[1:]] == one.data["kind"].value_counts()[["b", "a"]].tolist()


def test_groups_have_no_value_to_scatter(explain):
    grouped = explain(np.ones((3, 2)), groups={"pair": [0, 2], "single": [1]})
    with pytest.raises(OptionError, match="group 'pair'"):
        plots.scatter(grouped, "pair")
    with pytest.raises(OptionError, match="one of"):
        plots.scatter(grouped, "nobody")
    assert plots.scatter(grouped, "single").get_xlabel() == "column 1"


def test_a_heatmap_is_ordered_by_prediction_and_size(one):
    ax = plots.heatmap(one)
    (image,) = ax.images
    order = np.argsort(one.predictions)
    np.testing.assert_allclose(image.get_array(), one.values[order][:, [1, 0, 2]].T)
    assert image.norm.vmin == -image.norm.vmax == -np.abs(one.values).max()
    assert names(ax.yaxis) == ["kind", "size", "same"]
    above = next(axes for axes in ax.figure.axes if axes.get_ylabel() == "prediction")
    np.testing.assert_allclose(above.lines[0].get_ydata(), np.sort(one.predictions))
    assert not ax.texts


def test_a_small_heatmap_has_its_numbers(one):
    ax = plots.heatmap(one[:4])
    order = np.argsort(one.predictions[:4])
    assert names(ax.xaxis) == [str(row) for row in order]
    written = np.array([float(text.get_text().replace("−", "-")) for text in ax.texts]).reshape(3, 4)
    np.testing.assert_allclose(written, ax.images[0].get_array(), atol=0.006)
