"""Bad tables, masks and files through the table face: a clear error or a correct result."""

from __future__ import annotations

import json
from math import inf, nan

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file

import condshap as cs
from condshap.exceptions import CondShapError, CondShapWarning, OptionError, SchemaError, StorageError
from condshap.storage.file_kinds import NETWORKS
from condshap.storage.state_file import write_tensors

QUICK = {"epochs": 2, "width": 8, "latent": 2, "scales": ("standard", "normal_scores"), "device": "cpu"}
RNG = np.random.default_rng(4)
X = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.exponential(size=40), "c": RNG.choice(["u", "v"], 40)})
NOTHING = np.zeros((1, 3), dtype=bool)


def fit(table, **options):
    return cs.VAEACNetworks(**QUICK).fit(table, **options)


@pytest.fixture(scope="module")
def network():
    return fit(X)


@pytest.mark.parametrize(("column", "gap"), [("a", nan), ("c", None)])
def test_a_column_without_values_is_refused_by_name(column, gap):
    with pytest.raises(SchemaError, match=f"column '{column}' must have at least one value.*Drop"):
        fit(X.assign(**{column: gap}))


def test_a_column_without_values_may_be_imputed_later(network):
    completed = network.impute(X.assign(a=nan, c=pd.Series([None] * 40, dtype=object)), 1)[0]
    assert not completed.isna().any().any()
    assert set(completed["c"]) <= {"u", "v"}


@pytest.mark.parametrize("ask", ["sample", "impute", "log_likelihood"])
def test_an_unseen_level_is_refused_with_its_rows(network, ask):
    rows = X[:3].assign(c=["u", "w", "v"])
    arguments = {"sample": (NOTHING, 2), "impute": (2,), "log_likelihood": (NOTHING,)}[ask]
    with pytest.raises(
        SchemaError, match=r"column 'c' must hold the levels \['u', 'v'\], got unseen levels \['w'\] in rows \[1\]"
    ):
        getattr(network, ask)(rows, *arguments)


def test_a_single_level_is_announced_and_always_drawn():
    with pytest.warns(CondShapWarning, match="feature 'c' is constant"):
        drawn = fit(X.assign(c="u")).sample(X[:3].assign(c="u"), NOTHING, 20)
    assert (drawn[..., 2] == 0).all()


def test_a_constant_column_is_announced_and_always_drawn():
    with pytest.warns(CondShapWarning, match="feature 'b' is constant"):
        drawn = fit(X.assign(b=2.5)).sample(X[:3].assign(b=2.5), NOTHING, 20)
    assert (drawn[..., 1] == 2.5).all()


