import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches.base import CONTINUOUS_ONLY, Donors, DrawnRows
from condshap.approaches.gaussian import Gaussian
from condshap.models.predictor import Predictor
from condshap.numerics.splicing import splice_donors, splice_drawn
from condshap.schema import FeatureSchema
from condshap.values.assignments import Part
from condshap.values.engine import ValueEngine
from condshap.values.host import evaluate
from condshap.values.table import Settings

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(30, 3))


def predictor(function):
    schema = FeatureSchema.learn(TABLE)
    return Predictor.of(function, schema, TABLE)


class Counting:
    """Sum of the columns that counts the rows it was asked for."""

    def __init__(self):
        self.n_rows = 0

    def __call__(self, X):
        self.n_rows += len(X)
        return X.sum(axis=1)


def test_weighted_means_and_variances_by_hand():
    rows = np.arange(12.0).reshape(1, 1, 4, 3)
    weights = np.array([[[1.0, 1.0, 2.0, 0.0]]])
    moments = evaluate(
        [(DrawnRows(rows, weights), TABLE[:1], np.zeros((1, 3), bool))], predictor(lambda X: X.sum(axis=1))
    )[0]
    f, w = rows[0, 0].sum(axis=1), weights[0, 0] / 4
    mean = w @ f
    assert moments.means[0, 0, 0] == pytest.approx(mean)
    concentration = (w**2).sum()
    variance = w @ (f - mean) ** 2 * concentration / (1 - concentration)
    assert moments.variances[0, 0, 0] == pytest.approx(variance)


def test_equal_weights_give_the_usual_variance_of_a_mean():
    rows = RNG.normal(size=(2, 3, 50, 3))
    moments = evaluate([(DrawnRows(rows), TABLE[:3], np.zeros((2, 3), bool))], predictor(lambda X: X[:, 0] * X[:, 1]))[
        0
    ]
    f = rows[..., 0] * rows[..., 1]
    np.testing.assert_allclose(moments.means[..., 0], f.mean(axis=2))
    np.testing.assert_allclose(moments.variances[..., 0], f.var(axis=2, ddof=1) / 50)


def test_none_weights_equal_ones():
    rows = RNG.normal(size=(2, 3, 20, 3))
    f = predictor(lambda X: np.column_stack([X[:, 0], X[:, 1] ** 2]))
    masks = np.zeros((2, 3), bool)
    plain = evaluate([(DrawnRows(rows), TABLE[:3], masks)], f)[0]
    weighted = evaluate([(DrawnRows(rows, np.full((2, 3, 20), 7.0)), TABLE[:3], masks)], f)[0]
    np.testing.assert_allclose(plain.means, weighted.means)
    np.testing.assert_allclose(plain.variances, weighted.variances)


def test_donors_are_spliced_with_the_known_columns():
    masks = np.array([[True, False, False], [False, True, True]])
    indices = RNG.integers(0, 30, size=(2, 4, 5))
    spliced = splice_donors(indices, TABLE, None, TABLE[:4] + 10, masks, may_repeat=True)
    rows = spliced.rows[spliced.positions] if spliced.positions is not None else spliced.rows
    wanted = np.where(masks[:, None, None, :], (TABLE[:4] + 10)[None, :, None, :], TABLE[indices])
    np.testing.assert_array_equal(rows.reshape(2, 4, 5, 3), wanted)


def test_samples_with_equal_known_columns_and_donor_are_evaluated_once():
    model = Counting()
    X = TABLE[[0, 0, 1]]  # the first two rows are the same
    indices = np.broadcast_to(np.arange(10), (1, 3, 10))
    samples = Donors(indices, TABLE, may_repeat=False)
    f = predictor(model)
    before = model.n_rows
    moments = evaluate([(samples, X, np.array([[True, False, False]]))], f)[0]
    assert model.n_rows - before == moments.n_evaluations == 20
    np.testing.assert_allclose(moments.means[0, :, 0], X[:, 0] + TABLE[:10, 1:].sum(axis=1).mean())


def test_repeated_donors_are_evaluated_once_and_count_twice():
    samples = Donors(np.array([[[3, 3, 5]]]), TABLE)
    moments = evaluate([(samples, TABLE[:1], np.zeros((1, 3), bool))], predictor(lambda X: X[:, 0]))[0]
    assert moments.n_evaluations == 2
    assert moments.means[0, 0, 0] == pytest.approx((2 * TABLE[3, 0] + TABLE[5, 0]) / 3)


