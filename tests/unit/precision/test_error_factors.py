import numpy as np
import pytest

import condshap as cs
from condshap.approaches.base import ALL_KINDS, DrawnRows
from condshap.coalitions import all_coalitions, make_plan
from condshap.numerics.blocks import block_starts, block_variances
from condshap.numerics.shapley import wls_operator
from condshap.numerics.sobol import normal_nets
from condshap.precision import error_factors as precision
from condshap.precision import sample_sizes
from condshap.precision.influence import sensitivities
from condshap.precision.sample_sizes import allocate_samples
from condshap.seeding import stream_words


def test_influence_with_all_coalitions_is_that_of_the_regression():
    plan = all_coalitions(5)
    A, _ = wls_operator(plan.masks, plan.weights)
    np.testing.assert_allclose(sensitivities(plan), (A**2).sum(axis=0), atol=1e-12)


def test_small_coalitions_get_most_samples():
    plan = all_coalitions(10)
    K = allocate_samples(plan)
    by_size = [int(K[plan.sizes == s][0]) for s in range(1, 10)]
    assert by_size[0] == 256
    assert min(by_size) == 16
    assert K[plan.interior].mean() < 25
    assert all(k & (k - 1) == 0 for k in by_size)


def test_samples_depend_on_size_only_and_are_bounded_on_average():
    plan = make_plan(25, 1000, seed=0)
    K = allocate_samples(plan)
    for size in np.unique(plan.sizes[plan.interior]):
        assert len(np.unique(K[plan.sizes == size])) == 1
    assert K[plan.interior].mean() <= 64


def test_one_unknown_player_gets_half_among_many_coalitions_only():
    by_players = {P: all_coalitions(P) for P in (5, 10)}
    K = {P: allocate_samples(plan)[plan.sizes == P - 1] for P, plan in by_players.items()}
    assert set(K[10]) == {32}
    assert set(K[5]) == {128}


def test_at_ten_players_a_hundred_rows_take_at_most_two_million_model_rows():
    X = np.random.default_rng(0).normal(size=(200, 10))
    asked = 0

    def model(x):
        nonlocal asked
        asked += len(x)
        return np.sin(x.sum(axis=1))

    cs.Explainer(model, approach="gaussian", progress=False).fit(X).explain(X[:100])
    assert 1_900_000 < asked <= 2_000_000


def test_one_player_needs_no_samples():
    assert len(allocate_samples(all_coalitions(1))) == 2