@pytest.mark.parametrize("n", [2, 3, 10])
def test_fewer_rows_than_a_batch_are_enough(n):
    drawn = fit(X[:n].assign(c=["u", "v"] * (n // 2) + ["u"] * (n % 2))).sample(X[:2], NOTHING, 4)
    assert drawn.shape == (1, 2, 4, 3)
    assert np.isfinite(drawn).all()


def test_a_single_row_is_refused():
    with pytest.raises(SchemaError, match="there must be at least 2 training rows, got 1"):
        fit(X[:1])


def test_no_rows_are_refused(network):
    with pytest.raises(SchemaError, match="training rows must not be empty"):
        fit(X[:0])
    with pytest.raises(SchemaError, match="rows must not be empty"):
        network.sample(X[:0], NOTHING, 2)


def test_a_factor_with_a_thousand_levels_works():
    table = pd.DataFrame({"id": np.arange(2400) % 1000, "a": RNG.normal(size=2400)})
    drawn = fit(table, categorical=["id"]).sample(table[:5], np.array([[False, True]]), 50)
    assert np.isin(drawn[..., 0], np.arange(1000)).all()
    assert len(np.unique(drawn[..., 0])) > 100


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e300])
def test_huge_and_tiny_values_keep_their_scale(scale):
    table = X.assign(a=X["a"] * scale)
    network = fit(table)
    drawn = network.sample(table[:5], NOTHING, 50)[..., 0]
    assert np.isfinite(drawn).all()
    assert 0.1 < (drawn / scale).std() < 10
    assert np.isfinite(network.log_likelihood(table, NOTHING)).all()


def test_one_value_at_1e30_among_ordinary_ones_does_not_break_the_network():
    table = X.assign(a=np.r_[1e30, X["a"].iloc[1:]])
    network = fit(table)
    drawn = network.sample(table[:5], NOTHING, 50)
    assert np.isfinite(drawn).all()
    assert drawn[..., 0].max() <= 1e30


@pytest.mark.parametrize("value", [inf, -inf])
def test_infinite_values_are_refused_with_their_rows(network, value):
    rows = X.assign(a=np.r_[X["a"].iloc[:5], value, X["a"].iloc[6:]])
    with pytest.raises(SchemaError, match=r"column 'a' must be finite or missing, got infinite values in rows \[5\]"):
        fit(rows)
    with pytest.raises(SchemaError, match="column 'a' must be finite"):
        network.sample(rows, NOTHING, 2)


def test_repeated_column_names_are_refused():
    table = X.set_axis(["a", "a", "c"], axis=1)
    arrow = pa.table([pa.array(X["a"]), pa.array(X["b"])], names=["a", "a"])
    for one in (table, arrow):
        with pytest.raises(SchemaError, match=r"column names must be unique, got \['a'\]"):
            fit(one)


@pytest.mark.parametrize("rows", [X[["a", "b"]], X.assign(d=1.0), X.rename(columns={"a": "z"}), X.to_numpy()[:, :2]])
def test_rows_with_other_columns_are_refused(network, rows):
    with pytest.raises(SchemaError, match="rows must have"):
        network.sample(rows, NOTHING, 2)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (np.ones(3, dtype=bool), r"shape \(C, 3\).*got shape \(3,\). A single coalition is masks\[None\]"),
        (np.ones((2, 2), dtype=bool), r"shape \(C, 3\).*got shape \(2, 2\)"),
        (np.ones((0, 3), dtype=bool), r"C >= 1.*got shape \(0, 3\)"),
        (np.array([[0.0, 0.5, 1.0]]), "not 0 or 1"),
        (np.array([[nan, 0.0, 1.0]]), "not 0 or 1"),
        ([], r"got shape \(0,\)"),
        (None, "masks must be an array of booleans"),
        ("a", "masks must be an array of booleans"),
        (["a", "b"], r"list of collections of column names, one per coalition, got \['a', 'b'\]"),
        ([["a"], None], r"got \[None\] among them"),
        ([["a", "z"], ["y"]], r"masks must name columns of the table, \['a', 'b', 'c'\], got \['z', 'y'\]"),
    ],
)
def test_masks_that_do_not_fit_are_refused(network, masks, message):
    for ask in (lambda: network.sample(X[:2], masks, 2), lambda: network.log_likelihood(X[:2], masks)):
        with pytest.raises(SchemaError, match=message):
            ask()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda n: n.sample(X, NOTHING, 0), "n_samples must be an integer of at least 1, got 0"),
        (lambda n: n.sample(X, NOTHING, 2.5), "n_samples must be an integer"),
        (lambda n: n.sample(X, NOTHING, 2, seed=-1), "seed must be an integer of at least 0"),
        (lambda n: n.impute(X, 0), "n must be an integer of at least 1, got 0"),
        (lambda n: n.log_likelihood(X, NOTHING, n_draws=0), "n_draws must be an integer of at least 1"),
    ],
)
def test_counts_and_seeds_that_make_no_sense_are_refused(network, ask, message):
    with pytest.raises(OptionError, match=message):
        ask(network)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(network, tmp_path):
    network.save(tmp_path / "network.safetensors")
    return tmp_path / "network.safetensors"


def rewrite(path, change):
    """Change the JSON in a file's header."""
    write_tensors(path, load_file(path), json.dumps(change(header(path))), NETWORKS)


def header(path):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["condshap"])


def with_facts(about, **facts):
    return {**about, "facts": {**about["facts"], **facts}}


def test_saved_network_answers_the_same(network, saved):
    again = cs.VAEACNetworks.load(saved, device="cpu")
    rows = X.assign(b=np.r_[nan, X["b"].iloc[1:]])
    masks = [["a"], [], ["b", "c"]]
    np.testing.assert_array_equal(again.sample(rows, masks, 4), network.sample(rows, masks, 4))
    np.testing.assert_array_equal(again.log_likelihood(rows, masks), network.log_likelihood(rows, masks))
    pd.testing.assert_frame_equal(again.impute(rows, 2)[1], network.impute(rows, 2)[1])
    np.testing.assert_array_equal(again.history.iwae, network.history.iwae)
    assert again.get_params() == network.get_params()
    assert again.schema_ == network.schema_