def test_padding_of_weight_zero_is_never_evaluated():
    weights = np.array([[[0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]])
    samples = Donors(np.array([[[0, 7, 9, 0], [0, 0, 0, 8]]]), TABLE, weights)
    masks = np.array([[True, False, False]])
    moments = evaluate([(samples, TABLE[1:3], masks)], predictor(lambda X: X.sum(axis=1)))[0]
    assert moments.n_evaluations == 3
    wanted = [TABLE[1, 0] + TABLE[[7, 9], 1:].sum(axis=1).mean(), TABLE[2, 0] + TABLE[8, 1:].sum()]
    np.testing.assert_allclose(moments.means[0, :, 0], wanted)


def test_blocks_cover_every_pair_once_and_respect_the_budget():
    n_samples = np.array([16, 256, 256, 32, 16, 16, 16, 64, 16])
    engine = ValueEngine(predictor(lambda X: X[:, 0]), Settings(memory_budget=2**20))
    seen = np.zeros((9, 50), dtype=int)
    for block in engine.plan_blocks(Part(Gaussian(), np.arange(1, 8)), n_samples, (50, 10)):
        assert (n_samples[block.coalitions] == block.n_samples).all()
        seen[block.coalitions, block.rows] += 1
        n_rows = len(range(*block.rows.indices(50)))
        assert len(block.coalitions) * n_rows * block.n_samples * 10 * 8 <= 2**20
    assert (seen[1:-1] == 1).all()
    assert (seen[[0, -1]] == 0).all()


def test_an_approach_that_estimates_values_directly_needs_no_samples():
    class Half:
        name, supports, handles_missing = "half", CONTINUOUS_ONLY, False

        def estimate(self, X, masks):
            return np.broadcast_to(X.sum(axis=1)[None, :, None] / 2, (len(masks), len(X), 1)).copy()

    masks = np.ones((4, 3), bool)
    parts, model = [Part(Half(), np.array([1, 2]))], predictor(lambda X: X[:, 0])
    moments = ValueEngine(model, Settings()).estimate(parts, TABLE, masks, np.zeros(4, int), seed=0)
    np.testing.assert_allclose(moments.means[1:3, :, 0], np.tile(TABLE.sum(axis=1) / 2, (2, 1)))
    assert (moments.variances == 0).all()
    assert moments.n_evaluations == 0


def test_equal_drawn_rows_are_one_row_where_they_may_repeat():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(3, 4, 16, 3)).astype(float)
    rows[1] += rng.normal(size=(4, 16, 3))
    flat = rows.reshape(-1, 3)
    for may_repeat, n in ((np.array([True, False, True]), 64 + 8), (None, 192), (np.array([False, True, False]), 192)):
        spliced = splice_drawn(rows, may_repeat)
        assert len(spliced.rows) == n
        found = spliced.rows if spliced.positions is None else spliced.rows[spliced.positions]
        assert np.array_equal(found, flat)


def test_levels_that_were_drawn_are_predicted_once_with_the_same_answer(monkeypatch):
    rng = np.random.default_rng(1)
    common = rng.normal(size=(300, 1))
    codes = np.digitize(common + rng.normal(size=(300, 4)), [-0.5, 0.5])
    table = pd.DataFrame({name: pd.Categorical(codes[:, j].astype(str)) for j, name in enumerate("abcd")})
    table["x"] = common[:, 0]

    def model(T):
        numbers = T.astype(float).to_numpy()
        return numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + numbers[:, -1]

    for columns, least in ((list("abcd"), 10), (list("abcdx"), 1.05)):
        explainer = cs.Explainer(
            model, approach=cs.approaches.VAEAC(epochs=3, scales=["standard"], progress=False)
        ).fit(table[columns])
        short = explainer.explain(table[columns][:30])
        with monkeypatch.context() as patch:
            patch.setattr("condshap.values.host.splice_drawn", lambda rows, may_repeat: splice_drawn(rows, None))
            full = explainer.explain(table[columns][:30])
        assert np.array_equal(short.value_table.values, full.value_table.values)
        assert np.array_equal(short.std_errors, full.std_errors)
        assert least * short.value_table.n_evaluations < full.value_table.n_evaluations
