"""Cell probabilities against the multivariate normal distribution function, and truth against the sum over cells."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from condshap.coalitions import all_coalitions
from condshap.evaluation import ec1
from condshap.exceptions import OptionError
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs import (
    CATEGORICAL_SETUPS,
    categorical_design,
    cell_probabilities,
    draw_categorical,
    likely_cells,
    mixed_design,
)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_cell_probabilities_are_those_of_the_multivariate_normal_distribution(rho):
    design = categorical_design(3, 4, rho)
    cells = likely_cells(design)
    edges = np.array([-9.0, *design.law.cutoffs, 9.0])
    law = {"mean": np.zeros(3), "cov": np.full((3, 3), rho) + (1 - rho) * np.eye(3), "abseps": 1e-8, "releps": 1e-8}
    for code, p in zip(design.schema.encode(cells.X).astype(int)[::9], cells.weights[::9], strict=True):
        assert p == pytest.approx(multivariate_normal.cdf(edges[code + 1], lower_limit=edges[code], **law), abs=1e-7)


@pytest.mark.parametrize(("n_features", "n_levels"), CATEGORICAL_SETUPS)
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_all_cells_together_have_probability_one(n_features, n_levels, rho):
    cells = likely_cells(categorical_design(n_features, n_levels, rho), limit=10**6)
    assert len(cells.X) == n_levels**n_features
    assert cells.coverage == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("n_features", "n_levels"), [(3, 3), (4, 3), (3, 4)])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_truth_is_the_papers_sum_over_all_cells_that_agree_with_the_known_levels(n_features, n_levels, rho):
    design = categorical_design(n_features, n_levels, rho, seed=1)
    cells = likely_cells(design)
    codes, f = design.schema.encode(cells.X), design.linear.predict(cells.X)
    masks = all_coalitions(n_features).masks
    v, std_errors = design.true_values(design.linear, cells.X, masks)
    assert (std_errors == 0).all()
    for c, mask in enumerate(masks):
        agree = (codes[:, None, mask] == codes[None, :, mask]).all(axis=2) * cells.weights
        np.testing.assert_allclose(v[c], agree @ f / agree.sum(axis=1), rtol=0, atol=1e-11)
    phi = exact_shapley(v, masks)
    np.testing.assert_allclose(v[0] + phi.sum(axis=0), f, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("n_features", "n_levels"), [(5, 6), (7, 4), (10, 3)])
def test_the_2000_most_likely_cells_are_taken_and_rescaled(n_features, n_levels):
    design = categorical_design(n_features, n_levels, rho=0.5)
    some, everything = likely_cells(design), likely_cells(design, limit=10**6)
    assert len(some.X) == 2000
    assert some.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(some.weights) <= 1e-12).all()
    best = np.sort(everything.weights)[::-1][:2000]
    assert some.coverage == pytest.approx(best.sum(), abs=1e-12)
    np.testing.assert_allclose(cell_probabilities(design, some.X) / some.coverage, some.weights, rtol=1e-12)
    assert not some.X.duplicated().any()


def test_probabilities_are_the_frequencies_of_drawn_rows():
    """27 comparisons at 4 standard errors: false alarm 0.2 %."""
    design = categorical_design(3, 3, rho=0.5)
    drawn, cells = design.draw(20_000, seed=1), likely_cells(design)
    place = design.schema.encode(drawn) @ [9, 3, 1]
    seen = np.bincount(place.astype(int), minlength=27) / 20_000
    assert (np.abs(seen - cells.weights) < 4 * np.sqrt(cells.weights * (1 - cells.weights) / 20_000)).all()


def test_the_response_has_noise_of_a_tenth_and_standard_normal_effects():
    design = draw_categorical(40, (0.0, 1.0, 2.0), 0.5, seed=1)
    X = design.draw(5000, seed=1)
    noise = design.respond(X, seed=2) - design.linear.predict(X)
    assert abs(noise.std() / 0.1 - 1) < 4 / np.sqrt(10_000)
    assert abs(design.linear.level_effects.std() - 1) < 4 / np.sqrt(320)
    assert design.linear.slopes.shape == (0,)


def test_weighted_ec1_of_the_truth_against_itself_is_zero_and_weights_count():
    design = categorical_design(3, 3, rho=0.5, seed=1)
    cells, masks = likely_cells(design), all_coalitions(3).masks
    phi = exact_shapley(design.true_values(design.linear, cells.X, masks)[0], masks).T
    assert float(ec1(phi, phi, weights=cells.weights)) == 0.0
    shifted = phi + (np.arange(27) == 4)[:, None]
    assert float(ec1(phi, shifted, weights=cells.weights)) == pytest.approx(cells.weights[4])


def test_unknown_setups_and_numbers_among_the_features_are_refused():
    with pytest.raises(OptionError, match="must be one of"):
        categorical_design(3, 5, 0.5)
    with pytest.raises(OptionError, match="factors only"):
        likely_cells(mixed_design("M4", 0.5))
    with pytest.raises(OptionError, match="can be listed"):
        likely_cells(draw_categorical(30, (0.0,), 0.5, seed=1))
