import numpy as np
import pytest

import condshap as cs
from condshap.approaches import Gaussian
from condshap.coalitions import all_coalitions
from condshap.exceptions import ApproachError
from condshap.values.assignments import make_parts

X = np.random.default_rng(0).multivariate_normal(np.zeros(4), np.full((4, 4), 0.5) + 0.5 * np.eye(4), size=300)


def model(rows):
    return rows[:, 0] * rows[:, 1] + rows[:, 2] - rows[:, 3]


def test_each_coalition_size_gets_the_values_of_its_own_approach():
    names = ["gaussian", "empirical", "gaussian"]
    mixed = cs.explain(model, X, X[:5], approach=names, n_samples=64)
    alone = {name: cs.explain(model, X, X[:5], approach=name, n_samples=64) for name in set(names)}
    sizes = mixed.value_table.coalitions.sum(axis=1)
    for size, name in enumerate(names, start=1):
        here = sizes == size
        np.testing.assert_allclose(mixed.value_table.values[here], alone[name].value_table.values[here], atol=1e-12)
    empirical = sizes == 2
    assert (mixed.value_table.std_errors[empirical] == 0).all()
    assert (mixed.value_table.std_errors[(sizes == 1) | (sizes == 3)] > 0).all()
    assert mixed.provenance.approach == "gaussian + empirical"


def test_a_list_of_one_name_is_that_approach():
    many, one = (cs.explain(model, X, X[:3], approach=a) for a in (["copula"] * 3, "copula"))
    np.testing.assert_array_equal(many.values, one.values)
    np.testing.assert_array_equal(many.std_errors, one.std_errors)


def test_the_same_approach_is_fitted_once():
    shared = Gaussian()
    parts = make_parts([shared, "copula", shared], all_coalitions(4))
    assert len(parts) == 2
    assert sorted(np.concatenate([part.positions for part in parts]).tolist()) == list(range(1, 15))
    assert len(make_parts([Gaussian(), "copula", Gaussian()], all_coalitions(4))) == 3


def test_groups_count_players_not_features():
    groups = {"left": ["x0", "x1"], "x2": ["x2"], "x3": ["x3"]}
    explanation = cs.explain(model, X, X[:3], approach=["empirical", "gaussian"], groups=groups, n_samples=32)
    sizes = explanation.value_table.coalitions.sum(axis=1)
    assert (explanation.value_table.std_errors[sizes == 1] == 0).all()
    assert (explanation.value_table.std_errors[sizes == 2] > 0).all()


@pytest.mark.parametrize("approach", [["gaussian"], ["gaussian"] * 4, []])
def test_lists_of_the_wrong_length_are_refused(approach):
    with pytest.raises(ApproachError, match=f"one entry per coalition size 1 to 3, got {len(approach)} entries"):
        cs.explain(model, X, X[:1], approach=approach)


def test_every_entry_must_support_the_features():
    with pytest.raises(cs.CondShapError, match="Did you mean 'gaussian'"):
        cs.explain(model, X, X[:1], approach=["gaussian", "gausian", "gaussian"])