class PlainDraws:
    """Independent standard normals, all of them once or twice, that leave their error to be measured."""

    name, supports, handles_missing, needs_model = "plain", ALL_KINDS, False, False

    def __init__(self, times=1):
        self.times = times

    def fit(self, X, schema, *, plan, seed):
        return self

    def sample(self, X, masks, n_samples, *, keys, seed):
        words = stream_words(seed, self.name, masks, keys)
        rows = np.empty((len(masks), len(X), n_samples, X.shape[1]))
        for c, r in np.ndindex(words.shape):
            rng = np.random.default_rng(int(words[c, r]))
            drawn = np.tile(rng.normal(size=(n_samples // self.times, X.shape[1])), (self.times, 1))
            rows[c, r] = np.where(masks[c], X[r], drawn)
        return DrawnRows(rows, error_factor=None)


@pytest.mark.parametrize(("times", "expected"), [(1, 1.0), (2, 7 / 3)])
def test_the_pilot_measures_the_variance_of_independent_and_of_repeated_draws(times, expected):
    # 8 blocks of which the last 4 repeat the first: the mean has variance s / 4, the usual formula gives 6 / 56 of s.
    # 4 cells of 48 pairs: the mean factor has a standard error of about 0.1 times itself; 3.6 of these, fixed seed
    X = np.random.default_rng(0).normal(size=(200, 5))
    explainer = cs.Explainer(lambda x: x @ np.arange(1.0, 6.0), approach=PlainDraws(times), n_samples=32).fit(X)
    factors = explainer.error_factors_[1:-1]
    assert factors.mean() == pytest.approx(expected, rel=0.36)


def test_the_pilot_finds_that_nets_are_better_than_independent_draws():
    X = np.random.default_rng(0).normal(size=(200, 5))
    explainer = cs.Explainer(lambda x: x @ np.arange(1.0, 6.0), approach="gaussian", n_samples=64).fit(X)
    assert (explainer.error_factors_[1:-1] < 0.2).all()
    assert (explainer.error_factors_[1:-1] > 0).all()


def test_samples_of_a_size_half_way_between_powers_of_two_do_not_hang_on_rounding(monkeypatch):
    # P = 9: pairs have equal influence, so sizes 3 and 6 differ by a factor of exactly sqrt(2)
    plan = make_plan(9, 60, seed=0)
    usual, exact = allocate_samples(plan), sensitivities
    assert usual[plan.sizes == 6][0] == 128
    for seed in range(20):
        noise = 1 + 1e-14 * np.random.default_rng(seed).normal(size=len(plan.masks))
        monkeypatch.setattr(sample_sizes, "sensitivities", lambda plan, noise=noise: exact(plan) * noise)
        assert np.array_equal(allocate_samples(plan), usual)


@pytest.mark.parametrize("n_samples", [2, 3, 16, 100, 128])
@pytest.mark.parametrize("weighted", [False, True])
def test_variances_of_blocks_are_those_of_the_mean_of_blocks(n_samples, weighted):
    rng = np.random.default_rng(0)
    f, w = rng.normal(size=(2, 3, n_samples, 2)), rng.random((2, 3, n_samples, 1)) + 0.1
    w /= w.sum(axis=2, keepdims=True)
    even = np.full_like(w, 1 / n_samples)
    shares = w if weighted else even
    means = (shares * f).sum(axis=2)
    found = block_variances(f, means, w if weighted else None)
    blocks = np.split(np.arange(n_samples), block_starts(n_samples)[1:])
    assert len(blocks) == min(n_samples, {100: 7}.get(n_samples, 8))
    part = np.stack([shares[:, :, b].sum(axis=2) for b in blocks], axis=2)
    mean = np.stack([(shares * f)[:, :, b].sum(axis=2) for b in blocks], axis=2) / part
    c = (part**2).sum(axis=2)
    np.testing.assert_allclose(found, (part * (mean - means[:, :, None]) ** 2).sum(axis=2) * c / (1 - c))


def far_corner(x):
    """Constant around all training rows; moves where the first column is large."""
    return np.where(x[:, 0] > 4.0, np.abs(x[:, 1]) + np.floor(2 * x[:, 2]), 0.0)


@pytest.mark.parametrize("approach", ["gaussian", "copula"])
def test_a_model_that_is_constant_around_training_rows_has_errors_where_it_is_not(approach):
    X = np.random.default_rng(0).normal(size=(300, 4))
    row = np.array([[4.5, 0.5, -0.5, 1.0]])
    found = [
        cs.Explainer(far_corner, approach=approach, check_draws=False, seed=s).fit(X).explain(row) for s in range(12)
    ]
    spread = np.std([one.values for one in found], axis=0, ddof=1)
    errors = np.sqrt(np.mean([one.std_errors**2 for one in found], axis=0))
    assert (spread > 1e-4).all()
    assert (errors > 0.7 * spread).all()
    assert np.linalg.norm(errors) < 5 * np.linalg.norm(spread)  # of 12 seeds, a single spread is a guess


def test_factors_lean_on_other_cells_and_on_independent_blocks_where_little_was_seen():
    ratios, n_pairs = np.array([[0.1], [0.3], [1.0]]), np.array([[36.0], [4.0], [0.0]])
    common = (3.6 + 1.2 + 4) / 44
    np.testing.assert_allclose(
        precision._shrink(ratios, n_pairs)[:, 0], [(3.6 + 4 * common) / 40, (1.2 + 4 * common) / 8, common]
    )
    assert precision._shrink(np.ones((2, 1)), np.zeros((2, 1))) == pytest.approx(1.0)


def test_blocks_tell_how_rough_a_function_is_where_the_spread_of_samples_does_not():
    # 1024 nets of 64 points: the variance of their means is known within 5 %
    nets = normal_nets(64, 3, 0)
    functions = {
        "smooth": nets.sum(axis=2) + nets[..., 0] * nets[..., 1],
        "kinked": np.abs(nets[..., 0] - nets[..., 1]) + nets[..., 2],
        "leaves": np.floor(nets[..., 0] + nets[..., 1]) * np.sign(nets[..., 2] - nets[..., 0]),
    }
    of_blocks, of_samples = [], []
    for f in functions.values():
        means = f.mean(axis=1)
        of_blocks.append(means.var() / block_variances(f[None, ..., None], means[None, :, None], None).mean())
        of_samples.append(means.var() / (f.var(axis=1, ddof=1).mean() / 64))
    apart = [max(factors) / min(factors) for factors in (of_samples, of_blocks)]
    assert apart[0] > 15
    assert apart[1] < 6
    assert max(of_blocks) < 1  # independent blocks are the safe side
