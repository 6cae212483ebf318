"""Samples against training rows, generated against real rows, and the curves of a training."""

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap import plots
from condshap.exceptions import NotFittedError, OptionError

RNG = np.random.default_rng(1)
TRAIN = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60), "c": RNG.choice(["x", "y"], 60)})
DRAWN = TRAIN[:20].assign(b=0.5)


def points(collection):
    return np.asarray(collection.get_offsets())


def test_samples_stand_among_the_training_rows():
    ax = plots.conditional_samples(TRAIN, {"ctree": DRAWN, "vaeac": DRAWN[:7]}, "b", "a", point=TRAIN[3:4])
    train, ctree, vaeac, star = ax.collections
    np.testing.assert_allclose(points(train), TRAIN[["b", "a"]])
    np.testing.assert_allclose(points(ctree), DRAWN[["b", "a"]])
    assert len(points(vaeac)) == 7
    np.testing.assert_allclose(points(star), TRAIN.loc[[3], ["b", "a"]])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["training rows", "ctree", "vaeac", "explained row"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b", "a")
    assert not np.allclose(ctree.get_facecolor(), vaeac.get_facecolor())


def test_samples_at_one_height_stand_apart():
    ax = plots.conditional_samples(TRAIN, {"ctree": DRAWN, "vaeac": DRAWN}, "a", "b")
    _, ctree, vaeac = ax.collections
    assert (points(vaeac)[:, 1] == 0.5).all()
    np.testing.assert_allclose(points(ctree)[:, 1], 0.5 + 0.02 * np.ptp(TRAIN["b"]))
    flat = plots.conditional_samples(TRAIN, {"ctree": DRAWN, "vaeac": DRAWN}, "a", "b", shift=0.0)
    assert (points(flat.collections[1])[:, 1] == 0.5).all()


def test_levels_are_strips_and_any_table_will_do():
    import polars as pl

    ax = plots.conditional_samples(pl.from_pandas(TRAIN), pl.from_pandas(DRAWN), "c", "a", point={"c": "y", "a": 1.0})
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y"]
    np.testing.assert_array_equal(np.round(points(ax.collections[0])[:, 0]), TRAIN["c"] == "y")
    np.testing.assert_allclose(points(ax.collections[-1]), [[1.0, 1.0]])
    array = TRAIN[["a", "b"]].to_numpy()
    assert plots.conditional_samples(array, array[:5], "x0", "x1").get_xlabel() == "x0"


def test_samples_refuse_columns_that_are_not_there():
    with pytest.raises(OptionError, match="'z' must be a column"):
        plots.conditional_samples(TRAIN, DRAWN, "a", "z")
    with pytest.raises(OptionError, match="point must be one row, got 2"):
        plots.conditional_samples(TRAIN, DRAWN, "a", "b", point=TRAIN[:2])
    with pytest.raises(OptionError, match="'c' must hold levels"):
        plots.conditional_samples(TRAIN, DRAWN.assign(c=1.0), "c", "b")


def test_pairs_have_points_below_shares_on_and_correlations_above_the_diagonal():
    generated = TRAIN[::-1].assign(b=TRAIN["a"] * 2).reset_index(drop=True)
    generated.loc[0, "a"] = np.nan
    grid = plots.pairs(TRAIN, generated)
    assert grid.shape == (3, 3)
    real, made = grid[1, 0].collections
    np.testing.assert_allclose(points(real), TRAIN[["a", "b"]])
    assert len(points(made)) == 60
    levels = grid[2, 2].patches
    np.testing.assert_allclose(
        [bar.get_height() for bar in levels],
        [(t["c"] == level).mean() for t in (TRAIN, generated) for level in "xy"],
    )
    heights = grid[0, 0].patches[0].get_data().values
    assert heights.sum() == pytest.approx(1.0)
    made_heights = [p for p in grid[0, 0].patches if hasattr(p, "get_data")][1].get_data().values
    assert made_heights.sum() == pytest.approx(59 / 60)  # one is missing and stands on its own strip
    texts = [text.get_text() for text in grid[0, 1].texts]
    assert texts[0] == f"real\nr = {np.corrcoef(TRAIN['a'], TRAIN['b'])[0, 1]:.2f}".replace("-", "−")
    assert texts[1].startswith("generated\nr = ")
    assert not grid[0, 2].texts
    assert [ax.get_xlabel() for ax in grid[-1]] == ["a", "b", "c"]
    assert [ax.get_ylabel() for ax in grid[:, 0]] == ["a", "b", "c"]


def test_pairs_of_chosen_columns():
    assert plots.pairs(TRAIN, DRAWN, features=["b", "a"]).shape == (2, 2)
    assert plots.pairs(TRAIN, DRAWN, max_features=1).shape == (1, 1)
    constant = plots.pairs(TRAIN, DRAWN, features=["a", "b"])[0, 1].texts[1].get_text()
    assert constant == "generated\nr undefined"
    with pytest.raises(OptionError, match=r"of which \['z'\] are missing"):
        plots.pairs(TRAIN, DRAWN, features=["a", "z"])


@pytest.fixture(scope="module")
def network():
    return cs.VAEACNetworks(epochs=6, device="cpu").fit(TRAIN, progress=False)


def test_curves_are_those_of_the_history(network):
    ax = plots.training_curves(network)
    history = network.history
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"VLB, training rows", "IWAE, held-out rows", "kept weights"}
    np.testing.assert_allclose(lines["VLB, training rows"].get_ydata(), history.vlb.mean(axis=1))
    np.testing.assert_allclose(lines["VLB, training rows"].get_xdata(), np.arange(1, 7))
    np.testing.assert_allclose(lines["IWAE, held-out rows"].get_ydata(), history.iwae.mean(axis=1))
    assert sorted(lines["kept weights"].get_xdata()) == sorted(history.best_epoch)
    (below,) = [axes for axes in ax.figure.axes if axes is not ax]
    assert len(below.lines) == history.kl.shape[2]
    found = np.sort([line.get_ydata()[-1] for line in below.lines])
    np.testing.assert_allclose(found, np.sort(history.kl[-1].mean(axis=0)))
    used = int((history.kl[-1].mean(axis=0) > 0.01).sum())
    assert below.get_title(loc="right") == f"{used} of {history.kl.shape[2]} units in use"
    low, high = ax.get_ylim()
    assert low < history.vlb.mean(axis=1).min()
    assert high > history.iwae.max()


def test_curves_are_found_in_approaches_and_explainers(network):
    X = TRAIN[["a", "b"]]
    approach = cs.approaches.VAEAC(epochs=2, shrink=False, device="cpu", progress=False)
    explainer = cs.Explainer(lambda t: np.sin(t["a"]), approach=approach, n_samples=4, device="cpu").fit(X)
    fitted = explainer.parts_[0].approach
    for holder in (explainer, fitted, fitted.networks_):
        line = plots.training_curves(holder).lines[-2]
        np.testing.assert_array_equal(line.get_ydata(), fitted.networks_.history.iwae.mean(axis=1))
    np.testing.assert_array_equal(
        plots.training_curves(network.networks_).lines[-2].get_xdata(), network.history.validated
    )


def test_curves_of_what_was_not_trained_are_refused():
    with pytest.raises(NotFittedError, match="Call fit first"):
        plots.training_curves(cs.VAEACNetworks())
    X = TRAIN[["a", "b"]]
    with pytest.raises(NotFittedError, match="approach='vaeac'"):
        plots.training_curves(cs.Explainer(lambda t: t["a"], approach="independence").fit(X))
    with pytest.raises(OptionError, match="got int"):
        plots.training_curves(3)
