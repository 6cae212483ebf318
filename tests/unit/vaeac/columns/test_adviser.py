"""Advice row by row: tables by sets of known features, made once, the same on every device."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condshap.vaeac import VAEACConfig
from condshap.vaeac.columns import adviser as module
from condshap.vaeac.columns.advice import LinearModel
from condshap.vaeac.columns.adviser import Adviser, batched_coefficients, batched_factors
from condshap.vaeac.columns.atoms import Atoms
from condshap.vaeac.columns.learned import Columns

CPU = torch.device("cpu")
COVARIANCE = np.array([[1.0, 0.9, 0.3], [0.9, 2.0, 0.1], [0.3, 0.1, 1.0]])


def encoded(n=500, covariance=COVARIANCE, seed=0):
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=n)[None].astype(np.float32)


def learned(x, missing=None):
    n, D = x.shape[1:]
    return LinearModel.learn(x, np.zeros((n, D), dtype=bool) if missing is None else missing, np.arange(D))


def states(n=800, n_levels=60, spread=0.02, seed=7):
    """Rows (n, 4) of a state and of two numbers that hardly vary within it, and of one that has nothing to do with it."""
    rng = np.random.default_rng(seed)
    state, centre = rng.integers(0, n_levels, n), rng.normal(size=(n_levels, 2))
    return np.column_stack([state, centre[state] + spread * rng.normal(size=(n, 2)), rng.normal(size=n)])


def test_advice_is_zero_for_known_columns_and_a_gap_counts_as_hidden():
    x = encoded()
    missing = np.zeros((500, 3), dtype=bool)
    missing[:50, 1] = True
    x[0, :50, 1] = 0.0
    adviser = Adviser(learned(x, missing), 3, CPU)
    rows = torch.from_numpy(x[:, :60])  # (E, B, D) with one model
    visible = torch.tensor([1.0, 1.0, 0.0]).repeat(1, 60, 1) * torch.from_numpy(~missing[:60]).float()
    advice = adviser(rows, torch.zeros(1, dtype=torch.long), visible)[0].numpy()
    assert not advice[:, 0].any()
    assert advice[:50, 1].all()
    assert not advice[50:, 1].any()
    model = adviser.model
    slope = model.covariances[0, 0, 1] / model.covariances[0, 0, 0]
    assert slope == pytest.approx(0.9, abs=0.15)  # estimated from 450 rows
    np.testing.assert_allclose(advice[:50, 1], slope * (x[0, :50, 0] - model.means[0, 0]), rtol=1e-4)


def test_a_row_gets_the_same_advice_alone_and_among_others():
    adviser, rows = Adviser(learned(encoded()), 3, CPU), torch.from_numpy(encoded(64, seed=5))
    visible = torch.from_numpy((np.random.default_rng(0).random((1, 64, 3)) < 0.5).astype(np.float32))
    together = adviser(rows, torch.zeros(1, dtype=torch.long), visible)
    for i in (0, 7, 63):
        some = slice(i, i + 1)
        alone = adviser(rows[:, some], torch.zeros(1, dtype=torch.long), visible[:, some])
        assert torch.equal(alone, together[:, some])


def advised(X, n_levels, visible):
    """Advice (n, D) on the z-scores, and the adviser."""
    config = VAEACConfig(scales=("standard",)).resolve(len(X), X.shape[1], has_continuous=True)
    columns = Columns.learn(X, Atoms.none(np.asarray(n_levels)), config, None)
    adviser, rows = Adviser(columns.linear, columns.layout.n_continuous, CPU), columns.encode(X, CPU)
    scale = torch.tensor([list(columns.scales).index("standard")])
    visible = torch.from_numpy(visible[:, list(columns.layout.order)].astype(np.float32))[None]
    return adviser(rows.inputs[scale], scale, visible)[0], adviser, visible[0].bool().numpy(), rows.inputs[int(scale)]


def test_advice_that_is_looked_up_is_the_product_with_the_table(monkeypatch):
    X = states()
    X[:30, 0], X[20:60, 1] = np.nan, np.nan
    visible = (np.random.default_rng(1).random(X.shape) < 0.5) & ~np.isnan(X)
    found, adviser, seen, inputs = advised(X, [60, 0, 0, 0], visible)
    assert adviser.is_wide
    for i in (0, 25, 40, 300, 799):
        table, means = adviser.table(seen[i], int(len(adviser.means) - 1))
        np.testing.assert_allclose(found[i], table @ (inputs[i].numpy() - means), atol=2e-5)
    monkeypatch.setattr("condshap.vaeac.columns.adviser.WIDE_FEATURE", 60)
    assert not advised(X, [60, 0, 0, 0], visible)[1].is_wide
    np.testing.assert_allclose(advised(X, [60, 0, 0, 0], visible)[0], found, atol=2e-5)


def test_tables_that_draws_have_made_can_be_added_to_anywhere():
    adviser, rows = Adviser(learned(encoded()), 3, CPU), torch.from_numpy(encoded(3, seed=5))
    one = torch.zeros(1, dtype=torch.long)
    with torch.inference_mode():
        first = adviser(rows, one, torch.tensor([1.0, 0.0, 0.0]).repeat(1, 3, 1)).clone()
    adviser(rows, one, torch.eye(3)[None])
    adviser.table(np.array([True, True, False]), 0)
    again = adviser(rows, one, torch.tensor([1.0, 0.0, 0.0]).repeat(1, 3, 1))
    assert torch.equal(first, again)


def many(M, n=400):
    """A linear model of M correlated numbers on two scales, and random sets of them (40, M), some of them twice."""
    rng = np.random.default_rng(M)
    x = rng.normal(size=(n, M)) + rng.normal(size=(n, 1))
    model = learned(np.stack([x, x**3]).astype(np.float32))
    return model, rng.random((30, M))[rng.integers(0, 30, 40)] < 0.5


@pytest.mark.parametrize("M", [5, 30, 120])
def test_an_accelerator_solves_for_the_same_tables(M):
    model, sets = many(M)
    sets[0], sets[1] = False, True
    for scale in range(2):
        known, covariance = torch.from_numpy(sets), torch.from_numpy(model.covariances[scale])
        tables = batched_coefficients(covariance, known)
        np.testing.assert_allclose(tables, model.tables(sets, scale), atol=1e-8)
        factors = batched_factors(tables, covariance, known, torch.from_numpy(model.least_left(scale)), M - 1)
        expected = model.factors(sets, model.tables(sets, scale), scale, M - 1)
        size = np.abs(expected).max()
        np.testing.assert_allclose(factors @ factors.mT, expected @ expected.swapaxes(1, 2), atol=1e-8 * size**2)
        assert not factors[1].any()


@pytest.mark.parametrize("M", [3, 30, 61, 120])
def test_every_row_gets_the_table_of_its_own_set_and_scale(M):
    model, sets = many(M)
    adviser, x = Adviser(model, M, CPU), torch.from_numpy(np.random.default_rng(0).normal(size=(2, 40, M))).float()
    visible = torch.from_numpy(np.stack([sets, sets[::-1].copy()])).float()
    advice = adviser(x, torch.tensor([1, 0]), visible)
    for e, scale in enumerate([1, 0]):
        for i in range(40):
            table = model.tables(visible[e, i].numpy()[None] > 0, scale)[0]
            expected = table @ (x[e, i].double().numpy() - model.means[scale])
            np.testing.assert_allclose(advice[e, i], expected, atol=1e-4 * (1 + np.abs(expected).max()))


def test_what_draws_ask_for_is_the_conditional_distribution():
    model, sets = many(6)
    adviser, visible = Adviser(model, 4, CPU), torch.from_numpy(sets).float()
    tables = model.tables(sets, 1)
    np.testing.assert_array_equal(adviser.coefficients(visible, 1, slice(2, 5)), tables[:, 2:5])
    below, diagonal = adviser.factors(visible, 1)
    expected = model.factors(sets, tables, 1, 4)
    np.testing.assert_array_equal(below + torch.diag_embed(diagonal), expected)
    assert not below.diagonal(dim1=1, dim2=2).any()


class Counted:
    """Makes one number per set and counts what it made."""

    def __init__(self):
        self.made = []

    def __call__(self, known, scale):
        self.made += [(tuple(row), scale) for row in known]
        return (torch.full((len(known), 16), float(scale)),)


def test_tables_are_made_once_for_each_set_and_scale_that_is_asked_for():
    make = Counted()
    tables, sets = module._Tables(make, at_once=2), torch.eye(5)
    for _ in range(2):
        places, (found,) = tables.find(sets[[0, 1, 2, 0]], torch.tensor([0, 1, 1, 0]))
        assert found[places, 0].tolist() == [0, 1, 1, 0]
    assert len(make.made) == len(set(make.made)) == 3


def test_sets_that_were_asked_for_once_make_room_for_those_that_come_again(monkeypatch):
    """Of 250 features a random set never comes again, and with all tables forgotten training took four times as long."""
    monkeypatch.setattr(module, "LARGEST", 40 * 16 * 4)
    make, rng = Counted(), np.random.default_rng(0)
    usual = rng.random((10, 80)) < 0.5
    tables = module._Tables(make, at_once=100)
    for _ in range(20):
        both = torch.from_numpy(np.concatenate([usual, rng.random((8, 80)) < 0.5]))
        tables.find(both, torch.zeros(len(both), dtype=torch.long))
        assert len(tables._places) <= 40 + 18
    assert len(make.made) == 10 + 20 * 8


def test_where_even_the_usual_sets_need_too_much_room_all_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 8 * 16 * 4)
    make = Counted()
    tables, sets = module._Tables(make, at_once=100), torch.eye(10)
    for _ in range(4):
        places, (found,) = tables.find(sets, torch.zeros(10, dtype=torch.long))
        assert sorted(places.tolist()) == list(range(10))
        assert len(found) == 10
    assert len(make.made) == 40
