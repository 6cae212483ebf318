"""What a user holds in the end: slices, frames, MSEv, and shap's plots."""

from __future__ import annotations

import pickle

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

import condshap as cs
from condshap.explanation import Explanation, Provenance
from condshap.values.table import ValueTable

mpl.use("Agg")

RNG = np.random.default_rng(5)
N = 60
MIXED = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "n": RNG.integers(0, 5, N),
        "c": pd.Categorical(RNG.choice(["u", "v", "w"], N), categories=["w", "v", "u"]),
        "s": RNG.choice(["p", "q"], N),
    },
    index=pd.Index([f"row {i}" for i in range(N)], name="id"),
)


def one(X):
    return X["x"].to_numpy() + X["n"].to_numpy() * (X["c"] == "u").to_numpy() + (X["s"] == "q").to_numpy()


def two(X):
    return np.column_stack([one(X), X["x"].to_numpy() ** 2])


GROUPS = {"numbers": ["x", "n"], "labels": ["c", "s"]}


@pytest.fixture(scope="module")
def single():
    return cs.explain(one, MIXED, MIXED.iloc[:6], approach="independence", n_samples=20)


@pytest.fixture(scope="module")
def several():
    return cs.explain(two, MIXED, MIXED.iloc[:6], approach="independence", n_samples=20)


@pytest.fixture(scope="module")
def grouped():
    return cs.explain(two, MIXED, MIXED.iloc[:6], approach="independence", n_samples=20, groups=GROUPS)


def by_hand(values, predictions, std_errors, **names) -> Explanation:
    """Two players, coalitions {}, {0}, {1}, {0, 1}."""
    masks = np.array([[False, False], [True, False], [False, True], [True, True]])
    table = ValueTable(masks, np.asarray(values, dtype=float), np.asarray(std_errors, dtype=float), 1)
    v = table.values
    phi = np.stack([(v[1] - v[0] + v[3] - v[2]) / 2, (v[2] - v[0] + v[3] - v[1]) / 2], axis=1)
    about = Provenance("by hand", {}, 0, (1,), 4, True, 0, "given", {}, {})
    rows = pd.DataFrame(np.arange(2.0 * len(phi)).reshape(-1, 2), columns=["a", "b"])
    options = {"feature_names": ("a", "b"), "player_names": ("a", "b"), "output_names": ("output",), **names}
    return Explanation(
        phi,
        v[0],
        np.asarray(predictions),
        np.zeros_like(phi),
        table,
        rows,
        membership=((0,), (1,)),
        provenance=about,
        **options,
    )


def test_shapes_follow_the_number_of_outputs(single, several, grouped):
    assert (single.values.shape, single.base_values.shape, single.predictions.shape) == ((6, 4), (6,), (6,))
    assert (several.values.shape, several.base_values.shape, several.predictions.shape) == ((6, 4, 2), (6, 2), (6, 2))
    assert (grouped.values.shape, grouped.value_table.values.shape) == ((6, 2, 2), (4, 6, 2))
    for explanation in (single, several, grouped):
        assert explanation.std_errors.shape == explanation.values.shape
        total = explanation.base_values + explanation.values.sum(axis=1)
        np.testing.assert_allclose(total, explanation.predictions, atol=1e-9)


@pytest.mark.parametrize(
    ("key", "positions"),
    [(0, [0]), (-1, [5]), (slice(1, 4), [1, 2, 3]), (slice(None, None, -2), [5, 3, 1]), ([4, 0], [4, 0]),
     (np.array([True, False, False, True, False, False]), [0, 3]), ([], [])],
)  # fmt: skip
def test_slice_takes_the_same_rows_of_everything(several, key, positions):
    part = several[key]
    assert len(part) == len(positions)
    for name in ("values", "std_errors", "base_values", "predictions"):
        np.testing.assert_array_equal(getattr(part, name), getattr(several, name)[positions])
    np.testing.assert_array_equal(part.value_table.values, several.value_table.values[:, positions])
    np.testing.assert_array_equal(part.value_table.std_errors, several.value_table.std_errors[:, positions])
    np.testing.assert_array_equal(part.value_table.coalitions, several.value_table.coalitions)
    pd.testing.assert_frame_equal(part.data, several.data.iloc[positions])
    assert part.player_names == several.player_names


def test_position_beyond_the_rows_is_an_index_error(single):
    with pytest.raises(IndexError):
        single[6]
    assert len(list(single)) == 6  # iteration ends by that error


