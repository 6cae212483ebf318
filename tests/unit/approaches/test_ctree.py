import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches import Ctree
from condshap.coalitions import all_coalitions
from condshap.ctree import TrainingTable, grow_tree
from condshap.exceptions import OptionError
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.testing import example_table

TABLE = example_table(400)[["a", "b", "d", "e"]]
SCHEMA = FeatureSchema.learn(TABLE)
X = SCHEMA.encode(TABLE)
LEVELS = [0, 0, 3, 2]


def fitted(**options):
    return Ctree(**options).fit(X, SCHEMA, plan=all_coalitions(4), seed=0)


def test_donors_are_the_rows_of_the_leaf():
    mask = np.array([True, False, True, False])
    donors = fitted().sample(X[:10], mask[None], 400, keys=row_keys(X[:10]), seed=0)
    tree = grow_tree(TrainingTable.build(X, LEVELS), [0, 2], [1, 3])
    assert tree.n_leaves > 1
    for r, leaf in enumerate(tree.leaf_of(X[:10])):
        used = donors.indices[0, r][donors.weights[0, r] > 0]
        assert used.tolist() == tree.rows_of(leaf).tolist()
    assert (donors.error_factor == 0).all()


def test_a_large_leaf_is_sampled_without_replacement_and_evenly():
    # mincriterion close to 1: a stump, so that all 400 rows are in one leaf
    stump = fitted(mincriterion=0.9999999999999999, minsplit=10**6)
    mask = np.array([[True, False, True, False]])
    keys = np.arange(3000, dtype=np.uint64)
    donors = stump.sample(np.repeat(X[:1], 3000, axis=0), mask, 50, keys=keys, seed=0)
    assert donors.indices.shape == (1, 3000, 50)
    assert (np.diff(np.sort(donors.indices[0], axis=1), axis=1) > 0).all()
    np.testing.assert_allclose(donors.error_factor, 1 - 50 / 400)
    counts = np.bincount(donors.indices.ravel(), minlength=400)
    # every row is drawn with probability 1/8: 375 +- 18 times; 5 standard errors, false alarm 2e-4 over 400 rows
    assert (np.abs(counts - 375) < 5 * 18.2).all()


def test_controls_may_differ_by_number_of_known_features():
    by_size = fitted(minsplit=[20, 10**6, 20])
    one = by_size._tree(np.array([True, False, False, False]))
    two = by_size._tree(np.array([True, True, False, False]))
    assert one.n_leaves > 1
    assert two.n_leaves == 1


def test_mixed_features_are_explained_and_dependence_is_found():
    model = lambda t: t["a"].to_numpy() + (t["d"] == "high").to_numpy()  # noqa: E731
    explanation = cs.explain(model, TABLE, TABLE.iloc[:20], approach="ctree")
    blind = cs.explain(model, TABLE, TABLE.iloc[:20], approach="independence", n_samples=400)
    assert float(explanation.msev) < float(blind.msev)
    np.testing.assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), explanation.predictions, atol=1e-9
    )
    assert np.abs(explanation.values[:, 3]).mean() > 5 * np.abs(blind.values[:, 3]).mean() + 0.01  # e matters through a


def test_trees_are_grown_once_and_only_when_needed():
    explainer = cs.Explainer(lambda t: t["a"].to_numpy(), approach="ctree", check_draws=False).fit(TABLE)
    approach = explainer.parts_[0].approach
    assert len(approach.trees_) <= 1  # the trial of one coalition at fit
    explainer.explain(TABLE.iloc[:2])
    assert len(approach.trees_) == 14
    before = dict(approach.trees_)
    explainer.explain(TABLE.iloc[2:4])
    assert all(approach.trees_[name] is tree for name, tree in before.items())


def test_trees_hold_row_numbers_and_no_rows():
    tree = fitted()._tree(np.array([True, True, False, False]))
    assert tree.leaf_rows.dtype.itemsize == 4
    assert len(tree.leaf_rows) == len(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minbucket": 0}, "minbucket must be an integer from 1 to .* got 0"),
        ({"minsplit": 0}, "minsplit must be an integer from 1"),
        ({"minbucket": 2.5}, "minbucket must be an integer"),
        ({"mincriterion": 1.0}, "mincriterion must be at least 0 and below 1, got 1.0"),
        ({"mincriterion": [0.5, 0.5]}, "mincriterion must be one number, or 3 for 1 to 3 known features, got 2"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        cs.explain(lambda t: t["a"].to_numpy(), TABLE, TABLE.iloc[:1], approach=Ctree(**options))


def test_missing_values_are_refused_by_name():
    gaps = TABLE.assign(b=TABLE["b"].where(np.arange(400) != 7))
    with pytest.raises(cs.CondShapError, match=r"'ctree' needs complete training rows, .* columns \['b'\]"):
        cs.explain(lambda t: t["a"].to_numpy(), gaps, gaps.iloc[:1], approach="ctree")


def test_a_level_that_training_rows_never_had_is_refused():
    table = pd.DataFrame({"g": pd.Categorical(["u", "v"] * 50, categories=["u", "v", "w"]), "x": np.arange(100.0)})
    rows = pd.DataFrame({"g": pd.Categorical(["w"], categories=["u", "v", "w"]), "x": [3.0]})
    with pytest.raises(cs.exceptions.SchemaError, match="unseen"):
        cs.explain(lambda t: t["x"].to_numpy(), table, rows, approach="ctree")
