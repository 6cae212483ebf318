from math import comb

import numpy as np
import pytest

from condshap.coalitions import CoalitionPlan, all_coalitions, make_plan, sample_coalitions
from condshap.coalitions.sampled import deterministic_depth
from condshap.exceptions import CoalitionError


@pytest.mark.parametrize("n_players", [1, 2, 5, 13])
def test_all_coalitions_come_by_size_then_by_members(n_players):
    from itertools import combinations

    plan = all_coalitions(n_players)
    assert plan.masks.shape == (2**n_players, n_players)
    assert plan.is_exact
    members = [tuple(np.flatnonzero(mask)) for mask in plan.masks[:600]]
    wanted = [c for size in range(n_players + 1) for c in combinations(range(n_players), size)][:600]
    assert members == wanted


def test_too_many_players_for_all_coalitions_are_refused():
    with pytest.raises(CoalitionError, match="at most 24 players, got 30"):
        make_plan(30, 2**30, seed=0)


def test_defaults_take_all_up_to_ten_players_and_a_thousand_beyond():
    assert len(make_plan(10, None, seed=0).masks) == 1024
    assert len(make_plan(11, None, seed=0).masks) == 1000


def test_deterministic_levels_are_those_of_the_reference_for_five_players():
    # R's shapr: level 0 up to 18 coalitions, level 1 up to 30
    assert [deterministic_depth(5, n) for n in (6, 12, 18, 20, 28, 30)] == [0, 0, 0, 1, 1, 1]


def test_weights_of_taken_sizes_are_their_kernel_share():
    plan = sample_coalitions(10, 200, seed=3)
    sizes = plan.sizes
    certain = plan.inclusion == 1
    taken = np.isin(sizes, [1, 9])
    assert certain[taken].all()
    mass = np.array([(9 / (s * (10 - s))) for s in range(1, 10)])
    np.testing.assert_allclose(plan.weights[taken].sum(), (mass[0] + mass[-1]) / mass.sum())
    np.testing.assert_allclose(plan.weights[plan.interior].sum(), 1)


def test_corrected_weights_are_q_over_inclusion_probability():
    plan = sample_coalitions(12, 60, seed=1)
    drawn = (plan.inclusion < 1) & (plan.weights > 0)
    sizes = plan.sizes[drawn]
    q = np.array([11 / (s * (12 - s)) / comb(12, s) for s in sizes])
    ratio = plan.weights[drawn] * plan.inclusion[drawn] / q
    np.testing.assert_allclose(ratio, ratio[0])


def test_sampling_is_paired():
    plan = sample_coalitions(12, 100, seed=1)
    names = {mask.tobytes() for mask in plan.masks}
    assert all((~mask).tobytes() in names for mask in plan.masks)
    assert all(len(pair) == 2 for pair in plan.pairs())


def test_inclusion_probabilities_are_frequencies_over_seeds():
    # P = 8, 100 coalitions, 300 fixed seeds: per size, share of coalitions drawn less the probability told, within 4 of
    # its own standard errors (5 sizes: a false alarm in about 3 of 10,000 choices of seeds)
    sizes = np.arange(2, 7)
    difference = np.zeros((300, len(sizes)))
    for seed in range(len(difference)):
        plan = sample_coalitions(8, 100, seed=seed)
        for k, size in enumerate(sizes):
            drawn = plan.inclusion[plan.sizes == size]
            difference[seed, k] = len(drawn) / comb(8, size) - drawn.mean()
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    assert (np.abs(difference.mean(axis=0)) < 4 * error).all()


def test_a_sample_that_cannot_separate_players_is_repaired_and_recorded():
    plan = sample_coalitions(10, 11, seed=0)
    assert plan.n_repaired > 0
    assert len(plan.masks) == 10 + plan.n_repaired  # whole pairs


def test_a_repair_adds_no_more_than_needed():
    plan = sample_coalitions(4, 6, seed=0)
    assert len(plan.masks) == 14  # 6 pairs, two more than players
    assert plan.n_repaired == 8


