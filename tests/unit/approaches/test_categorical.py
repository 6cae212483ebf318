"""Joint frequency tables, against sums written out cell by cell."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from condshap.approaches import Categorical
from condshap.coalitions import all_coalitions, make_plan
from condshap.exceptions import OptionError, SchemaError
from condshap.numerics.chains import Chain
from condshap.schema import FeatureSchema

LEVELS = {"colour": ["blue", "green", "red"], "size": ["large", "small"], "shape": ["a", "b", "c", "d"]}


def outputs(rows):
    """Two outputs with interactions, so that nothing but the right cells gives the right sum."""
    return np.column_stack([rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2] + rows[:, 0]), np.exp(-rows.sum(axis=1))])


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    columns = {name: pd.Categorical(rng.choice(levels, n), categories=levels) for name, levels in LEVELS.items()}
    return pd.DataFrame(columns)


def fit(approach, rows, schema):
    plan = all_coalitions(rows.shape[1])
    return approach.fit(rows, outputs(rows), schema, plan=plan, seed=0, predict=outputs)


def brute_force(train, rows, masks, weights=None, *, epsilon, shared):
    """v(S) of every coalition and row by a loop over all table entries, shape (C, R, O)."""
    weights = np.ones(len(train)) if weights is None else weights
    is_seen = [bool(((train == row).all(axis=1) & (weights > 0)).any()) for row in rows]
    values = np.empty((len(masks), len(rows), 2))
    for (c, mask), (i, row) in itertools.product(enumerate(masks), enumerate(rows)):
        unseen = [tuple(other) for j, other in enumerate(rows) if not is_seen[j] and (shared or j == i)]
        extra = np.array(sorted(set(unseen))).reshape(-1, len(row))
        cells = np.concatenate([train, extra])
        p = np.concatenate([weights, np.full(len(extra), epsilon)])
        p = np.where((cells[:, mask] == row[mask]).all(axis=1), p, 0.0)
        values[c, i] = p @ outputs(cells) / p.sum()
    return values


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("epsilon", [0.001, 0.5])
def test_values_equal_the_sum_over_all_agreeing_training_rows(shared, epsilon):
    frame = table(40)
    schema = FeatureSchema.learn(frame)
    encoded = schema.encode(frame)
    train, rows = encoded[:12], encoded[12:]
    masks = all_coalitions(3).masks
    values = fit(Categorical(epsilon, share_unseen=shared), train, schema).estimate(rows, masks)
    expected = brute_force(train, rows, masks, epsilon=epsilon, shared=shared)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@given(seed=st.integers(0, 2**32), n_train=st.integers(2, 30), n_rows=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_values_equal_brute_force_for_any_table(seed, n_train, n_rows):
    n_levels = [2, 3, 5, 2, 1]
    codes = np.random.default_rng(seed).integers(0, n_levels, size=(n_train + n_rows, 5)).astype(float)
    schema = FeatureSchema.learn(pd.DataFrame({c: list("uvwxy") for c in "abcde"}))
    train, rows, masks = codes[:n_train], codes[n_train:], all_coalitions(5).masks
    for shared in (False, True):
        values = fit(Categorical(share_unseen=shared), train, schema).estimate(rows, masks)
        expected = brute_force(train, rows, masks, epsilon=0.001, shared=shared)
        np.testing.assert_allclose(values, expected, rtol=1e-11)


def test_many_levels_and_columns_outgrow_no_key():
    """40 columns of 50 levels have 50^40 combinations: keys are shortened on the way, exactly."""
    rng = np.random.default_rng(3)
    train = rng.integers(0, 50, size=(300, 40)).astype(float)
    rows = train[rng.integers(0, 300, size=20)]
    frame = pd.DataFrame(np.concatenate([train, np.tile(np.arange(50.0)[:, None], 40)])).astype(int).astype("category")
    schema = FeatureSchema.learn(frame.rename(columns=str))
    plan = make_plan(40, 60, seed=0)
    fitted = Categorical().fit(train, outputs(train), schema, plan=plan, seed=0, predict=outputs)
    expected = brute_force(train, rows, plan.masks, epsilon=0.001, shared=True)
    np.testing.assert_allclose(fitted.estimate(rows, plan.masks), expected, rtol=1e-11)


def test_more_rows_than_fit_a_block_get_the_same_values():
    frame = table(5000, seed=4)
    schema = FeatureSchema.learn(frame)
    encoded, masks = schema.encode(frame), all_coalitions(3).masks
    fitted = fit(Categorical(), encoded[:200], schema)
    together = fitted.estimate(encoded, masks)
    apart = np.concatenate([fitted.estimate(part, masks) for part in np.array_split(encoded, 50)], axis=1)
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_a_row_alone_gets_its_values_whatever_the_others():
    frame = table(60, seed=1)
    schema = FeatureSchema.learn(frame)
    encoded, masks = schema.encode(frame), all_coalitions(3).masks
    fitted = fit(Categorical(), encoded[:10], schema)
    together = fitted.estimate(encoded[10:], masks)
    for i, row in enumerate(encoded[10:]):
        np.testing.assert_array_equal(fitted.estimate(row[None], masks)[:, 0], together[:, i])


def test_explaining_an_unseen_row_twice_changes_nothing():
    frame = table(60, seed=1)
    schema = FeatureSchema.learn(frame)
    encoded, masks = schema.encode(frame), all_coalitions(3).masks
    fitted = fit(Categorical(epsilon=0.3), encoded[:10], schema)
    once, rows = fitted.estimate(encoded[10:], masks), np.repeat(encoded[10:], 2, axis=0)
    np.testing.assert_allclose(fitted.estimate(rows, masks)[:, ::2], once, rtol=1e-12)


def test_the_model_is_asked_once_per_unseen_cell_and_never_for_seen_ones():
    frame = table(60, seed=1)
    schema = FeatureSchema.learn(frame)
    encoded = schema.encode(frame)
    asked = []

    def predict(rows):
        asked.append(rows.copy())
        return outputs(rows)

    fitted = Categorical().fit(
        encoded[:10], outputs(encoded[:10]), schema, plan=all_coalitions(3), seed=0, predict=predict
    )
    fitted.estimate(encoded[:10], all_coalitions(3).masks)
    assert asked == []
    fitted.estimate(encoded[10:], all_coalitions(3).masks)
    seen = {tuple(row) for row in encoded[:10]}
    assert sorted(map(tuple, np.concatenate(asked))) == sorted({tuple(row) for row in encoded[10:]} - seen)


def joint_table(seed=0):
    cells = pd.DataFrame(list(itertools.product(*LEVELS.values())), columns=list(LEVELS))
    weights = np.random.default_rng(seed).random(len(cells))
    return cells.assign(joint_prob=weights / weights.sum())


def test_a_given_joint_table_is_used_instead_of_frequencies():
    frame, given_table = table(40), joint_table()
    schema = FeatureSchema.learn(frame)
    encoded, masks = schema.encode(frame), all_coalitions(3).masks
    values = fit(Categorical(joint_table=given_table), encoded[:20], schema).estimate(encoded[20:], masks)
    cells = schema.encode(given_table.drop(columns="joint_prob"))
    weights = given_table["joint_prob"].to_numpy()
    expected = brute_force(cells, encoded[20:], masks, weights, epsilon=0.001, shared=True)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_training_frequencies_as_a_given_table_change_nothing():
    frame = table(40)
    train = frame[:15]
    shares = train.value_counts(normalize=True).rename("joint_prob").reset_index()
    model = lambda x: outputs(np.column_stack([x[c].cat.codes for c in x.columns]).astype(float))  # noqa: E731
    counted = cs.explain(model, train, frame[15:], approach="categorical")
    given_table = cs.explain(model, train, frame[15:], approach=Categorical(joint_table=shares.sample(frac=1)))
    np.testing.assert_allclose(given_table.values, counted.values, atol=1e-12)


def test_cells_of_a_given_table_may_be_split_over_rows_and_be_impossible():
    frame, given_table = table(40), joint_table()
    schema = FeatureSchema.learn(frame)
    encoded, masks = schema.encode(frame), all_coalitions(3).masks
    halves = pd.concat([given_table.assign(joint_prob=given_table["joint_prob"] / 2)] * 2)
    halves = pd.concat([halves, given_table.assign(joint_prob=0.0)])
    whole = fit(Categorical(joint_table=given_table), encoded[:20], schema).estimate(encoded[20:], masks)
    split = fit(Categorical(joint_table=halves), encoded[:20], schema).estimate(encoded[20:], masks)
    np.testing.assert_allclose(split, whole, rtol=1e-12)


def wrong_sum(t):
    return t.assign(joint_prob=t["joint_prob"] * 1.01)


def negative(t):
    return t.assign(joint_prob=[-0.1, *t["joint_prob"][1:]])


def gap(t):
    return t.assign(size=[None, *t["size"][1:]])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            wrong_sum,
            OptionError,
            r"must have probabilities that sum to 1 in 'joint_prob', got a sum of 1\.01 over 24 rows",
        ),
        (negative, OptionError, r"probabilities from 0 to 1 in 'joint_prob', got \[-0\.1\] in rows \[0\]"),
        (lambda t: t.drop(columns="joint_prob"), SchemaError, "must have a column 'joint_prob'"),
        (
            lambda t: t.drop(columns="size"),
            SchemaError,
            r"joint_table must have the features .* but lack \['size'\]",
        ),
        (lambda t: t.replace("blue", "red"), SchemaError, r"cover the levels .* column 'colour' has no \['blue'\]"),
        (
            lambda t: t.replace("blue", "pink"),
            SchemaError,
            r"column 'colour' must hold the levels .* unseen levels \['pink'\]",
        ),
        (gap, SchemaError, r"must be complete, got missing values in column 'size', rows \[0\]"),
        (lambda t: t.assign(joint_prob="x"), OptionError, "probabilities from 0 to 1"),
        (lambda t: "a table", SchemaError, "a table must be a pandas"),
    ],
)
def test_a_joint_table_that_does_not_fit_is_refused(change, error, message):
    frame = table(40)
    approach = Categorical(joint_table=change(joint_table()))
    with pytest.raises(error, match=message):
        cs.Explainer(lambda x: np.zeros(len(x)), approach=approach).fit(frame)


@pytest.mark.parametrize("epsilon", [0, -0.5, np.nan, np.inf, "small", None, True])
def test_epsilon_must_be_a_positive_number(epsilon):
    with pytest.raises(OptionError, match=r"epsilon must be a positive number, .* got .*Use a small one"):
        cs.Explainer(lambda x: np.zeros(len(x)), approach=Categorical(epsilon=epsilon)).fit(table(20))


def test_continuous_columns_are_refused():
    frame = table(20).assign(weight=np.arange(20.0))
    with pytest.raises(
        SchemaError, match=r"'categorical' needs categorical features, got continuous columns \['weight'\]"
    ):
        cs.Explainer(lambda x: np.zeros(len(x)), approach="categorical").fit(frame)


def test_samples_are_refused():
    with pytest.raises(OptionError, match="uses no samples"):
        cs.Explainer(lambda x: np.zeros(len(x)), approach="categorical", n_samples=10).fit(table(20))


def test_a_classifier_is_explained_for_all_classes_at_once():
    frame = table(300, seed=5)
    target = np.where(frame["colour"] == "red", "yes", np.where(frame["size"] == "small", "no", "perhaps"))
    encoder = make_column_transformer((OneHotEncoder(), list(LEVELS)))
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, target)
    explanation = cs.explain(model, frame, frame[:5], approach="categorical")
    assert explanation.values.shape == (5, 3, 3)
    np.testing.assert_allclose(explanation.values.sum(axis=2), 0, atol=1e-12)
    assert (explanation.std_errors == 0).all()


def test_twenty_binary_features_and_many_rows_take_seconds():
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(100_050, 20)) + 0.5 * rng.normal(size=(100_050, 1)) > 0).astype(float)
    frame = pd.DataFrame(rows[:100]).astype(bool).rename(columns=str)
    schema, plan = FeatureSchema.learn(frame), make_plan(20, 200, seed=0)
    train = rows[:100_000]
    start = time.process_time()
    fitted = Categorical().fit(train, outputs(train), schema, plan=plan, seed=0, predict=outputs)
    values = fitted.estimate(rows[100_000:], plan.masks)
    assert time.process_time() - start < 10  # about 0.8 s on a free core
    assert np.isfinite(values).all()


def brute_force_along(train, row, mask, components, confounded, own):
    """v(S) after x_S was set, (O,): every cell that the row may come to lie in, in a list, one component after the other."""
    cells, weights = np.concatenate([train, row[None]]), np.append(np.ones(len(train)), own)
    states, earlier = [(row, 1.0)], []
    for component, is_confounded in zip(components, confounded, strict=True):
        new = [j for j in component if not mask[j]]
        given = earlier if is_confounded else earlier + [j for j in component if mask[j]]
        following = []
        for state, share in states if new else []:
            p = np.where((cells[:, given] == state[given]).all(axis=1), weights, 0.0)
            p = p if p.sum() else weights
            for cell, part in zip(cells, p / p.sum(), strict=True):
                moved = state.copy()
                moved[new] = cell[new]
                following += [(moved, share * part)] if part else []
        states, earlier = following or states, earlier + component
    return sum(share * outputs(state[None])[0] for state, share in states)


CHAINS = {
    "single": ([[1], [0], [2]], (False, False, False)),
    "mixed": ([[2, 0], [1]], (True, False)),
    "within": ([[0], [1, 2]], (False, True)),
    "marginal": ([[0, 1, 2]], (True,)),
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", CHAINS)
def test_along_a_causal_chain_all_cells_that_rows_may_come_to_lie_in_are_summed(name, shared):
    components, confounded = CHAINS[name]
    schema = FeatureSchema.learn(table(40))
    # few rows, so that what was set and drawn often agrees with none of them
    train, rows = schema.encode(table(9, seed=3)), schema.encode(table(8, seed=4))
    approach = fit(Categorical(epsilon=0.5, share_unseen=shared), train, schema)
    is_seen = np.array([(train == row).all(axis=1).any() for row in rows])
    assert 0 < is_seen.sum() < len(rows)
    masks = all_coalitions(3).masks[1:-1]
    chain = Chain(np.array([np.isin(np.arange(3), one) for one in components]), confounded)
    found = approach.along(chain).estimate(rows, masks)
    unseen = np.unique(rows[~is_seen], axis=0)
    for (c, mask), (i, row) in itertools.product(enumerate(masks), enumerate(rows)):
        # with shared cells every unseen one is a training row that counts 0.5: twice as many rows, all of weight 1
        cells = np.concatenate([train, train, unseen]) if shared else train
        wanted = brute_force_along(cells, row, mask, components, confounded, 0.0 if shared or is_seen[i] else 0.5)
        np.testing.assert_allclose(found[c, i], wanted, rtol=1e-12, err_msg=f"{mask}, row {i}")
    alone = approach.along(chain).estimate(rows[2:3], masks)
    if not shared:
        np.testing.assert_array_equal(alone[:, 0], found[:, 2])
    assert approach.chain_ is None  # the copy alone follows the chain


def test_causal_values_of_levels_are_exact_and_one_confounded_component_is_the_marginal_game():
    frame = table(60)

    def model(X):
        return outputs(np.column_stack([X[name].cat.codes for name in LEVELS]))[:, 0]

    options = {"causal_ordering": [list(LEVELS)], "confounding": True, "progress": False, "check_draws": False}
    causal = cs.explain(model, frame, frame[:5], approach="categorical", **options)
    marginal = cs.explain(model, frame, frame[:5], approach="independence", n_samples=60, progress=False)
    np.testing.assert_allclose(causal.values, marginal.values, atol=1e-12)
    assert not causal.std_errors.any()
    assert not causal.has_msev
