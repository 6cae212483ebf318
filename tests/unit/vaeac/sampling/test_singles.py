"""Rows that are each asked about once: compiled draws are those of the usual way, up to rounding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from condshap.approaches.vaeac import VAEAC
from condshap.coalitions import all_coalitions
from condshap.numerics.jit import entry_kernel
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.ensemble import as_array
from condshap.vaeac.network.compiled import BLOCK, _soften
from condshap.vaeac.sampling.tiles import Asked

LEVELS = [3, 0, 0, 2, 0, 0]
MASKS = np.array([[(c >> j) & 1 for j in range(6)] for c in (0, 1, 6, 9, 23, 40, 62)], dtype=bool)
QUICK = VAEACConfig(epochs=3, width=16, latent=4)
CONFIGS = {
    "default": QUICK,
    "odd widths": replace(QUICK, width=7, latent=3, depth=2),
    "support": replace(QUICK, scales=("support", "standard")),
    "paper": VAEACConfig.paper(epochs=3, n_restarts=1, restart_epochs=1, width=8, latent=2),
    "a single layer": replace(QUICK, depth=1, scales=("normal_scores",)),
}


@pytest.fixture(scope="module", params=CONFIGS)
def model(request, mixed_rows):
    return Networks(CONFIGS[request.param]).fit(mixed_rows(150), LEVELS)


def asked(rows, mask, n_points=8, **options):
    points = np.arange(len(rows)) % n_points
    keys = row_keys(np.arange(len(rows), dtype=np.float64)[:, None])
    return Asked(rows.copy(), mask[None], 1, keys, 0, points=points, n_points=n_points, **options)


def both_ways(model, question, member):
    usual = as_array(model.draw(question, [member]))[0, :, 0]
    model.fill_each(question, member)
    return question.X, usual


def assert_same_up_to_rounding(found, usual):
    """Numbers agree to six digits of their spread; a level may flip where a share is just at its edge, in 1 of 200 rows."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(usual))
    spread = np.nanstd(usual, axis=0) + 1e-9
    flipped = (np.abs(found - usual) > 1e-4 * spread).any(axis=1)
    assert flipped.mean() <= 0.005


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_draws_are_those_of_the_usual_way(model, mask, mixed_rows):
    rows = mixed_rows(700, seed=3)
    for member in (0, len(model.fitted_.members) - 1):
        found, usual = both_ways(model, asked(rows, mask), member)
        np.testing.assert_array_equal(found[:, mask], rows[:, mask])
        assert_same_up_to_rounding(found, usual)


def test_blind_draws_keep_what_is_known(model, mixed_rows):
    rows = mixed_rows(300, seed=4)
    found, usual = both_ways(model, asked(rows, MASKS[4], blind=True), 0)
    np.testing.assert_array_equal(found[:, MASKS[4]], rows[:, MASKS[4]])
    assert_same_up_to_rounding(found, usual)


@pytest.mark.parametrize("fill_missing", [True, False])
def test_rows_with_gaps_have_the_very_draws_of_the_usual_way(mixed_with_gaps, mixed_rows, fill_missing):
    rows = mixed_rows(300, seed=5, gaps=0.2)
    found, usual = both_ways(mixed_with_gaps, asked(rows, MASKS[4], fill_missing=fill_missing), 0)
    has_gaps = np.isnan(rows[:, MASKS[4]]).any(axis=1)
    np.testing.assert_array_equal(found[has_gaps], usual[has_gaps])
    assert_same_up_to_rounding(found[~has_gaps], usual[~has_gaps])


@pytest.mark.parametrize("mask", [MASKS[0], MASKS[1], MASKS[3], MASKS[4]], ids=str)
def test_draws_do_not_depend_on_other_rows(model, mask, mixed_rows):
    # 5000 rows that know levels alone are drawn in groups that know the same, 3 rows are not
    rows = mixed_rows(5000, seed=6)
    together, few = asked(rows, mask), np.array([4711, 3, BLOCK])
    assert together.keys is not None
    assert together.points is not None
    apart = replace(together, X=rows[few], keys=together.keys[few], points=together.points[few])
    for question in (together, apart):
        model.fill_each(question, 0)
    np.testing.assert_array_equal(together.X[few], apart.X)


def test_draws_do_not_depend_on_gaps_of_other_rows(mixed_with_gaps, mixed_rows):
    rows = mixed_rows(300, seed=5, gaps=0.2)
    together = asked(rows, MASKS[4], fill_missing=True)
    complete = np.flatnonzero(~np.isnan(rows[:, MASKS[4]]).any(axis=1))
    apart = together.only(complete)
    assert 0 < len(complete) < len(rows)
    for question in (together, apart):
        mixed_with_gaps.fill_each(question, 0)
    np.testing.assert_array_equal(together.X[complete], apart.X)


def test_many_levels_and_columns_of_few_values_are_drawn():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 30, 400), rng.choice([1.5, 2.0, 7.0], 400), rng.normal(size=400)])
    model = Networks(QUICK).fit(rows, [30, 0, 0])
    for mask in np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=bool):
        found, usual = both_ways(model, asked(rows, mask), 0)
        assert_same_up_to_rounding(found, usual)


@pytest.mark.parametrize("shrink", [True, False])
def test_a_chain_starts_with_the_samples_of_the_coalition(mixed_rows, shrink):
    X = mixed_rows(200)
    X = np.column_stack([X, 2 * X[:, 4] + 1])  # one that repeats another
    plan = all_coalitions(7)
    approach = VAEAC(epochs=3, width=8, latent=2, shrink=shrink, progress=False)
    approach.fit(X, FeatureSchema.learn(X), plan=plan, seed=0)
    rows, mask = X[:20].copy(), plan.masks[37]
    keys = row_keys(rows)
    usual = approach.sample(rows, mask[None], 16, keys=keys, seed=1)
    start = approach.sample_start(rows, mask, 16, keys=keys, seed=1)
    np.testing.assert_array_equal(rows, X[:20])
    assert_same_up_to_rounding(start.rows.reshape(-1, 7), usual.rows.reshape(-1, 7))
    for name in ("weights", "members", "may_repeat"):
        np.testing.assert_array_equal(getattr(start, name), getattr(usual, name))


def test_known_rows_are_left_alone(mixed_rows):
    X = mixed_rows(100)
    approach = VAEAC(epochs=2, width=8, latent=2, scales=("standard",), shrink=False, progress=False)
    approach.fit(X, FeatureSchema.learn(X), plan=all_coalitions(6), seed=0)
    known = np.broadcast_to(X[:5, None], (5, 4, 6))
    approach.sample_each(known, MASKS[4], keys=row_keys(X[:5]), seed=0)
    np.testing.assert_array_equal(known[:, 2], X[:5])


def test_softplus_is_that_of_torch():
    @entry_kernel
    def soften(x, floor):
        _soften(x, floor)

    x = np.linspace(-60, 60, 8 * BLOCK, dtype=np.float32).reshape(8, BLOCK)
    wanted = torch.nn.functional.softplus(torch.from_numpy(x).double()).numpy()
    found = x.copy()
    soften(found, 0.0)
    np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-9)
    soften(x, 0.5)
    np.testing.assert_allclose(x, np.maximum(wanted, 0.5), rtol=3e-7)