def test_saved_networks_of_levels_or_numbers_only_and_with_gaps_load_again(tmp_path):
    gaps = X.assign(b=np.r_[nan, X["b"].iloc[1:]])
    for i, table in enumerate((X[["c"]].assign(d=X["a"] > 0), X[["a", "b"]], gaps, X[["a", "b"]].to_numpy())):
        network = fit(table, support=None)
        network.save(tmp_path / f"{i}.safetensors")
        again = cs.VAEACNetworks.load(str(tmp_path / f"{i}.safetensors"), device="cpu")
        masks = np.zeros((1, table.shape[1]), dtype=bool)
        np.testing.assert_array_equal(again.sample(table, masks, 3), network.sample(table, masks, 3))


def test_declared_support_is_saved(tmp_path):
    network = fit(X, support={"b": (0, inf)})
    network.save(tmp_path / "n.safetensors")
    again = cs.VAEACNetworks.load(tmp_path / "n.safetensors", device="cpu")
    np.testing.assert_array_equal(again.sample(X, NOTHING, 40), network.sample(X, NOTHING, 40))


def test_the_file_is_plain_safetensors_with_json_in_its_header(saved):
    assert b"pickle" not in saved.read_bytes()
    assert {"support", "whole"} <= set(load_file(saved))
    rewrite(saved, lambda about: about)
    cs.VAEACNetworks.load(saved, device="cpu")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StorageError, match=r"must be a complete safetensors file.*Save it again"):
        cs.VAEACNetworks.load(saved)


def test_another_format_version_is_refused(saved):
    rewrite(saved, lambda about: {**about, "format_version": 99, "written_by": "9.9"})
    with pytest.raises(StorageError, match=r"format version 4, got 99, written by condshap 9.9. Read it with"):
        cs.VAEACNetworks.load(saved)


def test_networks_of_another_version_are_refused(saved):
    def change(about):
        networks = json.loads(about["facts"]["networks"])
        return with_facts(about, networks=json.dumps({**networks, "format_version": 99}))

    rewrite(saved, change)
    with pytest.raises(StorageError, match="version"):
        cs.VAEACNetworks.load(saved)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\0" * 100, b"\xff" * 200])
def test_a_file_that_is_no_safetensors_is_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(StorageError, match="must be a complete safetensors file"):
        cs.VAEACNetworks.load(tmp_path / "f")


def test_somebody_elses_safetensors_are_refused(tmp_path):
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.zeros(3)}, tmp_path / "f", metadata=metadata)
        with pytest.raises(StorageError, match="some other safetensors file"):
            cs.VAEACNetworks.load(tmp_path / "f")


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"condshap": "1"}'])
def test_a_damaged_header_is_refused(tmp_path, text):
    save_file({"weight": np.zeros(3)}, tmp_path / "f", metadata={"condshap": text})
    with pytest.raises(StorageError, match="part of it is missing or damaged"):
        cs.VAEACNetworks.load(tmp_path / "f")


@pytest.mark.parametrize("key", ["schema", "networks"])
def test_a_missing_part_is_refused(saved, key):
    rewrite(saved, lambda about: {**about, "facts": {k: v for k, v in about["facts"].items() if k != key}})
    with pytest.raises(StorageError, match=key):
        cs.VAEACNetworks.load(saved)


@pytest.mark.parametrize("name", ["support", "history/iwae", "weights/output.weight"])
def test_a_missing_tensor_is_refused(saved, name):
    tensors = load_file(saved)
    del tensors[name]
    write_tensors(saved, tensors, json.dumps(header(saved)), NETWORKS)
    with pytest.raises(StorageError, match=name):
        cs.VAEACNetworks.load(saved)


def test_a_schema_of_other_columns_than_the_networks_is_refused(saved):
    def change(about):
        schema = about["facts"]["schema"]
        return with_facts(
            about, schema={**schema, "features": schema["features"][:2], "columns": schema["columns"][:2]}
        )

    rewrite(saved, change)
    with pytest.raises(StorageError, match="schema"):
        cs.VAEACNetworks.load(saved)


def test_paths_that_cannot_be_used_are_refused(network, tmp_path):
    with pytest.raises(StorageError, match="existing file"):
        cs.VAEACNetworks.load(tmp_path / "none")
    for path in (tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(StorageError, match="writable path"):
            network.save(path)
    assert list(tmp_path.iterdir()) == []


def test_errors_are_errors_of_condshap_and_of_python():
    assert issubclass(StorageError, CondShapError)
    assert issubclass(StorageError, ValueError)