def test_slices_keep_the_type_of_the_rows():
    X = MIXED[["x", "n"]].reset_index(drop=True)
    for table in (X, pl.from_pandas(X), X.to_numpy(dtype=float)):
        explanation = cs.explain(lambda T: np.asarray(T)[:, 0], table, table[:5], approach="gaussian", n_samples=4)
        assert type(explanation[1:3].data) is type(table)
        assert len(explanation[1:3].data) == 2


def test_repr_says_what_was_explained(single, several):
    assert repr(single) == "Explanation(6 rows x 4 players, approach='independence', 16 coalitions (all))"
    assert "6 rows x 4 players x 2 outputs" in repr(several)


def test_frame_of_one_output_has_a_line_per_row(single):
    frame = single.to_frame()
    assert list(frame.columns) == ["base_value", "x", "n", "c", "s", "prediction"]
    pd.testing.assert_index_equal(frame.index, MIXED.index[:6])
    np.testing.assert_array_equal(frame[["x", "n", "c", "s"]], single.values)
    np.testing.assert_allclose(frame.drop(columns="prediction").sum(axis=1), frame["prediction"])


def test_frame_of_several_outputs_has_a_line_per_row_and_output(several, grouped):
    frame = several.to_frame()
    assert frame.index.names == ["id", "output"]
    assert frame.index[:3].tolist() == [("row 0", "output_0"), ("row 0", "output_1"), ("row 1", "output_0")]
    np.testing.assert_array_equal(frame.xs("output_1", level="output")[["x", "n", "c", "s"]], several.values[..., 1])
    np.testing.assert_allclose(frame.drop(columns="prediction").sum(axis=1), frame["prediction"])
    assert list(grouped.to_frame().columns) == ["base_value", "numbers", "labels", "prediction"]


def test_frame_keeps_an_index_of_several_levels(several):
    from dataclasses import replace

    index = pd.MultiIndex.from_product([["p", "q"], [1, 2, 3]], names=["site", "visit"])
    frame = replace(several, data=several.data.set_axis(index)).to_frame()
    assert frame.index.names == ["site", "visit", "output"]
    assert frame.index[1] == ("p", 1, "output_1")


def test_frame_renames_its_own_columns_where_players_have_these_names():
    names = ("base_value", "prediction")
    explanation = by_hand(
        [[0.0], [1.0], [2.0], [4.0]], [4.0], np.zeros((4, 1)), feature_names=names, player_names=names
    )
    frame = explanation.to_frame()
    assert list(frame.columns) == ["base_value_", "base_value", "prediction", "prediction_"]
    assert frame.iloc[0].tolist() == [0.0, 1.5, 2.5, 4.0]


def test_msev_by_hand():
    # f = 4, 2; v({0}) = 1, 2; v({1}) = 2, 5; Monte Carlo variances 0.25, 0; 0, 1
    explanation = by_hand(
        [[0.0, 0.0], [1.0, 2.0], [2.0, 5.0], [4.0, 2.0]], [4.0, 2.0], [[0, 0], [0.5, 0.0], [0.0, 1.0], [0, 0]]
    )
    msev = explanation.msev
    squares = np.array([[9 - 0.25, 0.0], [4.0, 9.0 - 1.0]])
    np.testing.assert_allclose(msev.per_row, squares.mean(axis=0))  # 6.375, 4
    np.testing.assert_allclose(msev.per_coalition, squares.mean(axis=1))  # 4.375, 6
    assert float(msev) == pytest.approx(5.1875)
    assert float(msev.std_error) == pytest.approx(2.375 / 2)  # half the difference of two rows
    assert np.isnan(explanation[0].msev.std_error)


def test_msev_of_several_outputs_is_their_sum(several):
    msev = several.msev
    assert msev.value.shape == (2,)
    assert msev.per_row.shape == (6, 2)
    assert msev.per_coalition.shape == (14, 2)
    assert float(msev) == pytest.approx(msev.value.sum())
    v, f = several.value_table, several.predictions
    direct = ((f - v.values[1:-1]) ** 2 - v.std_errors[1:-1] ** 2).mean(axis=(0, 1))
    np.testing.assert_allclose(msev.value, direct)


def test_explanations_pickle_and_are_equal_only_to_themselves(several):
    again = pickle.loads(pickle.dumps(several))
    np.testing.assert_array_equal(again.values, several.values)
    assert again.provenance == several.provenance
    assert again != several
    assert several == several


