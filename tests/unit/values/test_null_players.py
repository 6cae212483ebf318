"""Who cannot matter gets exactly nothing, without error; everybody else keeps the sum."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import condshap as cs
from condshap.approaches import find_approach
from condshap.exceptions import CondShapWarning

rng = np.random.default_rng(0)
Z = rng.normal(size=(150, 1)) + 0.7 * rng.normal(size=(150, 4))
Z[:, 2] = 0.1  # whose mean is not 0.1
NETWORKS = {"epochs": 2, "width": 16, "latent": 4, "progress": False, "scales": ["standard"]}
APPROACHES = (
    "independence", "gaussian", "copula", "ctree", "empirical", "regression_separate", "regression_surrogate", "vaeac"
)  # fmt: skip


def model(x):
    return x[:, 0] * x[:, 1] + np.abs(x[:, 3]) * (1 + x[:, 2])


def explain(approach, rows=Z[:3], train=Z, function=model, **options):
    made = find_approach(approach)(**(NETWORKS if approach == "vaeac" else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a singular covariance, standard errors
        return cs.explain(function, train, rows, approach=made, check_draws=False, progress=False, **options)


def assert_adds_up(explanation):
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, explanation.predictions, atol=1e-12)


@pytest.mark.parametrize("approach", APPROACHES)
def test_a_constant_column_gets_exactly_nothing(approach):
    found = explain(approach)
    assert (found.values[:, 2] == 0).all()
    assert (found.std_errors[:, 2] == 0).all()
    assert (found.values[:, [0, 1, 3]] != 0).all()
    assert_adds_up(found)
    at = {mask.tobytes(): i for i, mask in enumerate(found.value_table.coalitions)}
    for i, mask in enumerate(found.value_table.coalitions):
        other = mask ^ (np.arange(4) == 2)
        assert np.array_equal(found.value_table.values[i], found.value_table.values[at[other.tobytes()]])


@pytest.mark.parametrize("options", [{"n_coalitions": 12}, {"n_coalitions": "auto"}, {"target_error": 0.1}], ids=str)
@pytest.mark.parametrize("approach", ["gaussian", "ctree"])
def test_other_plans_give_it_nothing_either(approach, options):
    wide = np.hstack([Z, np.full((150, 1), 3.0), Z[:, :1] + rng.normal(size=(150, 1))])
    if approach == "ctree" and "target_error" in options:
        pytest.skip("nothing is random")
    found = explain(approach, wide[:3], wide, **options)
    assert (found.values[:, [2, 4]] == 0).all()
    assert (found.std_errors[:, [2, 4]] == 0).all()
    assert_adds_up(found)


def test_without_noise_the_others_have_what_they_would_have_without_it():
    with_it = explain("gaussian", additive=True, function=lambda x: x @ [1.0, 2.0, 3.0, 4.0])
    less = Z[:, [0, 1, 3]]
    without = explain("gaussian", less[:3], less, additive=True, function=lambda x: x @ [1.0, 2.0, 4.0])
    np.testing.assert_allclose(with_it.values[:, [0, 1, 3]], without.values, atol=1e-12)


def test_several_rows_have_the_numbers_of_each_alone():
    other = Z[:4].copy()
    other[1, 2] = 0.3  # not what training showed: here the column matters
    together = explain("gaussian", other)
    assert (together.values[[0, 2, 3], 2] == 0).all()
    assert together.values[1, 2] != 0
    for i in range(4):
        alone = explain("gaussian", other[i : i + 1])
        assert np.array_equal(alone.values[0], together.values[i])
        assert np.array_equal(alone.std_errors[0], together.std_errors[i])


def test_groups_are_null_if_all_of_their_columns_are():
    X = np.hstack([Z, np.full((150, 1), 7.0)])
    found = explain("gaussian", X[:2], X, groups={"ab": [0, 1], "constant": [2, 4], "d": [3]})
    assert (found.values[:, 1] == 0).all()
    found = explain("gaussian", X[:2], X, groups={"ab": [0, 1], "mixed": [2, 3], "e": [4]})
    assert (found.values[:, 1] != 0).all()
    assert (found.values[:, 2] == 0).all()


def test_a_given_base_value_is_explained_even_where_nothing_varies():
    X = np.ones((60, 2))
    found = explain("independence", X[:1], X, function=lambda x: x.sum(axis=1), base_value=0.0)
    np.testing.assert_allclose(found.values.sum(), 2.0)


LEVELS = pd.DataFrame({"a": Z[:, 0], "c": pd.Categorical(np.where(Z[:, 3] > 0, "x", "y")), "u": Z[:, 1]})


def of_two_columns(X, y):
    """A forest that has seen three columns and looks at one or two of them."""
    encode = make_column_transformer((OrdinalEncoder(), ["c"]), (StandardScaler(), ["a", "u"]))
    quiet = X.assign(u=0.0)  # nothing to split by
    return make_pipeline(encode, RandomForestRegressor(5, max_depth=3, random_state=0)).fit(quiet, y)


def test_what_trees_never_read_gets_nothing_where_columns_are_independent():
    y = Z[:, 0] * (Z[:, 3] > 0) + 0.5 * Z[:, 0] ** 2
    forest = of_two_columns(LEVELS, y)
    rows = LEVELS.iloc[:3]
    found = explain("independence", rows, LEVELS, forest, n_samples=40)
    assert (found.values[:, 2] == 0).all()
    assert (found.std_errors[:, 2] == 0).all()
    assert (found.values[:, :2] != 0).all()
    assert_adds_up(found)
    dependent = explain("ctree", rows, LEVELS, forest)  # tells about column a
    assert (dependent.values[:, 2] != 0).any()


def test_what_has_no_slope_gets_nothing_where_columns_are_independent():
    sparse = Lasso(alpha=0.5).fit(Z, 3 * Z[:, 0])
    assert (sparse.coef_[1:] == 0).all()
    assert (explain("independence", function=sparse).values[:, 1:] == 0).all()
    full = LinearRegression().fit(Z[:, [0, 1, 3]], 3 * Z[:, 0] + Z[:, 1])
    less = Z[:, [0, 1, 3]]
    assert (explain("independence", less[:2], less, full).values[:, :2] != 0).all()


def test_saved_explainers_know_who_is_null(tmp_path):
    with pytest.warns(CondShapWarning, match="constant"):
        explainer = cs.Explainer(model, approach="gaussian", check_draws=False).fit(Z)
    explainer.save(tmp_path / "explainer")
    loaded = cs.load_explainer(tmp_path / "explainer", model)
    assert np.array_equal(loaded.explain(Z[:2]).values, explainer.explain(Z[:2]).values)


@pytest.mark.parametrize("approach", ["gaussian", "copula", "ctree", "empirical"])
@pytest.mark.parametrize(
    ("order", "confounding", "nothing"),
    [
        # the forest reads x0 and x2
        ([[0], [2], [1], [3]], [False, False, False, False], [1, 3]),
        ([[0], [1], [2], [3]], [False, False, False, False], [3]),  # x1 moves x2
        ([[0], [1, 2], [3]], [False, True, False], [1, 3]),  # x1 and x2 have an unseen cause: setting x1 moves nothing
        ([[0], [1, 2], [3]], [False, False, False], [3]),
        ([[3], [0, 1, 2]], [False, True], [1]),
    ],
)
def test_a_column_that_is_not_read_and_moves_none_that_is_gets_exactly_nothing(approach, order, confounding, nothing):
    train = rng.normal(size=(150, 1)) + 0.7 * rng.normal(size=(150, 4))
    columns = make_column_transformer(("passthrough", [0, 2]))
    forest = make_pipeline(columns, RandomForestRegressor(20, max_depth=3, random_state=0))
    forest.fit(train, train[:, 0] * train[:, 2])
    names = [[f"x{j}" for j in component] for component in order]
    options = {"causal_ordering": names, "confounding": confounding}
    found = explain(approach, train[:3], train, forest, n_samples=16, **options)
    is_nothing = np.isin(np.arange(4), nothing)
    assert ((found.values == 0).all(axis=0) == is_nothing).all()
    assert (found.std_errors[:, is_nothing] == 0).all()
    assert_adds_up(found)


def test_components_of_asymmetric_values_keep_their_steps():
    names = [f"x{j}" for j in range(13)]
    train = rng.normal(size=(150, 1)) + 0.7 * rng.normal(size=(150, 13))
    train[:, 4] = 1.0
    # the second component has twelve players, so its coalitions are sampled, which gives x4 something at first
    options = {"causal_ordering": [names[:1], names[1:]], "asymmetric": True, "n_coalitions": 60, "n_samples": 16}
    found = explain("gaussian", train[:3], train, lambda x: x[:, 0] * x[:, 1] + x[:, 4:] @ x[0, 4:], **options)
    assert not found.provenance.is_exact
    assert (found.values[:, 4] == 0).all()
    is_first = (found.value_table.coalitions == (np.arange(13) == 0)).all(axis=1)
    step = found.value_table.values[is_first][0] - found.value_table.values[0]
    np.testing.assert_allclose(found.values[:, 0], step, atol=1e-12)
    assert_adds_up(found)
