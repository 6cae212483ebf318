"""Draws along a causal chain, against closed forms of normal distributions and against each other."""

import numpy as np
import pytest

from condshap.approaches import find_approach
from condshap.approaches.base import Capabilities, Donors, DrawnRows
from condshap.coalitions import all_coalitions
from condshap.numerics.chains import Chain
from condshap.numerics.gaussian import ChainedNormal, NormalModel, lower_factor
from condshap.schema import FeatureSchema
from condshap.seeding import row_keys
from condshap.values.interventions import CausalSampler, pick_donors

CORRELATION = np.array([[1.0, 0.6, 0.5, 0.3], [0.6, 1.0, 0.4, 0.5], [0.5, 0.4, 1.0, 0.6], [0.3, 0.5, 0.6, 1.0]])
CHAINS = {
    "no confounding": Chain(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=bool), (False, False, False)),
    "confounded": Chain(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool), (True, True)),
    "mixed": Chain(np.array([[0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0]], dtype=bool), (False, True, False)),
}
MASKS = all_coalitions(4).masks[1:-1]


def normal_rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) @ np.linalg.cholesky(CORRELATION).T


def fitted(name, rows, **options):
    schema = FeatureSchema.learn(rows)
    return find_approach(name)(**options).fit(rows, schema, plan=all_coalitions(rows.shape[1]), seed=0)


def simulate(chain, mask, x, n, rng):
    """Draw by the definition, one component after the other, with scikit-free algebra."""
    X = np.tile(x, (n, 1))
    for k, component in enumerate(chain.components):
        new = np.flatnonzero(component & ~mask)
        old = np.flatnonzero(chain.components[:k].any(axis=0) | (component & mask & (not chain.confounded[k])))
        if not len(new):
            continue
        slopes = np.linalg.lstsq(CORRELATION[np.ix_(old, old)], CORRELATION[np.ix_(old, new)], rcond=None)[0]
        spread = CORRELATION[np.ix_(new, new)] - CORRELATION[np.ix_(new, old)] @ slopes
        X[:, new] = X[:, old] @ slopes + rng.normal(size=(n, len(new))) @ lower_factor(spread).T
    return X


@pytest.mark.parametrize("name", CHAINS)
def test_maps_of_a_normal_chain_are_those_of_its_definition(name):
    # means and covariances of 40,000 simulated rows; 5 standard errors, some 200 numbers: one false alarm in 10,000 runs
    chain, rng, x = CHAINS[name], np.random.default_rng(0), np.array([1.0, -0.5, 2.0, 0.3])
    model = ChainedNormal(np.zeros(4), np.ones(4), CORRELATION, chain)
    for mask, given in zip(MASKS, model.condition(MASKS), strict=True):
        drawn = simulate(chain, mask, x, 40_000, rng)[:, given.unknown]
        np.testing.assert_allclose(drawn.mean(axis=0), given.predict(x[None])[0], atol=5 / 200)
        covariance = given.factor @ given.factor.T
        np.testing.assert_allclose(np.cov(drawn.T).reshape(covariance.shape), covariance, atol=5 * 1.5 / 200)


def test_a_chain_of_one_component_is_the_conditional_distribution():
    chain = Chain(np.ones((1, 4), dtype=bool), (False,))
    model = ChainedNormal(np.zeros(4), np.ones(4), CORRELATION, chain)
    usual = NormalModel(np.zeros(4), np.ones(4), CORRELATION).condition(MASKS)
    for ours, theirs in zip(model.condition(MASKS), usual, strict=True):
        np.testing.assert_allclose(ours.coefficients, theirs.coefficients, atol=1e-12)
        np.testing.assert_allclose(ours.factor, theirs.factor, atol=1e-12)


