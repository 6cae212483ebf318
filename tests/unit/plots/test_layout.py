"""Nothing overlaps and nothing is cut: for 3, 12 and 60 features, with names of 40 characters."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import condshap as cs
from condshap import plots

SIZES = pytest.mark.parametrize(("n_features", "long_names"), [(3, False), (3, True), (12, True), (60, True)])
NAMES = pytest.mark.parametrize("long_names", [False, True], ids=["short", "long"])
LISTS = {
    "bar": plots.bar,
    "bar of a row": lambda one, **options: plots.bar(one, 1, **options),
    "waterfall": lambda one, **options: plots.waterfall(one, 1, **options),
    "beeswarm": plots.beeswarm,
    "force": lambda one, **options: plots.force(one, 1, **options),
    "heatmap": plots.heatmap,
    "heatmap of few": lambda one, **options: plots.heatmap(one[:10], **options),
    "horizons": lambda one, **options: plots.horizons(one, 1, **options),
    "compare": lambda one, **options: plots.compare([one, one, one], 1, names=["one", "two", "three"], **options),
}
TOLERANCE = 0.5  # pixels


def texts_of(figure: Figure) -> Iterator[Text]:
    """Texts that are drawn: those of ticks only where the tick is inside the axes."""
    for ax in figure.axes:
        if not ax.axison:
            yield from ax.texts
            continue
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-6 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if low - room <= tick.get_loc() <= high + room:
                    yield from (tick.label1, tick.label2)
            yield axis.label
        yield from (ax.title, ax._left_title, ax._right_title)
        yield from ax.texts
        if ax.get_legend() is not None:
            yield from ax.get_legend().get_texts()
            yield ax.get_legend().get_title()
    for legend in figure.legends:
        yield from legend.get_texts()


def check_layout(figure: Figure) -> None:
    """Every text is inside the figure and apart from all others."""
    figure.draw_without_rendering()
    texts = [text for text in texts_of(figure) if text.get_visible() and text.get_text().strip()]
    assert len(texts) > 3
    boxes = np.array([text.get_window_extent(figure.canvas.get_renderer()).extents for text in texts])
    low, high = boxes[:, :2] + TOLERANCE, boxes[:, 2:] - TOLERANCE
    cut = (low < 0).any(axis=1) | (high > figure.bbox.extents[2:]).any(axis=1)
    assert [texts[i].get_text() for i in np.flatnonzero(cut)] == []
    meet = ((low[:, None] < high) & (low < high[:, None])).all(axis=2)
    first, second = np.nonzero(np.triu(meet, 1))
    assert [(texts[i].get_text(), texts[j].get_text()) for i, j in zip(first, second, strict=True)][:5] == []


def test_the_check_finds_texts_that_overlap_or_are_cut():
    for place in ((0.5, 0.5), (0.99, 0.2)):
        figure = plt.figure()
        ax = figure.subplots()
        ax.text(0.5, 0.5, "first text")
        ax.text(*place, "second text, quite long")
        with pytest.raises(AssertionError, match="second text"):
            check_layout(figure)


@pytest.mark.parametrize("name", plots.__all__)
def test_every_plot_is_drawn_by_make_plots(name):
    source = Path(__file__).parents[3] / "docs" / "all_plots.py"
    assert f"cs.plots.{name}(" in source.read_text()


@SIZES
@pytest.mark.parametrize("name", LISTS)
def test_lists(explain_wide, name, n_features, long_names):
    one = explain_wide(n_features, long_names=long_names)
    check_layout(LISTS[name](one).figure)


@pytest.mark.parametrize("name", LISTS)
def test_lists_with_every_feature_on_a_line(explain_wide, name):
    one = explain_wide(60, long_names=True)
    check_layout(LISTS[name](one, max_features=60).figure)


@pytest.mark.parametrize("name", ["bar", "waterfall", "beeswarm", "force", "heatmap", "compare"])
def test_facets(explain_wide, name):
    one = explain_wide(12, long_names=True)
    values = np.stack([one.values, -one.values, 2 * one.values], axis=2)
    several = cs.Explanation(
        values, np.stack([one.base_values] * 3, 1), np.stack([one.predictions] * 3, 1), 0.1 * np.abs(values),
        one.value_table, one.data, one.feature_names, one.player_names, ("low", "middle", "h" * 60), one.membership,
        one.provenance,
    )  # fmt: skip
    draw = getattr(plots, name)
    check_layout(plots.facet(draw, [several, several] if name == "compare" else several)[0].figure)


@NAMES
@pytest.mark.parametrize(("feature", "color"), [(0, None), (1, None), (2, 1), (1, 0), (0, 1), (0, 0)])
def test_scatter(explain_wide, feature, color, long_names):
    check_layout(plots.scatter(explain_wide(3, long_names=long_names), feature, color=color).figure)


def test_scatter_of_many_long_levels(explain):
    levels = [f"a level with a long name, number {i}" for i in range(20)]
    data = pd.DataFrame({"city": levels * 3, "n": np.arange(60.0)})
    one = explain(np.random.default_rng(0).normal(size=(60, 2)), data=data, names=list(data))
    check_layout(plots.scatter(one, "city").figure)
    check_layout(plots.scatter(one, "n", color="city").figure)


@pytest.mark.parametrize("by", ["overall", "row", "size"])
def test_msev(explain, by):
    masks = np.array([[i >> j & 1 for j in range(4)] for i in range(16)], dtype=bool)
    masks = masks[np.argsort(masks.sum(axis=1), kind="stable")]
    rng = np.random.default_rng(0)
    table = cs.ValueTable(masks, rng.normal(size=(16, 30)), np.zeros((16, 30)), 0)
    one = explain(np.ones((30, 4)), table=table)
    names = [f"an approach with a long name: {'x' * i}" for i in range(5)]
    check_layout(plots.msev([one] * 5, by=by, names=names).figure)


def tables(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(n)
    real = pd.DataFrame({f"{'A long name of a column':_<37} {j:02d}": rng.normal(size=80) for j in range(n)})
    real.iloc[::9, 1] = np.nan
    real["kind"] = rng.choice(["red", "green", "blue"], 80)
    return real, real.sample(frac=1.0, random_state=1)


def test_conditional_samples():
    real, drawn = tables(3)
    a, b, c = list(real)[:3]
    names = ["independence", "ctree", "an approach with a rather long name"]
    for x, y in ((a, b), (b, c), ("kind", a), (c, "kind")):
        check_layout(plots.conditional_samples(real, dict.fromkeys(names, drawn[:9]), x, y, point=real[:1]).figure)


@pytest.mark.parametrize("n", [3, 12])
def test_pairs(n):
    real, drawn = tables(n)
    check_layout(plots.pairs(real, drawn)[0, 0].figure)
    check_layout(plots.pairs(real, drawn, features=["kind", list(real)[1]])[0, 0].figure)


def test_training_curves():
    climb = np.linspace(-1e4, 10.0, 50)[:, None] + np.zeros(6)
    history = SimpleNamespace(
        vlb=climb, validated=np.arange(2, 52, 2), iwae=climb[1::2], kl=np.ones((25, 6, 8)), best_epoch=np.full(6, 50.0)
    )
    check_layout(plots.training_curves(SimpleNamespace(history=history)).figure)
