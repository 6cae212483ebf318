"""A saved explainer is the same explainer: numbers, tables, options, to the last bit."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import safetensors
import safetensors.numpy
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import condshap as cs
from condshap.approaches.base import State
from condshap.storage.plain_values import restore_values, store_values
from condshap.storage.state_file import read_state, write_state
from tests.unit.storage.explainers_there_and_back import TABLE, fitted, same_answers, score, scores, there_and_back

COLUMNS = {"continuous": ["a", "b", "c"], "categorical": ["d", "e", "f"], "mixed": ["a", "b", "d", "e"]}


NEEDS = {
    "continuous": {cs.Kind.CONTINUOUS},
    "categorical": {cs.Kind.CATEGORICAL},
    "mixed": {cs.Kind.CONTINUOUS, cs.Kind.CATEGORICAL},
}


def approach_for(name):
    """A quick version of the approach."""
    return cs.approaches.VAEAC(epochs=3, depth=1) if name == "vaeac" else name


def pairs():
    for name in cs.available_approaches():
        supports = cs.approaches.find_approach(name).supports
        yield from ((name, kind) for kind in COLUMNS if NEEDS[kind] <= supports)


# --- every approach, every kind of table ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), list(pairs()))
def test_loaded_explainer_gives_the_same_answers_bit_for_bit(tmp_path, name, kind):
    table = TABLE[COLUMNS[kind]]
    explainer = fitted(table[:-5], approach=approach_for(name))
    same_answers(explainer, there_and_back(explainer, tmp_path), table[-5:])


@pytest.mark.parametrize("name", cs.available_approaches())
def test_groups_sampled_coalitions_and_several_outputs_come_back(tmp_path, name):
    kind = "continuous" if cs.Kind.CONTINUOUS in cs.approaches.find_approach(name).supports else "categorical"
    table = TABLE[COLUMNS[kind]]
    table = pd.concat([table, table[::-1].reset_index(drop=True).add_suffix("2")], axis=1)
    groups = {"both": list(table.columns[:2]), **{column: [column] for column in table.columns[2:]}}
    approach = approach_for(name)
    explainer = fitted(table, scores, approach=approach, groups=groups, n_coalitions=12)
    loaded = there_and_back(explainer, tmp_path)
    same_answers(explainer, loaded, table[:4])
    assert loaded.players_.names == tuple(groups)
    assert not loaded.plan_.is_exact
    np.testing.assert_array_equal(loaded.masks_, explainer.masks_)


def test_a_list_of_approaches_comes_back(tmp_path):
    table = TABLE[["a", "b", "c"]].assign(z=lambda t: t["a"] + np.cos(t["c"]))
    tree = cs.approaches.Ctree(mincriterion=[0.9, 0.5, 0.2])
    explainer = fitted(table, approach=[tree, "gaussian", tree])
    loaded = there_and_back(explainer, tmp_path)
    same_answers(explainer, loaded, table[:4])
    assert [part.approach.name for part in loaded.parts_] == ["ctree", "gaussian"]
    assert loaded.approach[0] is loaded.approach[2]
    assert loaded.approach[1] == "gaussian"


def test_training_rows_that_several_approaches_keep_are_stored_once(tmp_path):
    table = TABLE[["a", "b", "c"]]
    explainer = fitted(table, approach=["independence", "empirical"])
    explainer.save(tmp_path / "explainer")
    held = safetensors.numpy.load_file(tmp_path / "explainer")
    assert sum(array.shape == table.shape for array in held.values()) == 1
    loaded = cs.load_explainer(tmp_path / "explainer", score)
    assert loaded.parts_[0].approach.rows_ is loaded.parts_[1].approach.rows_


@pytest.mark.parametrize(
    "approach",
    [
        cs.approaches.Gaussian(mean=np.zeros(3), covariance=np.eye(3) + 0.5),
        cs.approaches.Gaussian(mean=[0, 1, 2], covariance="ledoit_wolf"),
        cs.approaches.Copula(margins="kde"),
        cs.approaches.Empirical(bandwidth="aicc_by_size", covariance=np.eye(3)),
        cs.approaches.Empirical(bandwidth="aicc", eta=np.float64(0.9)),
        cs.approaches.Ctree(mincriterion=(0.9, 0.2), minsplit=10),
        cs.approaches.RegressionSeparate([Ridge(), DecisionTreeRegressor(max_depth=2), None]),
        cs.approaches.RegressionSeparate(make_pipeline(StandardScaler(), RandomForestRegressor(3))),
        cs.approaches.RegressionSurrogate(RandomForestRegressor(3), n_coalitions_per_row=2),
        cs.approaches.RegressionSurrogate([HistGradientBoostingRegressor(max_iter=5), LinearRegression()]),
    ],
    ids=str,
)
def test_options_of_approaches_come_back(tmp_path, approach):
    table = TABLE[["a", "b", "c"]]
    explainer = fitted(table, approach=approach)
    loaded = there_and_back(explainer, tmp_path)
    same_answers(explainer, loaded, table[:3])
    assert type(loaded.approach) is type(approach)
    assert repr(loaded.approach) == repr(approach)


@pytest.mark.parametrize("convert", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_a_given_joint_table_comes_back(tmp_path, convert):
    table = TABLE[["e", "f"]]
    joint = table.drop_duplicates().assign(joint_prob=0.25)
    explainer = fitted(table, approach=cs.approaches.Categorical(joint_table=convert(joint), share_unseen=False))
    same_answers(explainer, there_and_back(explainer, tmp_path), table[:5])


def test_surrogate_of_levels_is_not_fitted_again(tmp_path, monkeypatch):
    table = TABLE[COLUMNS["mixed"]]
    explainer = fitted(table, approach="regression_surrogate")
    explainer.save(tmp_path / "explainer")

    def refuse(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", refuse)
    same_answers(explainer, cs.load_explainer(tmp_path / "explainer", score), table[:3])


def test_whatever_vaeac_learns_beside_its_networks_comes_back(tmp_path):
    explainer = fitted(TABLE[["a", "b"]], approach=approach_for("vaeac"))
    approach = explainer.parts_[0].approach
    approach.votes_, approach.donors_ = np.array([0.3, 0.1, 0.1, 0.1, 0.1, 0.3]), np.arange(6.0).reshape(3, 2)
    loaded = there_and_back(explainer, tmp_path).parts_[0].approach
    assert loaded.votes_.tolist() == approach.votes_.tolist()
    assert loaded.trust_ == 0.7
    np.testing.assert_array_equal(loaded.donors_, approach.donors_)
    assert {name for name in vars(loaded) if name.endswith("_")} == {n for n in vars(approach) if n.endswith("_")}


def test_missing_values_come_back(tmp_path):
    table = TABLE[["a", "b", "d"]].mask(np.random.default_rng(0).random((60, 3)) < 0.1)
    explainer = fitted(table, lambda t: np.nan_to_num(t["a"]), approach="independence")
    same_answers(explainer, there_and_back(explainer, tmp_path), table[:6])


def test_loaded_explainer_gives_the_same_numbers_in_another_process(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    explainer = cs.Explainer(model, approach="copula", n_samples=16).fit(X)
    explainer.save(tmp_path / "explainer")
    code = (
        "import sys, numpy as np, condshap as cs; from sklearn.linear_model import LinearRegression;"
        "X = np.random.default_rng(0).normal(size=(50, 3)); model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0]);"
        "print(*(v.hex() for v in cs.load_explainer(sys.argv[1], model)(X[:4]).values.ravel().tolist()));"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "explainer")], capture_output=True, text=True, check=True
    )
    numbers, loads_torch = run.stdout.splitlines()
    theirs = [float.fromhex(value) for value in numbers.split()]
    np.testing.assert_allclose(theirs, explainer(X[:4]).values.ravel(), rtol=0, atol=1e-12)
    assert loads_torch == "False"


def tables():
    mixed = TABLE[["a", "c", "d", "e", "f"]].assign(n=np.arange(60) % 7)
    objects = mixed.astype({"e": object, "n": object})
    polars = pl.from_pandas(mixed.assign(d=mixed["d"].astype(str)))
    polars = polars.with_columns(pl.col("d").cast(pl.Enum(["middle", "low", "high"])))
    return {
        "pandas": mixed,
        "objects": objects,
        "small dtypes": mixed.astype({"a": "float32", "n": "int8"}),
        "nullable": mixed.convert_dtypes(),
        "polars": polars,
        "pyarrow": pa.Table.from_pandas(mixed),
        "ordered": mixed.assign(d=pd.Categorical(mixed["d"], ["low", "middle", "high"], ordered=True)),
        "numbered levels": mixed.assign(d=mixed["n"].astype("category")),
    }


@pytest.mark.parametrize("name", tables())
def test_model_gets_its_table_type_back(tmp_path, name):
    table = tables()[name]
    seen = []

    def model(given):
        seen.append(given)
        return np.asarray(given["a"], dtype=float)

    explainer = fitted(table, model, approach="independence", n_samples=4, n_coalitions=9)
    seen.clear()
    explainer.explain(table[:3])
    ours = seen[-1]
    loaded = there_and_back(explainer, tmp_path)
    assert loaded.schema_ == explainer.schema_
    loaded.explain(table[:3])
    theirs = seen[-1]
    assert type(ours) is type(theirs)
    if isinstance(ours, pd.DataFrame):
        pd.testing.assert_frame_equal(ours, theirs)
    else:
        assert ours.equals(theirs)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool", "<U3", object])
def test_arrays_come_back(tmp_path, dtype):
    X = np.array([["10", "1", "0"], ["7", "0", "3"], ["2", "5", "1"], ["0", "1", "2"]] * 5)
    X = X.astype(int).astype(dtype) if dtype != "<U3" else X
    explainer = fitted(X, lambda A: A.astype(float).sum(axis=1), approach="independence")
    same_answers(explainer, there_and_back(explainer, tmp_path), X[:3])


@pytest.mark.parametrize("columns", [[0, 1, 2], [7, 3, 5], pd.MultiIndex.from_product([["p"], ["x", "y", "z"]])])
def test_unusual_column_names_come_back(tmp_path, columns):
    X = pd.DataFrame(TABLE[["a", "b", "c"]].to_numpy(), columns=columns)
    explainer = fitted(X, lambda t: t[t.columns[0]].to_numpy(), approach="gaussian")
    same_answers(explainer, there_and_back(explainer, tmp_path), X[:3])


def test_declared_categories_come_back(tmp_path):
    table = TABLE[["a"]].assign(n=np.arange(60) % 3)
    explainer = cs.Explainer(lambda t: t["n"] + t["a"], approach="ctree").fit(table, categorical=["n"])
    loaded = there_and_back(explainer, tmp_path)
    assert loaded.schema_.of_kind(cs.Kind.CATEGORICAL) == ("n",)
    same_answers(explainer, loaded, table[:3])


@pytest.mark.parametrize("output", [None, "5", 1, np.int64(2), True])
def test_classifiers_come_back_with_the_output_that_was_picked(tmp_path, output):
    table = TABLE[["a", "b", "c"]]
    classes = np.array([3, 5, 8]) if output is not True else np.array([False, True, True])
    model = RandomForestClassifier(5, random_state=0).fit(table, classes[np.arange(60) % 3])
    explainer = fitted(table, model, approach="gaussian", output=output)
    same_answers(explainer, there_and_back(explainer, tmp_path), table[:3])


def test_options_of_the_explainer_come_back(tmp_path):
    table = TABLE[["a", "b", "c"]]
    options = {
        "n_samples": np.int64(16), "groups": {"first": table.columns[:1], "rest": [1, "c"]}, "base_value": 0.25, "seed": 9,
        "n_jobs": 2, "device": "cpu", "memory_budget": "10MB", "progress": False,
    }  # fmt: skip
    explainer = fitted(table, approach="gaussian", **options)
    loaded = there_and_back(explainer, tmp_path)
    found = loaded.get_params(deep=False)
    assert found["groups"] == {"first": ["a"], "rest": [1, "c"]}
    for name in set(options) - {"groups"}:
        assert found[name] == options[name], name
    assert found["model"] is score
    assert found["approach"] == "gaussian"
    same_answers(explainer, loaded, table[:3])
    np.testing.assert_array_equal(clone(loaded).fit(table)(table[:3]).values, explainer(table[:3]).values)


def test_coalitions_that_were_given_come_back(tmp_path):
    table = TABLE[["a", "b", "c"]]
    plan = cs.CoalitionPlan.given(np.eye(3, dtype=bool), [1.0, 2.0, 3.0])
    explainer = fitted(table, scores, approach="gaussian", coalitions=plan, base_value=[0.5, 1])
    loaded = there_and_back(explainer, tmp_path)
    assert loaded.coalitions is loaded.plan_
    same_answers(explainer, loaded, table[:3])


def test_everything_that_was_learned_comes_back(tmp_path):
    """Whoever adds an attribute to the explainer need not think of saving, or learns of it here."""
    explainer = fitted(TABLE[["a", "b", "c"]], approach="gaussian")
    loaded = there_and_back(explainer, tmp_path)
    ours, theirs = ({k for k in vars(one) if k.endswith("_")} for one in (explainer, loaded))
    assert ours - {"training_rows_"} == theirs  # a file of a normal distribution holds nobody's row
    assert loaded.seconds_ == explainer.seconds_
    assert loaded.warnings_ == explainer.warnings_
    for name in ("n_samples_", "base_value_", "error_factors_", "masks_"):
        ours, theirs = getattr(explainer, name), getattr(loaded, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def test_warnings_of_the_fit_come_back(tmp_path):
    table = TABLE[["a", "b"]].assign(k=1.0)
    with pytest.warns(cs.CondShapWarning, match="constant"):
        explainer = fitted(table, approach="independence")
    assert "constant" in there_and_back(explainer, tmp_path).explain(table[:2]).provenance.warnings[0]


def test_a_loaded_explainer_can_be_saved_again(tmp_path):
    table = TABLE[COLUMNS["mixed"]]
    loaded = there_and_back(fitted(table, approach="ctree"), tmp_path)
    first = (tmp_path / "explainer").read_bytes()
    same_answers(loaded, there_and_back(loaded, tmp_path), table[:3])
    assert len((tmp_path / "explainer").read_bytes()) == len(first)


def test_loading_needs_no_pickle(tmp_path, monkeypatch):
    approach = cs.approaches.RegressionSurrogate(RandomForestRegressor(2))
    explainer = fitted(TABLE[["a", "b", "c"]], approach=["ctree", approach])

    def refuse(*_args, **_options):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler", "dump", "dumps", "Pickler"):
        monkeypatch.setattr(pickle, name, refuse)
    there_and_back(explainer, tmp_path)


ARRAYS = {
    "floats": np.arange(6.0).reshape(2, 3),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other": np.arange(8.0)[::2],
    "small": np.ones(3, dtype=np.float32),
    "flags": np.array([True, False]),
    "keys": np.array([2**64 - 1], dtype=np.uint64),
    "positions": np.arange(3, dtype=np.intp),
    "one number": np.array(3, dtype=np.int32),
    "nothing": np.empty((0, 4)),
    "gaps": np.array([np.nan, np.inf, -0.0]),
}


def test_arrays_keep_their_dtype_shape_and_order(tmp_path):
    facts = {"seed": 2**63, "share": 0.1, "name": "Ære", "nothing": None}
    write_state(State({**ARRAYS, "floats again": ARRAYS["floats"]}, facts), tmp_path / "state")
    state = read_state(tmp_path / "state")
    assert state.facts == facts
    assert state.arrays["floats again"] is state.arrays["floats"]
    for name, array in ARRAYS.items():
        found = state.arrays[name]
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
        assert found.flags.writeable
    assert state.arrays["turned"].flags.f_contiguous


def test_values_keep_their_types(tmp_path):
    values = {
        "list": [1, 2.0, "x", None, True],
        "tuple": ((1,), [2]),
        "mapping": {"a": [1], 3: {"b": np.arange(2)}},
        "scalar": np.float32(0.5),
        "estimator": Ridge(alpha=2.0),
    }
    write_state(store_values(values, "a test"), tmp_path / "state")
    assert repr(restore_values(read_state(tmp_path / "state"))) == repr(values)
