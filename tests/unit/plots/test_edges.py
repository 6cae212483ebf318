"""Odd explanations: one row, one feature, nothing to tell, groups, other tables; and nothing global is touched."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

from condshap import plots
from condshap.exceptions import OptionError

DRAWS = {
    "bar": plots.bar,
    "bar of a row": lambda one, **options: plots.bar(one, 0, **options),
    "waterfall": plots.waterfall,
    "beeswarm": plots.beeswarm,
    "force": plots.force,
    "heatmap": plots.heatmap,
    "scatter": lambda one, **options: plots.scatter(one, 0, **options),
    "scatter in colour": lambda one, **options: plots.scatter(one, 0, color=len(one.player_names) - 1, **options),
    "compare": lambda one, **options: plots.compare([one, one], **options),
}
EVERY = pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))


@EVERY
@pytest.mark.parametrize(("shape", "scale"), [((1, 1), 0.0), ((1, 1), 1e9), ((1, 5), 1e-9), ((20, 1), 0.0)])
def test_small_explanations_can_be_drawn(explain, draw, shape, scale):
    ax = draw(explain(scale * np.random.default_rng(0).normal(size=shape), errors=0.1 * scale))
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()
    assert np.ptp(ax.get_xlim()) > 0
    assert np.ptp(ax.get_ylim()) != 0
    if shape == (1, 1):
        ax.figure.draw_without_rendering()


@pytest.fixture
def poor(explain):
    """Columns that are constant or have no value at all."""
    data = pd.DataFrame({"same": [1.0] * 6, "gone": [np.nan] * 6, "none": pd.Categorical([None] * 6, ["a"])})
    data["level"] = "x"
    return explain(np.ones((6, 4)), data=data, names=list(data))


@EVERY
def test_constant_columns_and_columns_without_a_value_can_be_drawn(poor, draw):
    draw(poor).figure.draw_without_rendering()


@pytest.mark.parametrize("feature", ["same", "gone", "none", "level"])
def test_poor_columns_can_be_scattered_and_colour_points(poor, feature):
    for color in ("gone", "none"):
        ax = plots.scatter(poor, feature, color=color)
        assert sum(len(c.get_offsets()) for c in ax.collections) == 6
    ax.figure.draw_without_rendering()


@EVERY
def test_other_tables_give_the_same_picture(explain, draw):
    frame = pd.DataFrame({"n": [1.0, np.nan, 3.0], "c": ["a", "b", None]})
    values = np.arange(6.0).reshape(3, 2)
    pictures = []
    for data in (frame, pl.from_pandas(frame)):
        ax = draw(explain(values, data=data, names=["n", "c"]))
        pictures.append([text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)])
        plt.close(ax.figure)
    assert pictures[0] == pictures[1]


def test_arrays_have_generated_names(explain):
    ax = plots.bar(explain([[1.0, 2.0]], data=np.array([[7.0, 8.0]]), names=["x0", "x1"]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x1 = 8", "x0 = 7"]


def test_groups_are_shown_without_a_value(explain):
    one = explain([[1.0, -2.0]], groups={"pair": [0, 2], "single": [1]}, data=np.array([[7.0, 8.0, 9.0]]))
    for ax in (plots.bar(one), plots.waterfall(one)):
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert "pair" in names
        assert "single = 8" in names
    assert any("  pair  +1.00" in text.get_text() for text in plots.force(one).texts)
    assert len(plots.beeswarm(one).collections) >= 2


@EVERY
def test_nothing_global_changes_and_given_axes_make_no_figure(explain, draw):
    one = explain(np.random.default_rng(0).normal(size=(12, 4)))
    before = dict(matplotlib.rcParams)
    assert not plt.get_fignums()
    ax = draw(one)
    assert plt.get_fignums() == [ax.figure.number]
    plt.close("all")
    figure = matplotlib.figure.Figure(layout="constrained")
    assert draw(one, ax=figure.subplots()).figure is figure
    free = matplotlib.figure.Figure()
    assert draw(one, ax=free.add_axes((0.2, 0.2, 0.7, 0.7))).figure is free
    free.draw_without_rendering()
    assert not plt.get_fignums()
    assert dict(matplotlib.rcParams) == before


def test_names_of_users_are_never_mathematics(explain):
    data = pd.DataFrame({"$\\alpha_{": ["$x$"], "50 % $ off $": [1.0]})
    one = explain([[1.0, 2.0]], data=data, names=list(data), outputs=["$y"])
    for draw in DRAWS.values():
        draw(one).figure.draw_without_rendering()  # broken mathematics would raise
    label = plots.bar(one).get_yticklabels()[1].get_text()
    assert label == r"\$\alpha_{ = \$x\$"


def test_names_with_an_underscore_are_in_legends(explain):
    one = explain(np.ones((3, 2)))
    for ax in (
        plots.compare([one, one], names=["_a", "_b"]),
        plots.conditional_samples(one.data, {"_a": one.data, "_b": one.data}, "feature 0", "feature 1"),
    ):
        texts = [text.get_text().strip() for text in ax.get_legend().get_texts()]
        assert texts[-2:] == ["_a", "_b"]


@pytest.mark.parametrize("name", ["bar", "waterfall", "beeswarm", "force", "heatmap"])
def test_a_facet_has_a_panel_per_output(explain, name):
    values = np.random.default_rng(0).normal(size=(5, 3, 3))
    one = explain(values, outputs=["a", "b", "c"])
    draw = getattr(plots, name)
    axes = plots.facet(draw, one)
    assert axes.shape == (3,)
    figure = axes[0].figure
    figure.draw_without_rendering()
    titles = {ax.get_title() for ax in figure.axes} - {""}
    assert titles == {"a", "b", "c"}
    assert len(plt.get_fignums()) == 1
    assert plots.facet(draw, one, outputs=["c"]).shape == (1,)


def test_a_facet_passes_options_on_and_refuses_what_it_decides(explain):
    one = explain(np.random.default_rng(0).normal(size=(5, 3, 2)), outputs=["a", "b"])
    axes = plots.facet(plots.bar, one, 2, max_features=2, columns=1)
    widths = [sorted(abs(p.get_width()) for p in ax.patches)[-1] for ax in axes]
    best = np.abs(one.values[2]).max(axis=0)
    assert all(width >= largest - 1e-12 for width, largest in zip(widths, best, strict=True))
    assert all(len(ax.get_yticklabels()) == 2 for ax in axes)
    plots.facet(plots.compare, [one, one], row=1)
    plots.facet(plots.scatter, one, "feature 1")
    with pytest.raises(OptionError, match="pass outputs"):
        plots.facet(plots.bar, one, output="a")
    with pytest.raises(OptionError, match="at least one"):
        plots.facet(plots.bar, one, outputs=[])