@pytest.mark.parametrize("n_players", [3, 4, 5, 6, 9, 30])
def test_there_are_always_two_pairs_more_than_players_or_all(n_players):
    least = min(2 * n_players + 6, 2**n_players)
    plans = [make_plan(n_players, n, seed=2) for n in (n_players + 1, least - 1, least)]
    for plan in plans:
        assert len(plan.masks) == least
        np.testing.assert_array_equal(plan.masks, plans[-1].masks)
        np.testing.assert_array_equal(plan.weights, plans[-1].weights)


@pytest.mark.parametrize("n_players", [4, 5, 6, 9, 12])
def test_odd_numbers_of_coalitions_give_the_whole_pairs_below_them(n_players):
    for n in range(2 * n_players + 2, min(6 * n_players, 2**n_players) - 1, 2):
        even, odd = (make_plan(n_players, k, seed=1) for k in (n, n + 1))
        np.testing.assert_array_equal(even.masks, odd.masks)
        np.testing.assert_array_equal(even.weights, odd.weights)
        assert all(len(pair) == 2 for pair in odd.pairs())


def test_pairs_are_solved_by_kriging_wherever_there_are_enough():
    assert make_plan(12, 13, seed=0).is_kriged
    assert make_plan(12, 30, seed=0).is_kriged
    assert not make_plan(5, 25, seed=0).is_kriged
    assert make_plan(5, 27, seed=0).is_kriged
    assert not sample_coalitions(12, 100, seed=0).is_kriged
    assert not CoalitionPlan.given(all_coalitions(4).masks[1:-1], np.ones(14)).is_kriged


def test_a_plan_of_pairs_that_cannot_separate_players_is_repaired_and_recorded(monkeypatch):
    answers = iter([False, False, True])
    monkeypatch.setattr("condshap.coalitions.nested.can_separate", lambda *_: next(answers))
    plan = make_plan(12, 40, seed=0)
    assert plan.n_repaired == 4
    assert len(plan.masks) == 44


def test_the_same_seed_draws_the_same_coalitions_and_another_seed_does_not():
    one, same, other = (sample_coalitions(15, 200, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.masks, same.masks)
    assert not np.array_equal(one.masks, other.masks)


def test_too_few_coalitions_are_refused():
    with pytest.raises(CoalitionError, match="at least 11, one more than the 10 players, got 10"):
        make_plan(10, 10, seed=0)


def test_given_coalitions_are_ordered_summed_and_framed():
    plan = CoalitionPlan.given(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]]), [1.0, 1.0, 1.0, 1.0])
    assert plan.masks.astype(int).tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 1]]
    np.testing.assert_allclose(plan.weights, [0, 0.5, 0.25, 0.25, 0])
    masks, chance = plan.mask_distribution()
    assert len(masks) == 3
    assert chance.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("masks", "weights", "message"),
    [
        ([[1, 1, 0], [0, 0, 1]], [1, 1], "tell all 3 players apart"),
        ([[1, 0, 0], [1, 1, 1]], [1, 1], r"interior, but rows \[1\]"),
        ([[1, 0, 0], [0, 1, 0]], [1, 0], "positive finite"),
        ([[1, 0, 0], [0, 1, 0]], [1], "one per coalition"),
        ([[1, 0, 2], [0, 1, 0]], [1, 1], "True and False"),
    ],
)
def test_given_coalitions_that_make_no_sense_are_refused(masks, weights, message):
    with pytest.raises(CoalitionError, match=message):
        CoalitionPlan.given(np.array(masks), weights)


def test_hundreds_of_players_neither_overflow_nor_lose_weight():
    plan = make_plan(300, None, seed=0)
    assert np.isfinite(plan.weights).all()
    assert (plan.weights[plan.interior] > 0).all()
    assert plan.weights.sum() == pytest.approx(1)