def test_shap_explanation_holds_the_same_numbers(several):
    theirs = several.to_shap()
    np.testing.assert_array_equal(theirs.values, several.values)
    np.testing.assert_array_equal(theirs.base_values, several.base_values)
    assert theirs.feature_names == ["x", "n", "c", "s"]
    assert theirs.output_names == ["output_0", "output_1"]
    rows = MIXED.iloc[:6]
    np.testing.assert_array_equal(theirs.data[:, 2], rows["c"].cat.codes)  # coloured in the order of the levels
    assert theirs.display_data[:, 2].tolist() == rows["c"].tolist()
    assert theirs.display_data[:, 0].tolist() == rows["x"].tolist()


def test_shap_data_follows_the_players_and_not_the_order_of_the_rows(single):
    shuffled = cs.explain(one, MIXED, MIXED[["s", "c", "n", "x"]].iloc[:6], approach="independence", n_samples=20)
    np.testing.assert_array_equal(shuffled.values, single.values)
    np.testing.assert_array_equal(shuffled.to_shap().data, single.to_shap().data)


def test_shap_data_follows_groups_of_one_feature_each(single):
    groups = {name.upper(): [name] for name in ("s", "c", "n", "x")}
    explanation = cs.explain(one, MIXED, MIXED.iloc[:6], approach="independence", n_samples=20, groups=groups)
    theirs = explanation.to_shap()
    assert theirs.feature_names == ["S", "C", "N", "X"]
    np.testing.assert_array_equal(theirs.data, single.to_shap().data[:, ::-1])


def test_missing_values_are_shown_as_such():
    X = MIXED.assign(c=MIXED["c"].where(MIXED["n"] > 1), x=MIXED["x"].where(MIXED["n"] > 0))

    def f(T):
        return T["x"].fillna(0).to_numpy() + (T["c"] == "u").to_numpy()

    theirs = cs.explain(f, X, X.iloc[:20], approach="independence").to_shap()
    gone = X["c"].isna().to_numpy()[:20]
    assert gone.any()
    assert np.isnan(theirs.data[gone, 2]).all()
    assert (theirs.display_data[gone, 2] == "missing").all()
    draw(theirs)


def draw(theirs) -> list[str]:
    """Draw the plots and return the labels of the waterfall."""
    import matplotlib.pyplot as plt
    import shap

    shap.plots.beeswarm(theirs, show=False)
    shap.plots.bar(theirs, show=False)
    plt.close("all")
    shap.plots.waterfall(theirs[0], show=False)
    plt.gcf().canvas.draw()
    labels = [label.get_text() for axis in plt.gcf().axes for label in axis.get_yticklabels()]
    plt.close("all")
    return labels


def test_shap_draws_an_explanation_of_one_output(single):
    labels = draw(single.to_shap())
    assert f"{MIXED['c'].iloc[0]} = c" in labels
    assert f"{MIXED['s'].iloc[0]} = s" in labels


def test_shap_draws_each_of_several_outputs(several):
    for i in range(2):
        assert any("= c" in label for label in draw(several.to_shap()[..., i]))


def test_shap_draws_groups(grouped):
    assert {"numbers", "labels"} <= set(draw(grouped.to_shap()[..., 0]))


def test_versions_name_the_libraries_that_were_used():
    from importlib import import_module

    import torch
    from lightgbm import LGBMRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBRegressor

    X = np.random.default_rng(0).normal(size=(60, 3))
    network = cs.approaches.VAEAC(epochs=2, depth=1)
    boosted = make_pipeline(StandardScaler(), LGBMRegressor(n_estimators=2, verbose=-1)).fit(X, X[:, 0])
    used = {
        None: (lambda A: A[:, 0], "gaussian"),
        "torch": (lambda A: A[:, 0], network),
        "lightgbm": (boosted, "gaussian"),
    }
    torch_model = torch.nn.Linear(3, 1).double()
    boosters = [
        ("xgboost", (XGBRegressor(n_estimators=2).fit(X, X[:, 0]), "gaussian")),
        ("torch", (torch_model, "gaussian")),
    ]
    for package, (model, approach) in [*used.items(), *boosters]:
        found = cs.explain(model, X, X[:2], approach=approach, device="cpu").provenance.versions
        optional = {"torch", "xgboost", "lightgbm"} & set(found)
        assert optional == ({package} if package else set())
        assert all(found[name] == import_module(name).__version__ for name in optional)
