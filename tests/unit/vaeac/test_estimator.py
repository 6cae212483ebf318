"""The network on tables: fit, sample, impute, log-likelihood, in the types that the user has."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import condshap as cs
from condshap.exceptions import CoalitionError, NotFittedError, OptionError, SchemaError

QUICK = {"epochs": 3, "width": 8, "latent": 2, "scales": ("standard", "normal_scores"), "device": "cpu"}


def make_table(n=90, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return pd.DataFrame(
        {
            "income": np.exp(z + rng.normal(size=n)),
            "rooms": np.clip(np.rint(4 + 2 * z), 1, 9).astype(int),
            "town": pd.Categorical(np.where(z > 0, "north", "south"), categories=["south", "north"]),
            "own": z + rng.normal(size=n) > 0,
            "share": rng.random(n).astype("f4"),
        },
        index=rng.permutation(n) + 1000,
    )


X = make_table()
MASKS = np.array([[True, False, False, True, False], [False] * 5, [False, True, True, False, False]])


@pytest.fixture(scope="module")
def network():
    return cs.VAEACNetworks(**QUICK).fit(X)


def with_gaps(table):
    """One gap in every column; integers become float and booleans objects, as pandas does it."""
    gaps = table.astype({"rooms": float, "own": object})
    for i, name in enumerate(gaps.columns):
        gaps.iloc[i, gaps.columns.get_loc(name)] = None
    return gaps


# --- sample -----------------------------------------------------------------------------------------------------------


def test_sample_gives_every_coalition_row_and_draw_with_known_columns_unchanged(network):
    drawn = network.sample(X[:4], MASKS, 6)
    rows = network.schema_.encode(X[:4])
    assert (drawn.shape, drawn.dtype) == ((3, 4, 6, 5), np.float64)
    known = np.broadcast_to(MASKS[:, None, None, :], drawn.shape)
    np.testing.assert_array_equal(drawn[known], np.broadcast_to(rows[None, :, None], drawn.shape)[known])
    assert np.isfinite(drawn).all()
    assert len(np.unique(drawn[1, :, :, 0])) > 10


def test_names_of_known_columns_are_the_same_as_a_mask(network):
    by_name = network.sample(X[:2], [["income", "own"], [], {"rooms", "town"}], 4)
    np.testing.assert_array_equal(by_name, network.sample(X[:2], MASKS, 4))
    np.testing.assert_array_equal(by_name, network.sample(X[:2], MASKS.astype(int).tolist(), 4))


def test_draws_depend_on_the_seed_but_not_on_other_rows_or_coalitions(network):
    together = network.sample(X[:6], MASKS, 5, seed=3)
    np.testing.assert_array_equal(together, network.sample(X[:6], MASKS, 5, seed=3))
    np.testing.assert_allclose(together[1:2, 4:5], network.sample(X[4:5], MASKS[1:2], 5, seed=3), rtol=1e-12)
    assert not np.array_equal(together, network.sample(X[:6], MASKS, 5, seed=4))


def test_sample_table_has_the_same_draws_in_the_dtypes_of_training(network):
    table = network.sample_table(X[:4], MASKS, 6)
    assert table.dtypes.equals(X.dtypes)
    flat = network.sample(X[:4], MASKS, 6).reshape(-1, 5)
    np.testing.assert_allclose(network.schema_.encode(table), flat, rtol=1e-6)
    np.testing.assert_array_equal(table["income"].iloc[:24], np.repeat(X["income"].iloc[:4], 6))


def test_known_gaps_stay_gaps_unless_they_are_to_be_filled(network):
    gaps = with_gaps(X)[:1]
    mask = np.array([[True, True, True, True, False]])
    assert np.isnan(network.sample(gaps, mask, 3)[..., 0]).all()
    filled = network.sample(gaps, mask, 3, fill_missing=True)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[0, 0, :, 1], gaps["rooms"].iloc[0])


def test_columns_are_found_by_name_in_any_table(network):
    turned = pl.from_pandas(X[:3][list(reversed(X.columns))])
    np.testing.assert_array_equal(network.sample(turned, MASKS, 4), network.sample(X[:3], MASKS, 4))


def test_draws_stay_in_the_declared_support_and_whole_columns_stay_whole():
    declared = cs.VAEACNetworks(**QUICK).fit(X, support={"income": (0, np.inf), "share": (-1, 2)})
    drawn = declared.sample(X, np.zeros((1, 5), dtype=bool), 200)
    assert drawn[..., 0].min() >= 0
    assert -1 <= drawn[..., 4].min() < X["share"].min()
    assert X["share"].max() < drawn[..., 4].max() <= 2
    np.testing.assert_array_equal(drawn[..., 1], np.rint(drawn[..., 1]))


def test_training_follows_given_coalitions_and_groups():
    plain = cs.VAEACNetworks(**QUICK).fit(X)
    for options in (
        {"coalitions": [["income"], ["rooms", "own"]], "probabilities": [1, 3]},
        {"groups": {"home": ["rooms", "town"]}},
    ):
        other = cs.VAEACNetworks(**QUICK).fit(X, **options)
        assert not np.array_equal(other.history.vlb, plain.history.vlb)


# --- impute -----------------------------------------------------------------------------------------------------------


def test_impute_fills_the_gaps_and_nothing_else(network):
    gaps = with_gaps(X)
    completed = network.impute(gaps, 4)
    assert len(completed) == 4
    for table in completed:
        assert table.dtypes.equals(X.dtypes)
        assert table.index.equals(X.index)
        assert not table.isna().any().any()
        for name in X.columns:
            seen = gaps[name].notna()
            assert table[name][seen].equals(X[name][seen])
    assert len({table.iloc[0, 0] for table in completed}) == 4


def test_equal_rows_are_filled_independently(network):
    gap = with_gaps(X)[:1]
    repeated = pd.concat([gap] * 40, ignore_index=True)
    filled = network.impute(repeated, 1)[0]["income"]
    assert filled.nunique() > 30


def test_imputations_do_not_depend_on_other_rows(network):
    gaps = with_gaps(X)
    alone = network.impute(gaps[2:3], 2)
    pd.testing.assert_frame_equal(network.impute(gaps, 2)[1][2:3], alone[1])


@pytest.mark.parametrize("make", [pl.from_pandas, lambda table: pa.Table.from_pandas(table, preserve_index=False)])
def test_tables_of_other_types_come_back_in_their_own(make):
    train = make(X.reset_index(drop=True))
    gaps = make(with_gaps(X).astype({"rooms": "Int64", "own": "boolean"}).reset_index(drop=True))
    completed = cs.VAEACNetworks(**QUICK).fit(train).impute(gaps, 2)[0]
    assert type(completed) is type(train)
    assert completed.schema == train.schema
    again = completed.to_pandas()
    assert not again.isna().any().any()
    np.testing.assert_array_equal(again["rooms"].iloc[2:], X["rooms"].iloc[2:])


def test_a_table_of_another_type_than_training_keeps_its_type_and_order(network):
    gaps = pl.from_pandas(with_gaps(X).astype({"own": "boolean"})[["town", "own", "share", "rooms", "income"]])
    completed = network.impute(gaps, 1)[0]
    assert completed.schema == gaps.schema
    assert completed.null_count().sum_horizontal().item() == 0


def test_arrays_come_back_as_arrays():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    gaps = rows.copy()
    gaps[3, 1] = np.nan
    completed = cs.VAEACNetworks(**QUICK).fit(rows).impute(gaps, 2)
    assert [table.dtype for table in completed] == [rows.dtype] * 2
    for table in completed:
        assert np.isfinite(table).all()
        np.testing.assert_array_equal(np.delete(table.ravel(), 10), np.delete(rows.ravel(), 10))


def test_integer_arrays_are_integers_again():
    rows = np.random.default_rng(0).integers(0, 9, size=(50, 3))
    gaps = rows.astype(float)
    gaps[3, 1] = np.nan
    completed = cs.VAEACNetworks(**QUICK).fit(rows).impute(gaps, 1)[0]
    assert completed.dtype == rows.dtype
    np.testing.assert_array_equal(np.delete(completed.ravel(), 10), np.delete(rows.ravel(), 10))


def test_training_rows_may_have_gaps():
    gaps = pd.concat([with_gaps(X), X])
    network = cs.VAEACNetworks(**QUICK).fit(gaps)
    assert not network.impute(gaps, 1)[0].isna().any().any()


# --- log-likelihood, history ------------------------------------------------------------------------------------------


def test_log_likelihood_has_one_number_per_coalition_and_row_and_is_zero_when_all_is_known(network):
    found = network.log_likelihood(X[:7], [["income"], [], list(X.columns)], n_draws=16)
    assert found.shape == (3, 7)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[2], 0)


def test_log_likelihood_prefers_real_rows_to_shuffled_ones():
    rng = np.random.default_rng(1)
    a = rng.normal(size=400)
    table = pd.DataFrame({"a": a, "b": a + 0.1 * rng.normal(size=400)})
    network = cs.VAEACNetworks(**{**QUICK, "epochs": 60, "width": 16}).fit(table)
    real = network.log_likelihood(table, [["a"]]).mean()
    shuffled = network.log_likelihood(table.assign(b=rng.permutation(table["b"])), [["a"]]).mean()
    assert real > shuffled + 1


def test_history_has_bounds_by_epoch_and_network(network):
    history = network.history
    assert history.vlb.shape == (3, 2)
    assert history.iwae.shape[1] == 2
    assert history.kl.shape[1:] == (2, 2)


def test_training_goes_on_where_it_ended(tmp_path):
    options = {**QUICK, "patience": None, "kl_warmup": 2}
    at_once = cs.VAEACNetworks(**{**options, "epochs": 5}).fit(X)
    later = cs.VAEACNetworks(**options).fit(X)
    later.save(tmp_path / "n.safetensors", keep_optimiser=True)
    loaded = cs.VAEACNetworks.load(tmp_path / "n.safetensors", device="cpu")
    for network in (later, loaded):
        assert network.continue_training(X, 2) is network
        np.testing.assert_array_equal(network.history.vlb, at_once.history.vlb)
        np.testing.assert_array_equal(network.sample(X[:3], MASKS, 4), at_once.sample(X[:3], MASKS, 4))


def test_training_does_not_go_on_with_other_rows_or_without_its_optimiser(tmp_path):
    network = cs.VAEACNetworks(**QUICK).fit(X)
    with pytest.raises(SchemaError, match="rows it began with"):
        network.continue_training(X[:50], 2)
    with pytest.raises(OptionError, match="epochs must be an integer of at least 1, got 0"):
        network.continue_training(X, 0)
    network.save(tmp_path / "n.safetensors")
    with pytest.raises(OptionError, match="optimiser was kept"):
        cs.VAEACNetworks.load(tmp_path / "n.safetensors", device="cpu").continue_training(X, 2)


# --- manners ----------------------------------------------------------------------------------------------------------


def test_fitted_network_pickles_and_clones_without_what_was_learned(network):
    again = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(again.sample(X[:2], MASKS, 4), network.sample(X[:2], MASKS, 4))
    with pytest.raises(NotFittedError):
        clone(network).sample(X[:2], MASKS, 4)


@pytest.mark.parametrize(
    "ask",
    [
        lambda n: n.sample(X, MASKS, 2), lambda n: n.sample_table(X, MASKS, 2), lambda n: n.impute(X, 2),
        lambda n: n.log_likelihood(X, MASKS), lambda n: n.history, lambda n: n.save("file"),
        lambda n: n.continue_training(X, 2),
    ],
)  # fmt: skip
def test_what_needs_a_fit_says_so(ask):
    with pytest.raises(NotFittedError, match=r"VAEACNetworks must be fitted first. Call fit\(X\), or load a saved one"):
        ask(cs.VAEACNetworks())


def test_a_fit_that_fails_leaves_nothing_that_looks_fitted():
    network = cs.VAEACNetworks(**QUICK).fit(X)
    with pytest.raises(SchemaError):
        network.fit(X[:1])
    with pytest.raises(NotFittedError):
        network.sample(X, MASKS, 2)


def test_the_same_seed_gives_the_same_network_and_another_seed_another(network):
    again, other = cs.VAEACNetworks(**QUICK).fit(X), cs.VAEACNetworks(**QUICK).fit(X, seed=1)
    np.testing.assert_array_equal(again.sample(X[:2], MASKS, 4), network.sample(X[:2], MASKS, 4))
    assert not np.array_equal(other.sample(X[:2], MASKS, 4), network.sample(X[:2], MASKS, 4))


def test_a_bar_is_shown_when_it_is_asked_for_and_only_then(capsys):
    cs.VAEACNetworks(**QUICK).fit(X[:20])
    assert capsys.readouterr().err == ""
    cs.VAEACNetworks(**QUICK).fit(X[:20], progress=True)
    shown = capsys.readouterr().err
    assert "training: 3 of 3 epochs, best so far: " in shown


# --- bad options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"support": {"town": (0, 1)}}, OptionError, "support must name continuous columns.*got 'town'"),
        ({"support": {"z": (0, 1)}}, OptionError, "support must name continuous columns.*got 'z'"),
        ({"support": {"income": (9, 1)}}, OptionError, "'income' must be .least, largest., got .9, 1."),
        ({"support": {"income": 9}}, OptionError, "'income' must be .least, largest., got 9"),
        ({"support": {"rooms": (1, 4)}}, SchemaError, "'rooms' must lie in its support .1.0, 4.0., got [5-9] .*rows"),
        (
            {"groups": {"home": ["rooms", "z"]}},
            CoalitionError,
            "groups must name columns.*but these are unknown: .'z'.",
        ),
        ({"groups": {"a": ["rooms"], "b": ["rooms"]}}, CoalitionError, "groups must not overlap.*'rooms'"),
        ({"groups": {"a": "rooms"}}, CoalitionError, "groups must map a name to a list of columns"),
        ({"coalitions": [["z"]]}, SchemaError, "masks must name columns.*'z'"),
        ({"coalitions": [["own"]], "probabilities": [1, 2]}, CoalitionError, "probabilities must be 1 non-negative"),
        ({"coalitions": [["own"]], "probabilities": "x"}, CoalitionError, "probabilities must be 1 non-negative"),
        ({"probabilities": [1]}, CoalitionError, "probabilities need the coalitions"),
        ({"progress": "yes"}, OptionError, "progress must be one of"),
        ({"seed": -1}, OptionError, "seed must be an integer of at least 0"),
        ({"categorical": ["z"]}, SchemaError, "categorical must name columns"),
    ],
)
def test_bad_options_of_fit_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        cs.VAEACNetworks(**QUICK).fit(X, **options)


def test_options_that_would_be_ignored_are_refused():
    with pytest.raises(OptionError, match="support needs respect_support=True"):
        cs.VAEACNetworks(**QUICK, respect_support=False).fit(X, support={"income": (0, np.inf)})
    with pytest.raises(OptionError, match="coalitions need masking='coalitions', got 'uniform'"):
        cs.VAEACNetworks(**QUICK, masking="uniform").fit(X, coalitions=[["own"]])


def test_bad_device_is_refused_at_fit():
    with pytest.raises(OptionError, match="device must be one of"):
        cs.VAEACNetworks(device="gpu").fit(X)
