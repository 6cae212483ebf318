import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest, norm, qmc

from condshap.numerics.gaussian import NormalModel, condition, correlation_of, draw_conditional, floor_eigenvalues
from condshap.numerics.margins import EmpiricalMargin, KernelMargin
from condshap.numerics.sobol import normal_nets, sobol_points
from condshap.numerics.subsets import random_subsets
from condshap.seeding import Streams, hash_words, row_keys


@pytest.mark.parametrize("n_dims", [1, 2, 18, 66, 116])
@pytest.mark.parametrize("n_points", [1, 16, 32, 64, 128, 256, 512])
def test_sobol_points_are_the_same_to_the_last_bit_with_torch_and_without(n_points, n_dims, monkeypatch):
    pytest.importorskip("torch")
    with_torch = sobol_points(n_points, n_dims)
    monkeypatch.delitem(sys.modules, "torch")
    without = sobol_points(n_points, n_dims)
    expected = qmc.Sobol(n_dims, scramble=False).random(n_points)
    assert with_torch.dtype == without.dtype == np.float64
    np.testing.assert_array_equal(with_torch, expected)
    np.testing.assert_array_equal(without, expected)


def test_sobol_points_where_torch_is_loaded_do_not_load_scipy_stats_which_takes_half_a_second():
    code = "import sys, torch; from condshap.numerics.sobol import normal_nets; normal_nets(16, 3, 0)"
    code += "; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("n_points", [16, 64, 256])
def test_every_net_has_one_point_in_each_cell_of_every_margin(n_points):
    nets = normal_nets(n_points, 5, seed=3)
    cells = np.sort((norm.cdf(nets) * n_points).astype(int), axis=1)
    assert (cells == np.arange(n_points)[None, :, None]).all()


def test_the_first_points_of_a_net_are_a_net():
    prefix = normal_nets(256, 4, seed=3)[:, :32]
    cells = np.sort((norm.cdf(prefix) * 32).astype(int), axis=1)
    assert (cells == np.arange(32)[None, :, None]).all()


def test_first_two_dimensions_fill_every_elementary_square():
    nets = norm.cdf(normal_nets(64, 2, seed=1)[:50])
    squares = (nets[..., 0] * 8).astype(int) * 8 + (nets[..., 1] * 8).astype(int)
    assert (np.sort(squares, axis=1) == np.arange(64)).all()


def test_every_point_of_a_net_is_standard_normal_over_the_pool():
    # two fixed points and dimensions, Kolmogorov-Smirnov at 1e-3 each
    nets = normal_nets(64, 6, seed=5)
    for k, d in ((0, 0), (17, 5)):
        assert kstest(nets[:, k, d], "norm").pvalue > 1e-3


def test_nets_beat_independent_draws_by_a_factor_of_three_in_error():
    nets = normal_nets(64, 4, seed=2)
    f = np.exp(0.4 * nets[..., 0]) + nets[..., 1] * nets[..., 2] + (nets[..., 3] > 0.3)
    nominal = f.std() / 8
    assert f.mean(axis=1).std() < nominal / 3


def test_subsets_are_without_replacement_and_uniform():
    words = hash_words(np.arange(20000, dtype=np.uint64))
    subsets = random_subsets(words, 5, 20, seed=0)
    assert (np.diff(np.sort(subsets, axis=1), axis=1) > 0).all()
    counts = np.bincount(subsets.ravel(), minlength=20)
    # each position is in a quarter of the subsets: 5000 +- 61; 5 standard errors, false alarm 1e-5
    assert (np.abs(counts - 5000) < 5 * 61.2).all()
    together = np.mean((subsets == 3).any(axis=1) & (subsets == 4).any(axis=1))
    assert together == pytest.approx(5 / 20 * 4 / 19, abs=0.01)


