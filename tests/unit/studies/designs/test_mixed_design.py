"""Mixed truth against closed forms, the paper's own integrals, and rejection sampling that shares no code with it."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from condshap.coalitions import all_coalitions
from condshap.exceptions import OptionError
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs import LinearModel, draw_mixed, mixed_design, one_factor

RHOS = (0.0, 0.1, 0.5, 0.9)


def interior(n_features):
    return all_coalitions(n_features).masks[1:-1]


def sampled_masks(n_features, n_masks, seed):
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, n_features)
    law = 1 / (sizes * (n_features - sizes))
    chosen = rng.choice(sizes, n_masks, p=law / law.sum())
    return rng.random((n_masks, n_features)).argsort(axis=1).argsort(axis=1) < chosen[:, None]


def reject(design, row, mask, n, rng, f):
    """Mean and standard error of f by conditioning the normals on known numbers and rejecting wrong levels."""
    law = design.law
    M, n_cat = len(row), law.n_categorical
    sigma = np.full((M, M), law.rho) + (1 - law.rho) * np.eye(M)
    numbers = np.flatnonzero(mask & (np.arange(M) >= n_cat))
    others = np.setdiff1d(np.arange(M), numbers)
    slope = sigma[np.ix_(others, numbers)] @ np.linalg.inv(sigma[np.ix_(numbers, numbers)])
    covariance = sigma[np.ix_(others, others)] - slope @ sigma[np.ix_(numbers, others)]
    x = np.empty((n, M))
    x[:, numbers] = row[numbers]
    x[:, others] = slope @ row[numbers] + rng.standard_normal((n, len(others))) @ np.linalg.cholesky(covariance).T
    x[:, :n_cat] = np.digitize(x[:, :n_cat], law.cutoffs, right=True)
    known = np.flatnonzero(mask[:n_cat])
    accepted = f(x[(x[:, known] == row[known]).all(axis=1)])
    assert len(accepted) > 150
    return accepted.mean(), accepted.std(ddof=1) / np.sqrt(len(accepted))


def plain_linear(model, n_cat):
    def f(x):
        out = np.full(len(x), model.intercept)
        for j in range(x.shape[1]):
            out += model.level_effects[j][x[:, j].astype(int)] if j < n_cat else model.slopes[j - n_cat] * x[:, j]
        return out

    return f


@pytest.mark.parametrize(("name", "rho", "n_rows"), [("M4", 0.1, 3), ("M4", 0.5, 3), ("M4", 0.9, 3), ("M6", 0.8, 2)])
def test_quadrature_agrees_with_rejection_sampling_within_four_standard_errors(name, rho, n_rows):
    """250 comparisons in all four cases, each two-sided at 4 standard errors (6.3e-5): false alarm about 1.6 %."""
    design = mixed_design(name, rho)
    train = design.draw(1000, seed=1)
    model = design.fit_linear(train, design.respond(train, seed=1))
    X = design.draw(n_rows, seed=2)
    rows, masks = design.schema.encode(X), interior(len(design.schema))
    v, std_errors = design.true_values(model, X, masks)
    assert (std_errors == 0).all()
    rng = np.random.default_rng(3)
    f = plain_linear(model, design.n_categorical)
    for c, mask in enumerate(masks):
        for i, row in enumerate(rows):
            mean, error = reject(design, row, mask, 40_000, rng, f)
            assert abs(v[c, i] - mean) < 4 * error


def test_quadrature_agrees_with_rejection_sampling_among_a_hundred_features():
    """Six comparisons at 4 standard errors: false alarm 0.04 %. Few known factors, or rejection would not end."""
    design = mixed_design("M100-L3", rho=0.5, seed=4)
    X = design.draw(1, seed=5)
    rows, rng = design.schema.encode(X), np.random.default_rng(6)
    masks = np.zeros((6, 100), dtype=bool)
    for c, (n_cat, n_cont) in enumerate([(1, 0), (3, 0), (0, 4), (2, 10), (3, 40), (3, 75)]):
        masks[c, rng.choice(25, n_cat, replace=False)] = True
        masks[c, 25 + rng.choice(75, n_cont, replace=False)] = True
    v, _ = design.true_values(design.linear, X, masks)
    for c, mask in enumerate(masks):
        mean, error = reject(design, rows[0], mask, 20_000, rng, plain_linear(design.linear, 25))
        assert abs(v[c, 0] - mean) < 4 * error


@pytest.mark.parametrize("rho", RHOS)
def test_one_known_factor_gives_the_integrals_of_the_papers_appendix(rho):
    """E[x_k | x_1 = l] and P(x_2 = m | x_1 = l) by integration over x_k, as eq. (expectation_cond_dist_1) has it."""
    design = mixed_design("M4", rho)
    edges = np.array([-np.inf, *design.law.cutoffs, np.inf])
    mask = np.array([[True, False, False, False]])
    for level in range(4):
        row = np.array([[level, 0.0, 0.0, 0.0]])

        def joint(x, level=level):
            return norm.pdf(x) * np.diff(norm.cdf((edges[level : level + 2] - rho * x) / np.sqrt(1 - rho**2)))[0]

        p = norm.cdf(edges[level + 1]) - norm.cdf(edges[level])
        mean = quad(lambda x: x * joint(x), -10, 10, epsabs=1e-13, limit=200)[0] / p
        slope_only = LinearModel.of(0.0, np.zeros((2, 4)), [1.0, 0.0])
        assert design.true_values(slope_only, row, mask)[0][0, 0] == pytest.approx(mean, abs=1e-10)
        for other in range(4):
            low, high = np.clip(edges[other : other + 2], -10, 10)
            expected = quad(joint, low, high, epsabs=1e-13, limit=200)[0] / p
            effects = np.zeros((2, 4))
            effects[1, other] = 1.0
            indicator = LinearModel.of(0.0, effects, [0.0, 0.0])
            assert design.true_values(indicator, row, mask)[0][0, 0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 0.99])
def test_numbers_alone_give_the_closed_form_of_normal_conditional_means(rho):
    design = draw_mixed(6, 0, (), rho, seed=1)
    rows = design.schema.encode(design.draw(20, seed=2))
    rows[0] = [25.0, -3.0, 30.0, 28.0, 1.0, 26.0]  # far outside of what the design draws
    masks = interior(6)
    v, _ = design.true_values(design.linear, rows, masks)
    for c, mask in enumerate(masks):
        share = rho / (1 + (mask.sum() - 1) * rho)
        full = np.where(mask, rows, share * rows[:, mask].sum(axis=1, keepdims=True))
        np.testing.assert_allclose(v[c], 1.0 + full @ design.linear.slopes, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["M4", "M6", "M10"])
def test_without_correlation_the_truth_is_exactly_the_independence_answer(name):
    design = mixed_design(name, rho=0.0, seed=2)
    X, masks = design.draw(30, seed=1), interior(len(design.schema))
    rows = design.schema.encode(X)
    levels = np.diff(norm.cdf([-np.inf, *design.law.cutoffs, np.inf]))
    means = np.concatenate([design.linear.level_effects @ levels, np.zeros(design.law.n_continuous)])
    v, _ = design.true_values(design.linear, X, masks)
    known = design.linear.contributions(rows)
    expected = 1.0 + np.where(masks[:, None, :], known, means).sum(axis=2)
    np.testing.assert_allclose(v, expected, rtol=0, atol=2e-14)


@pytest.mark.parametrize("rho", [0.1, 0.9])
def test_a_finer_lattice_changes_nothing(rho, monkeypatch):
    design = mixed_design("M10", rho, seed=1)
    X, masks = design.draw(20, seed=1), sampled_masks(10, 60, seed=1)
    v, _ = design.true_values(design.linear, X, masks)
    monkeypatch.setattr(one_factor, "_SPACING", 0.11)
    monkeypatch.setattr(one_factor, "_TAIL", 12.0)
    finer, _ = design.true_values(design.linear, X, masks)
    np.testing.assert_allclose(v, finer, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["M4", "M6"])
@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_low_dimensional_truth_of_500_rows_takes_less_than_a_second_and_is_efficient(name, rho):
    design = mixed_design(name, rho)
    train = design.draw(1000, seed=1)
    y = design.respond(train, seed=1)
    model, X, masks = design.fit_linear(train, y), design.draw(500, seed=2), all_coalitions(len(design.schema)).masks
    start = time.perf_counter()
    v, _ = design.true_values(model, X, masks, base_value=y.mean())
    seconds = time.perf_counter() - start
    print(f"\n{name} rho={rho}: {seconds:.3f} s")
    assert seconds < 1.0
    phi = exact_shapley(v, masks)
    np.testing.assert_allclose(y.mean() + phi.sum(axis=0), model.predict(X), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_truth_of_a_hundred_features_1000_coalitions_and_500_rows_takes_less_than_two_minutes():
    design = mixed_design("M100-L2", rho=0.9, seed=3)
    X, masks = design.draw(500, seed=1), sampled_masks(100, 1000, seed=2)
    start = time.perf_counter()
    v, _ = design.true_values(design.linear, X, masks)
    seconds = time.perf_counter() - start
    print(f"\nM100-L2 rho=0.9: {seconds:.1f} s")
    assert seconds < 120
    assert np.isfinite(v).all()


def test_a_feature_without_effect_and_without_correlation_has_the_shapley_value_zero():
    design = mixed_design("M4", rho=0.0)
    model = LinearModel.of(1.0, [[1.0, 0.0, -1.0, 0.5], [0.0, 0.0, 0.0, 0.0]], [1.0, -1.0])
    masks = all_coalitions(4).masks
    v, _ = design.true_values(model, design.draw(10, seed=1), masks)
    np.testing.assert_allclose(exact_shapley(v, masks)[1], 0.0, atol=1e-14)


def one_hot_regression(X):
    factors = [name for name in X.columns if isinstance(X[name].dtype, pd.CategoricalDtype)]
    encoder = make_column_transformer((OneHotEncoder(drop="first"), factors), remainder="passthrough")
    return make_pipeline(encoder, LinearRegression())


def test_a_fitted_scikit_learn_pipeline_is_recognised_as_linear_and_gets_the_exact_truth():
    design = mixed_design("M6", rho=0.5)
    train = design.draw(300, seed=1)
    y = design.respond(train, seed=1)
    pipeline, ours = one_hot_regression(train).fit(train, y), design.fit_linear(train, y)
    X, masks = design.draw(20, seed=2), interior(6)
    v, std_errors = design.true_values(pipeline, X, masks)
    assert (std_errors == 0).all()
    np.testing.assert_allclose(v, design.true_values(ours, X, masks)[0], atol=1e-9)
    np.testing.assert_allclose(pipeline.predict(X), ours.predict(X), atol=1e-9)


def test_sampling_agrees_with_quadrature_and_its_standard_errors_cover():
    """1400 pairs: none beyond 6 standard errors (63 degrees of freedom, 1.5e-4 together); coverage of 95 % intervals
    has a standard error of about 0.6 %, so 0.92 to 0.975 is missed with probability below 1e-3."""
    design = mixed_design("M4", rho=0.5)
    X, masks = design.draw(100, seed=3), interior(4)
    exact, _ = design.true_values(design.linear, X, masks)
    v, std_errors = design.true_values(
        design.linear, X, masks, method="sampling", n_samples=16, n_replicates=64, seed=5
    )
    scores = np.abs(v - exact) / std_errors
    assert scores.max() < 6
    assert 0.92 < (scores < t.ppf(0.975, 63)).mean() < 0.975


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_a_non_linear_model_is_sampled_and_agrees_with_rejection(rho):
    """28 comparisons for each rho at 4.5 standard errors of the difference: false alarm below 0.1 %."""
    design = mixed_design("M4", rho)
    train = design.draw(400, seed=1)
    codes = design.schema.encode(train)
    tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(codes, np.exp(codes[:, 2]) * (codes[:, 0] == 1))
    X, masks = design.draw(2, seed=4), interior(4)
    v, std_errors = design.true_values(
        lambda table: tree.predict(design.schema.encode(table)), X, masks, n_samples=256, n_replicates=32, seed=1
    )
    assert (std_errors > 0).any()
    rng = np.random.default_rng(1)
    for c, mask in enumerate(masks):
        for i, row in enumerate(design.schema.encode(X)):
            mean, error = reject(design, row, mask, 20_000, rng, tree.predict)
            assert abs(v[c, i] - mean) < 4.5 * np.hypot(error, std_errors[c, i]) + 1e-12


def test_conditional_draws_keep_known_columns_and_depend_on_the_row_alone():
    design = mixed_design("M6", rho=0.3)
    X, masks = design.draw(5, seed=1), interior(6)[[0, 20, 60]]
    drawn = design.sample_conditional(X, masks, 8, seed=2)
    rows = design.schema.encode(X)
    assert drawn.shape == (3, 5, 8, 6)
    for c, mask in enumerate(masks):
        assert (drawn[c][..., mask] == rows[:, None, mask]).all()
    alone = design.sample_conditional(X.iloc[[3]], masks[1:2], 8, seed=2)
    np.testing.assert_array_equal(alone[0, 0], drawn[1, 3])
    assert set(np.unique(drawn[..., :2])) <= {0.0, 1.0, 2.0}


def test_draws_are_typed_reproducible_and_fewer_rows_are_the_head_of_more():
    design = mixed_design("M4", rho=0.5)
    X = design.draw(1000, seed=1)
    assert [str(dtype) for dtype in X.dtypes] == ["category", "category", "float64", "float64"]
    assert list(X["x1"].cat.categories) == ["L1", "L2", "L3", "L4"]
    pd.testing.assert_frame_equal(design.draw(100, seed=1), X.head(100))
    assert not X.equals(design.draw(1000, seed=2))
    np.testing.assert_array_equal(design.respond(X.head(100), seed=1), design.respond(X, seed=1)[:100])


def test_draws_have_the_correlation_and_the_level_frequencies_of_the_design():
    """Five comparisons at 4 standard errors: false alarm 0.03 %."""
    design = mixed_design("M4", rho=0.5)
    X = design.draw(20_000, seed=1)
    correlation = np.corrcoef(X["x3"], X["x4"])[0, 1]
    assert abs(correlation - 0.5) < 4 * 0.75 / np.sqrt(20_000)
    expected = np.diff(norm.cdf([-np.inf, -0.5, 0.0, 1.0, np.inf]))
    seen = X["x1"].value_counts(normalize=True, sort=False).to_numpy()
    assert (np.abs(seen - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)).all()


def test_the_response_is_the_papers_linear_form_with_unit_noise():
    design = mixed_design("M4", rho=0.5)
    X = pd.DataFrame(
        {
            "x1": pd.Categorical(["L1", "L3"], ["L1", "L2", "L3", "L4"]),
            "x2": pd.Categorical(["L2", "L4"], ["L1", "L2", "L3", "L4"]),
        }
    ).assign(x3=[0.5, 1.0], x4=[2.0, -1.0])
    assert design.linear.predict(X).tolist() == [1 + 1 + 3 + 0.5 - 2, 1 - 1 - 0.5 + 1 + 1]
    many = design.draw(20_000, seed=1)
    noise = design.respond(many, seed=2) - design.linear.predict(many)
    assert abs(noise.std() - 1) < 4 / np.sqrt(40_000)


def test_high_dimensional_coefficients_come_from_the_papers_grids():
    design = mixed_design("M50-L4", rho=0.5, seed=7)
    effects, slopes = design.linear.level_effects, design.linear.slopes
    assert effects.shape == (25, 4)
    assert slopes.shape == (25,)
    assert effects.min() >= -1
    assert 2 < effects.max() <= 3
    assert np.abs(slopes).max() <= 1
    np.testing.assert_allclose(effects * 10, np.rint(effects * 10), atol=1e-12)
    assert not np.array_equal(slopes, mixed_design("M50-L4", rho=0.5, seed=8).linear.slopes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mixed_design("M5", 0.5), "must be one of"),
        (lambda: mixed_design("M4", 1.0), "rho must be"),
        (lambda: mixed_design("M4", -0.1), "rho must be"),
        (lambda: draw_mixed(2, 2, (1.0, 0.0), 0.5, 0), "increasing"),
        (lambda: draw_mixed(2, 2, (), 0.5, 0), "at least one"),
        (lambda: draw_mixed(0, 0, (), 0.5, 0), "at least one feature"),
    ],
)
def test_impossible_designs_are_refused(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_wrong_masks_methods_and_models_are_refused():
    design = mixed_design("M4", rho=0.5)
    X = design.draw(3, seed=1)
    with pytest.raises(OptionError, match="boolean array"):
        design.true_values(design.linear, X, np.ones((2, 3), dtype=bool))
    with pytest.raises(OptionError, match="additive linear"):
        design.true_values(lambda table: np.exp(table["x3"]), X, interior(4), method="exact")
    with pytest.raises(OptionError, match="n_replicates"):
        design.true_values(lambda table: np.exp(table["x3"]), X, interior(4), n_replicates=1)
    with pytest.raises(OptionError, match="shapes"):
        design.linear_values(mixed_design("M6", 0.5).linear, design.schema.encode(X), interior(4))