@pytest.mark.parametrize("name", CHAINS)
def test_maps_of_a_coalition_do_not_depend_on_others_to_the_last_bit(name, monkeypatch):
    model = ChainedNormal(np.zeros(4), np.ones(4), CORRELATION, CHAINS[name])
    together = model.condition(MASKS)
    monkeypatch.setattr("condshap.numerics.gaussian._ENTRIES", 3 * 4**2)  # three coalitions at a time
    for found in (model.condition(MASKS), [model.condition(mask[None])[0] for mask in MASKS]):
        for ours, theirs in zip(found, together, strict=True):
            np.testing.assert_array_equal(ours.coefficients, theirs.coefficients)
            np.testing.assert_array_equal(ours.factor, theirs.factor)


class OneByOne:
    """A sampler of somebody's own, with nothing but `sample`."""

    name, supports, handles_missing, needs_model = "one by one", frozenset(), False, False
    capabilities = Capabilities()

    def sample(self, X, masks, n_samples, *, keys, seed):
        rows = np.tile(X[None, :, None], (len(masks), 1, n_samples, 1))
        for c, (mask, given) in enumerate(
            zip(masks, NormalModel(np.zeros(4), np.ones(4), CORRELATION).condition(masks), strict=True)
        ):
            for r, key in enumerate(keys):
                noise = np.random.default_rng([seed, c, int(key)]).normal(size=(n_samples, len(given.unknown)))
                rows[c, r][:, ~mask] = given.predict(X[r : r + 1]) + noise @ given.factor.T
        return DrawnRows(rows)


class WeighingDonors:
    """A sampler of somebody's own that weighs training rows: those with nearly the same known features."""

    name, supports, handles_missing, needs_model = "weighing", frozenset(), False, False
    capabilities = Capabilities(default_samples=200)
    table = normal_rows(1500, seed=5)

    def sample(self, X, masks, n_samples, *, keys, seed):
        indices, weights = [], []
        for mask in masks:
            apart = ((X[:, None, mask] - self.table[None, :, mask]) ** 2).sum(axis=2) / 0.05
            near = np.argsort(apart, axis=1)[:, :n_samples]
            indices.append(near)
            weights.append(np.exp(-np.take_along_axis(apart, near, axis=1) / 2))
        return Donors(np.array(indices), self.table, np.array(weights), error_factor=0.0)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("sampler", "limit"), [(OneByOne(), 5 / 20), (WeighingDonors(), 0.35)])
def test_samplers_of_ones_own_are_put_together_step_by_step(name, sampler, limit):
    # 400 draws of variance at most 1: their means are off by less than 5 standard errors; donors are a rough model
    chain, x = CHAINS[name], np.array([[0.8, -0.5, 1.0, 0.3]])
    model = ChainedNormal(np.zeros(4), np.ones(4), CORRELATION, chain)
    found = CausalSampler(sampler, chain).sample(x, MASKS, 400, keys=row_keys(x), seed=0)
    for rows, mask, given in zip(found.rows, MASKS, model.condition(MASKS), strict=True):
        np.testing.assert_array_equal(rows[0][:, mask], np.tile(x[0][mask], (400, 1)))
        np.testing.assert_allclose(rows[0].mean(axis=0)[given.unknown], given.predict(x)[0], atol=limit)


@pytest.mark.parametrize("approach", ["independence", "ctree", "empirical", "vaeac"])
def test_rows_and_coalitions_get_the_same_draws_whatever_others_there_are(approach):
    inner = fitted(approach, normal_rows(150), **({"epochs": 2} if approach == "vaeac" else {}))
    sampler, rows = CausalSampler(inner, CHAINS["mixed"]), normal_rows(5, seed=3)
    together = sampler.sample(rows, MASKS, 16, keys=row_keys(rows), seed=1).rows
    back = sampler.sample(rows[::-1], MASKS[::-1], 16, keys=row_keys(rows[::-1]), seed=1).rows
    np.testing.assert_array_equal(together, back[::-1, ::-1])
    alone = sampler.sample(rows[2:3], MASKS[4:5], 16, keys=row_keys(rows[2:3]), seed=1).rows
    np.testing.assert_array_equal(together[4, 2], alone[0, 0])
    other = sampler.sample(rows, MASKS, 16, keys=row_keys(rows), seed=2).rows
    assert not np.array_equal(together, other)


