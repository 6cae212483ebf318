"""The Burr design against its printed density, its closed-form conditionals and numerical integrals."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import gammainccinv, gammaincinv, ndtr
from scipy.stats import kendalltau, kstest
from sklearn.tree import DecisionTreeRegressor

from condshap.coalitions import all_coalitions
from condshap.exceptions import OptionError
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs import LinearModel, burr_design
from condshap.studies.designs.burr import log_gamma_quantile

LEVEL = 1e-4  # of every Kolmogorov-Smirnov test


def test_the_conditional_distribution_follows_from_the_papers_density():
    design = burr_design(5, seed=1)
    row = design.schema.encode(design.draw(1, seed=1))

    def density(x, j):
        full = row[0].copy()
        full[j] = x
        top = np.prod(full ** (design.b - 1))
        return top / (1 + (design.r * full**design.b).sum()) ** (design.kappa + 5)

    for j in range(5):
        mask = np.arange(5) != j
        total = quad(density, 0, np.inf, args=(j,), epsabs=0, epsrel=1e-10, limit=200)[0]
        for x in (0.3, 0.6, 1.5):
            expected = quad(density, 0, x, args=(j,), epsabs=0, epsrel=1e-10, limit=200)[0] / total
            assert design.conditional_cdf(row, mask, j, np.array([x]))[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n_features", [5, 10, 25])
def test_drawn_rows_are_uniform_after_every_conditional_distribution_function(n_features):
    """Independent draws, four tests at level 1e-4 for each size."""
    design = burr_design(n_features, seed=2)
    rows = design.schema.encode(design.draw(4000, seed=3))
    for n_known in (0, 1, 3, n_features - 1):
        mask = np.arange(n_features) < n_known
        u = design.conditional_cdf(rows, mask, n_features - 1, rows[:, -1])
        assert kstest(u, "uniform").pvalue > LEVEL
    np.testing.assert_allclose(
        design.cdf(rows)[:, -1], design.conditional_cdf(rows, mask & False, n_features - 1, rows[:, -1]), rtol=1e-12
    )


@pytest.mark.parametrize("n_known", [0, 1, 2, 3])
def test_conditional_draws_have_the_burr_conditionals_one_by_one_and_jointly(n_known):
    """Eight tests at level 1e-4 for each number of known features; nets are more even than independent draws, so the
    true rate of false alarms is lower still."""
    design = burr_design(5, seed=4)
    rows = design.schema.encode(design.draw(4, seed=5))
    mask = np.array([1, 3, 0, 4, 2]).argsort() < n_known
    drawn = design.sample_conditional(rows, mask[None], 2048, seed=6)[0]
    first, second = np.flatnonzero(~mask)[:2]
    also_first = mask | (np.arange(5) == first)
    for i in range(4):
        same = np.repeat(rows[i : i + 1], 2048, axis=0)
        assert (drawn[i][:, mask] == same[:, mask]).all()
        assert kstest(design.conditional_cdf(same, mask, second, drawn[i, :, second]), "uniform").pvalue > LEVEL
        same[:, first] = drawn[i, :, first]  # the second given the first as well: the joint distribution
        assert kstest(design.conditional_cdf(same, also_first, second, drawn[i, :, second]), "uniform").pvalue > LEVEL


def test_single_draws_from_independent_nets_have_the_burr_conditional():
    """Truly independent draws, one per net: two tests at level 1e-4."""
    design = burr_design(5, seed=4)
    row = design.schema.encode(design.draw(1, seed=5))
    mask = np.array([[True, False, True, False, False]])
    x = np.array([design.sample_conditional(row, mask, 1, seed=seed)[0, 0, 0] for seed in range(600)])
    for j in (1, 4):
        u = design.conditional_cdf(np.repeat(row, 600, axis=0), mask[0], j, x[:, j])
        assert kstest(u, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("shape", [0.3, 2.0, 7.0, 252.0])
def test_the_spline_of_gamma_quantiles_is_right_to_nine_digits(shape):
    normals = np.linspace(-8.2, 8.2, 5001)
    expected = np.where(normals < 0, gammaincinv(shape, ndtr(normals)), gammainccinv(shape, ndtr(-normals)))
    np.testing.assert_allclose(np.exp(log_gamma_quantile(shape)(normals)), expected, rtol=1e-9)


def test_kendalls_tau_is_a_fifth():
    """Three pairs at 4 standard errors of about 0.01."""
    rows = burr_design(5, seed=1).draw(4000, seed=1).to_numpy()
    for j in (1, 2, 3):
        assert abs(kendalltau(rows[:, 0], rows[:, j]).statistic - 0.2) < 0.045


def test_the_closed_form_mean_of_a_linear_function_is_the_numerical_integral():
    design = burr_design(5, seed=7)
    rows = design.schema.encode(design.draw(2, seed=1))
    masks = all_coalitions(5).masks[:-1]
    for j in (0, 3):
        v = design.linear_values(LinearModel.of(0.0, [], np.eye(5)[j]), rows, masks)
        for c in np.flatnonzero(~masks[:, j])[::3]:
            for i in range(2):
                survival = quad(
                    lambda x: 1 - design.conditional_cdf(rows[i : i + 1], masks[c], j, np.array([x]))[0],
                    0, np.inf, epsrel=1e-9, limit=200,
                )[0]  # fmt: skip
                assert v[c, i] == pytest.approx(survival, rel=1e-6)


def test_sampled_truth_of_a_linear_function_is_its_closed_form():
    """1500 pairs, none beyond 6 standard errors with 31 degrees of freedom: false alarm 0.2 %."""
    design = burr_design(5, seed=8)
    X, masks = design.draw(50, seed=1), all_coalitions(5).masks[1:-1]
    model = LinearModel.of(0.5, [], [1.0, -1.0, 2.0, 0.5, -0.2])
    exact, none = design.true_values(model, X, masks)
    sampled, errors = design.true_values(model, X, masks, method="sampling", n_samples=256, n_replicates=32)
    assert (none == 0).all()
    assert (errors > 0).all()
    assert (np.abs(sampled - exact) < 6 * errors).all()
    assert np.median(np.abs(sampled - exact) / errors) == pytest.approx(0.68, abs=0.1)


def test_sampled_truth_of_a_non_linear_function_is_its_numerical_integral():
    """Eight pairs at 5 standard errors with 15 degrees of freedom: false alarm 0.1 %."""
    design = burr_design(5, seed=9)
    X = design.draw(2, seed=1)
    rows = design.schema.encode(X)
    masks = np.array([[j in known for j in range(5)] for known in ((0,), (1, 2), (0, 1, 3), (0, 1, 2, 3))])

    def rank(x):
        return -np.expm1(-design.kappa * np.log1p(design.r[4] * x ** design.b[4]))

    v, errors = design.true_values(lambda X: np.sin(3 * rank(X["x5"].to_numpy())), X, masks, n_replicates=16)
    for c, mask in enumerate(masks):
        for i in range(2):
            rate, shape = design.rates(rows[i : i + 1], masks[c : c + 1])[0, 0], design.kappa + mask.sum()
            expected = quad(
                lambda p: np.sin(3 * rank((rate / design.r[4] * ((1 - p) ** (-1 / shape) - 1)) ** (1 / design.b[4]))),
                0,
                1,
            )[0]
            assert abs(v[c, i] - expected) < 5 * errors[c, i]


def test_shapley_values_of_a_sampled_truth_are_efficient():
    design = burr_design(5, seed=1)
    train = design.draw(200, seed=1)
    y = design.respond(train, seed=1)
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(train, y)
    X, masks = design.draw(10, seed=2), all_coalitions(5).masks
    v, errors = design.true_values(model, X, masks, base_value=y.mean(), n_samples=64)
    phi = exact_shapley(v, masks)
    np.testing.assert_allclose(y.mean() + phi.sum(axis=0), model.predict(X), rtol=0, atol=1e-10)
    assert (errors[[0, -1]] == 0).all()
    mean, error = design.true_values(model, X, masks[:1], n_samples=64)
    assert (mean == mean[0, 0]).all()
    assert (error > 0).all()


def test_the_response_has_blocks_of_five_features_and_three_coefficients():
    design = burr_design(10, seed=3)
    X = design.draw(3, seed=1)
    for i, u in enumerate(design.cdf(X)):
        expected = 0.0
        for k in (0, 1):
            c1, c2, c3 = design.c[3 * k : 3 * k + 3]
            u1, u2, u3, u4, u5 = u[5 * k : 5 * k + 5]
            expected += np.sin(np.pi * c1 * u1 * u2) + c2 * u3 * np.exp(c3 * u4 * u5)
        assert design.expected_response(X)[i] == pytest.approx(expected, rel=1e-12)


def test_noise_is_normal_with_the_mean_rank_of_its_features_as_deviation():
    """Kolmogorov-Smirnov at level 1e-4."""
    design = burr_design(25, seed=3)
    X = design.draw(4000, seed=1)
    deviation = design.cdf(X)[:, design.noise_features].mean(axis=1)
    assert kstest((design.respond(X, seed=2) - design.expected_response(X)) / deviation, "norm").pvalue > LEVEL


def test_parameters_come_from_the_papers_grids_and_from_the_seed():
    design = burr_design(250, seed=1)
    for values, low, high, step in ((design.r, 1, 5, 0.25), (design.b, 2, 6, 0.25), (design.c, 0.1, 2, 0.1)):
        assert values.min() == pytest.approx(low)
        assert values.max() == pytest.approx(high)
        np.testing.assert_allclose(values / step, np.rint(values / step), atol=1e-9)
    assert design.c.shape == (150,)
    assert design.noise_features.shape == (50,)
    assert not np.array_equal(design.r, burr_design(250, seed=2).r)


def test_draws_are_typed_reproducible_and_fewer_rows_are_the_head_of_more():
    design = burr_design(10, seed=1)
    X = design.draw(500, seed=1)
    pd.testing.assert_frame_equal(design.draw(50, seed=1), X.head(50))
    assert list(X.columns) == [f"x{j}" for j in range(1, 11)]
    assert (X.dtypes == np.float64).all()
    assert (X.to_numpy() > 0).all()
    np.testing.assert_array_equal(design.respond(X.head(50), seed=1), design.respond(X, seed=1)[:50])


def test_a_number_of_features_that_is_no_multiple_of_five_is_refused():
    with pytest.raises(OptionError, match="multiple of 5"):
        burr_design(7, seed=1)
    with pytest.raises(OptionError, match="kappa"):
        burr_design(5, seed=1, kappa=0.0)
