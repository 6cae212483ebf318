"""Shapley values of the true contribution function keep the axioms to 1e-10, for mixed data with correlation."""

import numpy as np
import pytest

from condshap.coalitions import all_coalitions
from condshap.numerics.shapley import exact_shapley
from condshap.studies.designs import LinearModel, mixed_design

ATOL = 1e-10
EFFECTS, SLOPES = [[1.0, 0.0, -1.0], [2.0, 3.0, -0.5]], [1.0, -1.0, 2.0, -0.25]


def true_shapley(design, model, X):
    """Shapley values (R, M) of the exact v_true, with the true mean as base value."""
    masks = all_coalitions(6).masks
    v, errors = design.true_values(model, X, masks)
    assert not errors.any()
    return exact_shapley(v, masks).T, v


@pytest.fixture(params=[0.0, 0.5, 0.9])
def design(request):
    return mixed_design("M6", request.param)


def test_efficiency(design):
    X, model = design.draw(50, 1), LinearModel.of(1.0, EFFECTS, SLOPES)
    phi, v = true_shapley(design, model, X)
    np.testing.assert_allclose(phi.sum(axis=1), v[-1] - v[0], rtol=0, atol=ATOL)
    np.testing.assert_allclose(v[-1], model.predict(design.schema.encode(X)), rtol=0, atol=ATOL)


def test_linearity(design):
    X, rng = design.draw(50, 2), np.random.default_rng(0)
    one = (1.0, np.array(EFFECTS), np.array(SLOPES))
    two = (-2.0, rng.normal(size=(2, 3)), rng.normal(size=4))
    both = LinearModel.of(*(2.0 * a - 3.0 * b for a, b in zip(one, two, strict=True)))
    parts = [true_shapley(design, LinearModel.of(*model), X)[0] for model in (one, two)]
    np.testing.assert_allclose(true_shapley(design, both, X)[0], 2.0 * parts[0] - 3.0 * parts[1], rtol=0, atol=ATOL)


@pytest.mark.parametrize(("first", "second"), [("x1", "x2"), ("x3", "x4")])
def test_symmetry(design, first, second):
    """Two features with the same effect that change their values change their Shapley values."""
    model = LinearModel.of(1.0, [EFFECTS[0], EFFECTS[0]], [1.0, 1.0, 2.0, -0.25])
    X = design.draw(50, 3)
    swapped = X.assign(**{first: X[second], second: X[first]})
    names = list(X.columns)
    order = [names.index({first: second, second: first}.get(name, name)) for name in names]
    expected = true_shapley(design, model, X)[0][:, order]
    np.testing.assert_allclose(true_shapley(design, model, swapped)[0], expected, rtol=0, atol=ATOL)


def test_a_feature_that_the_model_ignores_gets_something_only_where_it_tells_of_others(design):
    model = LinearModel.of(1.0, EFFECTS, [0.0, -1.0, 2.0, -0.25])
    ignored = true_shapley(design, model, design.draw(50, 4))[0][:, 2]
    if design.law.rho == 0:
        np.testing.assert_allclose(ignored, 0.0, rtol=0, atol=ATOL)
    else:
        assert np.abs(ignored).mean() > 0.05
