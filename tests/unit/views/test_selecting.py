"""Indexing as shap's users write it: what is taken, what stays true, and what is refused."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import OptionError

mpl.use("Agg")

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(80, 4)), columns=list("abcd"), index=[f"r{i}" for i in range(80)])
X["d"] = pd.Categorical(RNG.choice(["u", "v"], 80))


def one(rows):
    return rows["a"].to_numpy() * rows["b"].to_numpy() + rows["c"].to_numpy() + (rows["d"] == "u").to_numpy()


def two(rows):
    return np.column_stack([one(rows), rows["a"].to_numpy() ** 2 - rows["b"].to_numpy()])


@pytest.fixture(scope="module")
def single():
    return cs.explain(one, X, X[:6], approach="independence", n_samples=20)


@pytest.fixture(scope="module")
def several():
    found = cs.explain(two, X, X[:6], approach="independence", n_samples=20)
    return replace(found, output_names=("yes", "no"))


KEYS = [
    np.s_[0], np.s_[-1], np.s_[:2], np.s_[[0, 3]], np.s_[:, 0], np.s_[:, -1], np.s_[:, "b"], np.s_[:, ["c", "a"]],
    np.s_[:, 1:], np.s_[2, "c"], np.s_[1:3, ["a"]], np.s_[...], np.s_[..., 2, :], np.s_[3, :, "yes"], np.s_[..., 1],
    np.s_[:, :, "no"], np.s_[:2, "b", "no"], np.s_[..., "a", "yes"], np.s_[:, :, ["no", "yes"]], np.s_[:, 1:3, -1],
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_numbers_are_those_that_shap_takes(several, key):
    theirs = several.to_shap()[key]
    ours = several[key]
    assert isinstance(ours, cs.Explanation)
    np.testing.assert_array_equal(ours.values.ravel(), np.ravel(theirs.values))
    np.testing.assert_array_equal(ours.base_values.ravel(), np.ravel(theirs.base_values))
    np.testing.assert_array_equal(ours.std_errors.ravel(), np.ravel(several.std_errors[_by_number(several, key)]))


@pytest.mark.parametrize(
    "key", [np.s_[:3], np.s_[:, "c"], np.s_[..., ["b", "d"]], np.s_[0, "a"], np.s_[..., 1]], ids=str
)
def test_with_one_output_the_last_axis_is_that_of_the_players(single, key):
    np.testing.assert_array_equal(single[key].values.ravel(), np.ravel(single.to_shap()[key].values))


def test_the_name_of_the_only_output_takes_everything(single, several):
    assert single.output_names == ("output",)
    for key in (np.s_[..., "output"], np.s_[:, :, "output"]):
        np.testing.assert_array_equal(single[key].values, single.values)
    np.testing.assert_array_equal(single[2, "c", "output"].values, single[2, "c"].values)
    np.testing.assert_array_equal(several[..., "no"][..., "no"].values, several.values[..., 1])
    namesake = replace(single, player_names=("a", "b", "c", "output"))  # a player comes first
    assert namesake[..., "output"].player_names == ("output",)
    for key in (np.s_[:, "output"], np.s_[..., "yes"]):
        with pytest.raises(OptionError, match="players must be among"):
            single[key]


def _by_number(explanation, key):
    """The same key with positions for names."""
    parts = key if isinstance(key, tuple) else (key,)
    names = explanation.player_names + explanation.output_names
    places = {name: i for i, name in enumerate(explanation.player_names)} | {"yes": 0, "no": 1}

    def number(part):
        if isinstance(part, list):
            return [places.get(one, one) for one in part]
        return places[part] if isinstance(part, str) and part in names else part

    return tuple(number(part) for part in parts)


def test_lists_on_two_axes_do_not_pair_up(single):
    assert single[[0, 1], ["a", "c"]].values.shape == (2, 2)
    np.testing.assert_array_equal(single[[0, 1], ["a", "c"]].values, single.values[np.ix_([0, 1], [0, 2])])


def test_axes_of_rows_and_players_stay_and_that_of_one_output_goes(several):
    assert several[3, "a", "yes"].values.shape == (1, 1)
    assert several[..., "yes"].values.shape == (6, 4)
    assert several[..., ["yes"]].values.shape == (6, 4, 1)
    assert several[..., "no"].output_names == ("no",)


def test_a_mask_of_players_is_a_mask(single):
    assert single[:, [True, False, True, False]].player_names == ("a", "c")
    with pytest.raises(OptionError, match="4 entries"):
        single[:, [True, False]]


def test_an_output_is_a_whole_explanation(several, tmp_path):
    chosen = several[..., "no"]
    np.testing.assert_allclose(chosen.base_values + chosen.values.sum(1), chosen.predictions)
    np.testing.assert_array_equal(chosen.value_table.values, several.value_table.values[..., 1])
    assert chosen.msev.per_row.shape == (6,)
    chosen.save(tmp_path / "no.parquet")
    np.testing.assert_array_equal(cs.load_explanation(tmp_path / "no.parquet").values, chosen.values)


def test_all_players_in_another_order_are_whole(single, tmp_path):
    turned = single[:, ["d", "c", "b", "a"]]
    assert turned.others is None
    assert float(turned.msev) == pytest.approx(float(single.msev))
    alone = turned.value_table.coalitions.sum(1) == 1
    np.testing.assert_array_equal(turned.value_table.coalitions[alone][:, ::-1], single.value_table.coalitions[alone])
    turned.save(tmp_path / "turned.parquet")
    assert cs.load_explanation(tmp_path / "turned.parquet").player_names == tuple("dcba")


@pytest.mark.parametrize("key", [np.s_[:, "a"], np.s_[:, ["b", "d"]], np.s_[:3, 1:]])
def test_some_players_and_the_others_add_up_to_the_prediction(single, several, key):
    for chosen in (single[key], several[key], several[key][..., "yes"]):
        np.testing.assert_allclose(chosen.base_values + chosen.values.sum(1) + chosen.others.values, chosen.predictions)
        frame = chosen.to_frame()
        np.testing.assert_allclose(frame.drop(columns="prediction").sum(axis=1), frame["prediction"])
    assert "error of other players" in single[key].to_frame(errors=True)


def test_selecting_twice_is_selecting_once(several):
    twice, once = several[:, ["a", "b", "c"]][1:][:, ["b"]][..., "no"], several[1:, "b", "no"]
    np.testing.assert_allclose(twice.others.values, once.others.values)
    np.testing.assert_allclose(twice.others.errors, once.others.errors)
    assert set(twice.others.names) == set(once.others.names) == {"a", "c", "d"}
    assert twice[:, :].others is twice.others


def test_the_error_of_the_others_is_bounded_by_both_sides(single):
    chosen = single[:, ["a", "b", "c"]]
    np.testing.assert_allclose(chosen.others.errors, np.minimum(single.errors[:, 3], single.errors[:, :3].sum(1)))


def test_v_of_some_players_is_withheld(single, tmp_path):
    chosen = single[:, "a"]
    for asking in (
        lambda: chosen.value_table.values,
        lambda: chosen.value_table.coalitions,
        lambda: chosen.msev,
        lambda: cs.plots.msev({"a": chosen}),
        lambda: cs.report(chosen, tmp_path / "report.html"),
    ):
        with pytest.raises(OptionError, match="all players"):
            asking()
    assert chosen.value_table.n_evaluations == single.value_table.n_evaluations
    assert "1 of 4 players" in repr(chosen)
    for again in (pickle.loads(pickle.dumps(chosen)), copy.deepcopy(chosen)):
        with pytest.raises(OptionError, match="all players"):
            again.value_table.std_errors
        np.testing.assert_array_equal(again.values, chosen.values)


def test_some_players_are_neither_saved_nor_refined_nor_given_errors(single, tmp_path):
    with pytest.raises(OptionError, match=r"save needs all players.*'b'"):
        single[:, "a"].save(tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()
    with pytest.raises(OptionError, match="all players"):
        single[:, "a"].with_model_errors(np.zeros((6, 1)))
    explainer = cs.Explainer(one, approach="independence", n_coalitions="auto", tolerance=0.3, n_samples=20).fit(X)
    with pytest.raises(OptionError, match="all players"):
        explainer.refine(explainer.explain(X[:2])[:, "a"], tolerance=0.01)


def test_shap_gets_the_columns_of_the_players(single):
    theirs = single[:, ["c", "a"]].to_shap()
    np.testing.assert_array_equal(theirs.data, X[:6][["c", "a"]].to_numpy())
    assert theirs.feature_names == ["c", "a"]


def test_a_notebook_shows_some_players_and_what_is_not_selected(single):
    html = single[:, "a"]._repr_html_()
    assert "3 not selected" in html
    assert "MSEv" not in html


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (np.s_[:, "e"], r"players must be among \['a', 'b', 'c', 'd'\].*'e'"),
        (np.s_[:, 4], "positions below 4, got 4"),
        (np.s_[:, -5], "got -5"),
        (np.s_[:, 1.5], r"got 1\.5"),
        (np.s_[:, True], "got True"),
        (np.s_[:, None], "got None"),
        (np.s_[:, []], "at least one"),
        (np.s_[:, 9:], "at least one"),
        (np.s_[:, ["a", 0]], r"\['a'\] more than once"),
        (np.s_[:, "a":"b"], "positions as its ends"),
        (np.s_["a"], r"explanation\[:, 'name'\]"),
        (np.s_[["a", "b"]], r"explanation\[:, 'name'\]"),
        (np.s_[None], "one dimension"),
        (np.s_[..., ...], "at most once"),
        (np.s_[:, :, 0], "one output only"),
        (np.s_[[[0, 1]], 0], "one dimension"),
        (np.s_[..., "e"], r"players must be among .* the only output is 'output', got 'e'"),
        (np.s_["a":"b"], r"rows must be .*slice of positions.*got slice\('a', 'b', None\)"),
        (np.s_[[0, 99]], r"rows must be positions below 6.*got \[0, 99\]"),
        (np.s_[[True, False]], "a mask of 6 entries"),
        (np.s_[1.5], r"rows must be positions.*got 1\.5"),
        (np.s_[{"a": 1}], r"rows must be positions"),
    ],
    ids=str,
)
def test_bad_keys_are_refused(single, key, text):
    with pytest.raises(OptionError, match=text):
        single[key]


def test_an_unknown_output_is_refused(several):
    with pytest.raises(OptionError, match=r"outputs must be among \['yes', 'no'\].*'maybe'"):
        several[..., "maybe"]


def test_loops_over_rows_end(single):
    assert [len(row) for row in single] == [1] * 6
    with pytest.raises(IndexError):
        single[6]


def test_numpy_sees_the_values(single):
    np.testing.assert_array_equal(np.asarray(single), single.values)
    np.testing.assert_array_equal(np.abs(single), np.abs(single.values))


def test_plots_of_one_row_add_what_is_not_selected(several):
    chosen = several[:, ["a", "b"]]
    ax = cs.plots.waterfall(chosen, 1, output="yes")
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert "2 not selected" in labels
    ends = [patch.get_x() + patch.get_width() for patch in ax.patches]
    assert any(np.isclose(end, several.predictions[1, 0]) for end in ends)
    texts = [text.get_text() for text in cs.plots.force(chosen, 1, output="yes").texts]
    assert any("2 not selected" in text for text in texts)


def test_plots_of_values_show_the_players_that_were_selected(single):
    chosen = single[:, ["a", "d"]]
    for plot in (cs.plots.bar, cs.plots.beeswarm, cs.plots.heatmap, lambda one: cs.plots.bar(one, 0)):
        labels = " ".join(text.get_text() for text in plot(chosen).get_yticklabels())
        assert "d" in labels
        assert "not selected" not in labels
    cs.plots.scatter(chosen, "a")