def test_conditional_normal_is_the_textbook_formula():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T
    scale = np.sqrt(np.diag(covariance))
    mask = np.array([True, False, True, False, False])
    (given,) = condition(covariance / np.outer(scale, scale), mask[None])
    precision = np.linalg.inv(covariance)
    wanted = np.linalg.inv(precision[np.ix_(~mask, ~mask)])
    outer = np.outer(scale[~mask], scale[~mask])
    np.testing.assert_allclose(given.factor @ given.factor.T * outer, wanted)
    slopes = -wanted @ precision[np.ix_(~mask, mask)]
    np.testing.assert_allclose(given.coefficients * scale[~mask][:, None] / scale[mask], slopes)


def test_conditional_draws_have_the_conditional_moments():
    # 4096 quasi-random points: means within 0.02 and covariances within 0.05, deterministic for this seed
    correlation = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    model = NormalModel(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 0.5, 3.0]), correlation)
    X = np.array([[2.0, 0.0, 3.5, 1.0]])
    masks = np.array([[True, True, False, False]])
    draws = draw_conditional(model, X, masks, 4096, Streams(row_keys(X), 0, "test"))[0, 0]
    (given,) = condition(correlation, masks)
    z = (X[0] - model.mean) / model.scale
    mean = model.mean[2:] + model.scale[2:] * (given.coefficients @ z[:2])
    np.testing.assert_array_equal(draws[:, :2], np.broadcast_to(X[0, :2], (4096, 2)))
    np.testing.assert_allclose(draws[:, 2:].mean(axis=0), mean, atol=0.02)
    wanted = given.factor @ given.factor.T * np.outer(model.scale[2:], model.scale[2:])
    np.testing.assert_allclose(np.cov(draws[:, 2:].T), wanted, atol=0.05)


def test_collinear_columns_are_shrunk_just_enough():
    x = np.random.default_rng(0).normal(size=(50, 2))
    _, _, correlation = correlation_of(np.column_stack([x, x.sum(axis=1)]))
    shrunk, share = floor_eigenvalues(correlation)
    assert 0 < share < 1e-6
    assert np.linalg.eigvalsh(shrunk)[0] > 0
    assert floor_eigenvalues(np.eye(3))[1] == 0


def test_correlation_survives_huge_and_tiny_units():
    x = np.random.default_rng(0).normal(size=(100, 3))
    _, _, plain = correlation_of(x)
    _, scale, scaled = correlation_of(x * np.array([1e200, 1e-200, 1.0]))
    np.testing.assert_allclose(scaled, plain)
    assert np.isfinite(scale).all()


def test_normal_scores_are_mid_ranks_and_stay_finite_outside_the_range():
    margin = EmpiricalMargin.learn(np.array([5.0, 1.0, 2.0, 2.0]))
    scores = margin.to_scores(np.array([1.0, 2.0, -9.0, 9.0]))
    np.testing.assert_allclose(norm.cdf(scores), [1 / 5, 2.5 / 5, 0.5 / 5, 4.5 / 5])


def test_back_from_scores_is_the_type_seven_quantile():
    column = np.random.default_rng(0).exponential(size=37)
    margin = EmpiricalMargin.learn(column)
    u = np.linspace(0.001, 0.999, 50)
    np.testing.assert_allclose(margin.from_scores(norm.ppf(u)), np.quantile(column, u))
    assert margin.from_scores(np.array([40.0, -40.0])).tolist() == [column.max(), column.min()]


def test_kernel_margins_go_there_and_back_and_follow_the_density():
    column = np.random.default_rng(0).normal(2.0, 3.0, size=4000)
    margin = KernelMargin.learn(column)
    x = np.linspace(-4, 8, 30)
    np.testing.assert_allclose(margin.from_scores(margin.to_scores(x)), x, atol=1e-9)
    np.testing.assert_allclose(margin.to_scores(x), (x - 2.0) / 3.0, atol=0.15)


def test_kernel_margin_of_a_constant_is_that_constant():
    margin = KernelMargin.learn(np.full(10, 4.0))
    assert margin.from_scores(np.array([-2.0, 0.0, 5.0])).tolist() == [4.0, 4.0, 4.0]