def test_independence_draws_components_from_different_rows():
    rows = normal_rows(300)
    sampler = CausalSampler(fitted("independence", rows), CHAINS["no confounding"])
    mask = np.array([[True, False, False, False]])
    drawn = sampler.sample(rows[:1], mask, 256, keys=row_keys(rows[:1]), seed=0).rows[0, 0]
    assert abs(np.corrcoef(drawn[:, 1], drawn[:, 2])[0, 1]) < 0.3  # 0.4 in the table, 5 standard errors are 0.31


def test_donors_are_picked_by_weight_and_evenly():
    donors = Donors(np.array([[[7, 3, 9]]]), np.zeros((10, 1)), np.array([[[1.0, 2.0, 1.0]]]))
    found = pick_donors(donors, 8, np.array([5], dtype=np.uint64))[0]
    assert np.bincount(found, minlength=10)[[7, 3, 9]].tolist() == [2, 4, 2]
    halves = np.bincount(found[:4], minlength=10)[[7, 3, 9]]
    assert halves.tolist() == [1, 2, 1]


def test_a_padded_donor_of_weight_zero_is_never_picked():
    donors = Donors(np.array([[[7, 3, 0]]]), np.zeros((10, 1)), np.array([[[1.0, 2.0, 0.0]]]))
    found = [pick_donors(donors, 5, np.array([key], dtype=np.uint64)) for key in range(200)]
    assert set(np.ravel(found)) == {7, 3}


def test_gaps_that_the_model_refuses_are_drawn_in_their_turn():
    rows = normal_rows(200)
    rows[::7, 0] = np.nan
    inner = fitted("vaeac", rows, epochs=2, fill_missing=True)
    sampler = CausalSampler(inner, CHAINS["no confounding"])
    asked = rows[:4].copy()
    asked[0, 0] = asked[1, 2] = np.nan
    masks = np.array([[True, False, False, False], [True, True, True, False]])
    drawn = sampler.sample(asked, masks, 8, keys=row_keys(asked), seed=0).rows
    assert not np.isnan(drawn).any()
    assert len(np.unique(drawn[1, 0, :, 0])) > 1
    complete = sampler.sample(asked[2:], masks, 8, keys=row_keys(asked[2:]), seed=0).rows
    np.testing.assert_array_equal(drawn[:, 2:], complete)


def test_gaps_that_the_model_takes_stay():
    rows = normal_rows(200)
    rows[::7, 0] = np.nan
    sampler = CausalSampler(fitted("vaeac", rows, epochs=2, fill_missing=False), CHAINS["no confounding"])
    drawn = sampler.sample(rows[:1], MASKS[:1], 8, keys=row_keys(rows[:1]), seed=0).rows
    assert np.isnan(drawn[0, 0, :, 0]).all()
    assert not np.isnan(drawn[0, 0, :, 1:]).any()


def test_draws_for_single_rows_have_the_distribution_of_draws_together():
    # the k-th draw of each path comes from the same member, so means over 64 rows agree within 5 standard errors
    rows = normal_rows(300)
    inner = fitted("vaeac", rows, epochs=5)
    x, mask, K = rows[:64], np.array([True, False, True, False]), 32
    keys = row_keys(x)
    together = inner.sample(x, mask[None], K, keys=keys, seed=0).rows[0]
    apart = inner.sample_each(np.repeat(x[:, None], K, axis=1), mask, keys=keys, seed=1)
    assert apart.shape == together.shape
    np.testing.assert_array_equal(apart[..., mask], together[..., mask])
    difference = (apart - together)[..., ~mask].mean(axis=(0, 1))
    np.testing.assert_allclose(difference, 0.0, atol=5 * np.sqrt(2 / (64 * K)))
    np.testing.assert_allclose(apart.std(axis=1).mean(axis=0), together.std(axis=1).mean(axis=0), rtol=0.1, atol=1e-9)


def test_a_chained_copy_leaves_the_approach_as_it_is():
    approach = fitted("gaussian", normal_rows(100))
    chained = approach.along(CHAINS["mixed"])
    assert isinstance(chained.model_, ChainedNormal)
    assert not isinstance(approach.model_, ChainedNormal)
