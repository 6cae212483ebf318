import numpy as np

from condshap.coalitions import all_coalitions, make_plan
from condshap.numerics.shapley import wls_operator
from condshap.precision import allocate_samples, sensitivities


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


def test_one_player_needs_no_samples():
    assert len(allocate_samples(all_coalitions(1))) == 2
