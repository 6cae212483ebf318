"""Interactions from sampled coalitions, what is refused, and what they cost."""

from __future__ import annotations

import time

import numpy as np
import pytest

import condshap as cs
from condshap.coalitions import all_coalitions
from condshap.exceptions import CoalitionError, OptionError
from condshap.numerics.interactions import INDICES, player_sets
from tests.unit.games.tables_of_games import of_table, random_table, sampled


def low_order_table(P, order, seed=0, rows=3):
    """Games without interactions beyond the order, and these interactions by set."""
    rng, masks = np.random.default_rng(seed), all_coalitions(P).masks
    truth = {members: rng.normal(size=rows) for members in player_sets(P, order)}
    v = sum(np.outer(masks[:, list(members)].all(axis=1), values) for members, values in truth.items())
    return v, truth


@pytest.mark.parametrize(("order", "n_coalitions"), [(2, 90), (3, 160)])
def test_a_game_of_low_order_is_found_exactly_from_some_coalitions(order, n_coalitions):
    v, truth = low_order_table(8, order)
    mine = sampled(of_table(v), n_coalitions).interactions("FSII", order)
    assert not mine.is_exact
    for members, values in truth.items():
        np.testing.assert_allclose(mine.values[members], values, atol=1e-8)
        assert (mine.std_errors[members] < 1e-7).all()


def test_sampled_coalitions_give_nearly_what_all_of_them_give():
    explanation = of_table(low_order_table(8, 2)[0] + 0.1 * random_table(8, 3))
    exact, mine = explanation.interactions("FSII"), sampled(explanation, 150).interactions("FSII")
    np.testing.assert_allclose(sum(mine.values.values()), explanation.predictions, atol=1e-9)
    pairs = [members for members in mine.values if len(members) == 2]
    off = np.array([mine.values[members] - exact.values[members] for members in pairs])
    errors = np.array([mine.std_errors[members] for members in pairs])
    assert (np.abs(off) <= 1.96 * errors).mean() > 0.9
    assert np.sqrt((off**2).mean()) < 0.2


def test_the_regression_with_all_coalitions_is_the_closed_form():
    v = random_table(6, 2, seed=4)
    for order in (2, 3):
        exact = of_table(v, errors=0.2).interactions("FSII", order)
        fitted = of_table(v, errors=0.2, is_exact=False).interactions("FSII", order)
        for members, values in exact.values.items():
            np.testing.assert_allclose(fitted.values[members], values, atol=1e-9)
            np.testing.assert_allclose(fitted.std_errors[members], exact.std_errors[members], atol=1e-9)


def test_rows_with_gaps_in_their_coalitions_are_estimated_from_what_they_have():
    v, truth = low_order_table(7, 2)
    with_gaps = v.copy()
    rng = np.random.default_rng(2)
    for row in range(3):
        with_gaps[rng.choice(np.arange(1, 127), 40, replace=False), row] = np.nan
    mine = of_table(with_gaps).interactions("FSII")
    assert not mine.is_exact
    for members, values in truth.items():
        np.testing.assert_allclose(mine.values[members], values, atol=1e-8)


def test_automatic_coalitions_have_faithful_interactions():
    X = np.random.default_rng(0).normal(size=(100, 8))
    f = lambda x: x.sum(axis=1) + x[:, 0] * x[:, 1]  # noqa: E731
    given = cs.explain(f, X, X[:3], approach="gaussian", n_coalitions="auto", tolerance=0.004)
    mine = given.interactions("FSII")
    exact = cs.explain(f, X, X[:3], approach="gaussian").interactions("FSII")
    for members in mine.values:
        off = np.abs(mine.values[members] - exact.values[members])
        assert (off <= 5 * np.hypot(mine.std_errors[members], exact.std_errors[members]) + 1e-9).all()


def test_few_coalitions_to_spare_make_large_errors():
    explanation = of_table(random_table(8, 1))
    few, many = (sampled(explanation, n).interactions("FSII").std_errors[0, 1] for n in (60, 120))
    assert few > 5 * many


def test_coalitions_that_leave_nothing_to_judge_the_fit_by_are_refused():
    P = 5
    masks = all_coalitions(P).masks
    few = masks[(masks.sum(axis=1) <= 2) | (masks.sum(axis=1) == P)][1:]  # as many as unknowns, without player 0 alone
    few[0] = False
    with pytest.raises(CoalitionError, match="leave nothing to judge the fit by"):
        of_table(random_table(P, 1)[: len(few)], few, is_exact=False).interactions("FSII")


@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "BII"])
def test_other_indices_refuse_sampled_tables_and_say_why(index):
    with pytest.raises(CoalitionError, match=r"has 100 of the 2\^8 = 256 coalitions.*n_coalitions=256.*index='FSII'"):
        sampled(of_table(random_table(8, 2)), 100).interactions(index)


@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "BII"])
def test_gaps_in_an_exact_table_are_refused(index):
    v = random_table(4, 3)
    v[5, 1] = np.nan
    with pytest.raises(CoalitionError, match="v\\(S\\) of some coalitions is NaN in 1 of 3 rows"):
        of_table(v).interactions(index)


def test_a_table_that_only_claims_to_be_exact_is_refused():
    v, masks = random_table(4, 1), all_coalitions(4).masks
    with pytest.raises(CoalitionError, match="has 12 of the 2\\^4 = 16"):
        of_table(v[:12], masks[:12]).interactions()


def test_too_few_coalitions_are_refused_with_a_number_that_is_enough():
    explanation = of_table(random_table(8, 1))
    with pytest.raises(
        CoalitionError, match=r"its 37 numbers, got 30 coalitions in a row: too few.*n_coalitions of 111"
    ):
        sampled(explanation, 30).interactions("FSII")
    assert len(sampled(explanation, 111).interactions("FSII").values) == 37


def test_coalitions_that_respect_an_order_of_players_do_not_determine_pairs():
    masks = all_coalitions(6).masks
    first = masks[:, :3].all(axis=1)
    allowed = masks[first | ~masks[:, 3:].any(axis=1)]
    with pytest.raises(CoalitionError, match="without asymmetric=True"):
        of_table(np.ones((len(allowed), 1)), allowed, is_exact=True).interactions("FSII")


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["Shapley", "ksii", None, 2])
def test_an_unknown_index_is_refused(index):
    with pytest.raises(OptionError, match=r"index must be one of \['SII', 'k-SII', 'STII', 'FSII', 'BII'\], got"):
        of_table(random_table(3, 1)).interactions(index)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (0, "at least 1"),
        (1, "at least 2, got 1. Single players"),
        (4, "at most 3"),
        (2.5, "integer"),
        ("2", "integer"),
        (True, "integer"),
    ],
)
def test_an_order_that_is_not_offered_is_refused(order, message):
    with pytest.raises(OptionError, match=message):
        of_table(random_table(3, 1)).interactions(order=order)


# --- cost ------------------------------------------------------------------------------------------------------------


def test_pairs_of_ten_players_and_a_hundred_rows_take_less_than_a_second_for_all_indices_together():
    explanation = of_table(random_table(10, 100), errors=0.1)
    start = time.process_time()
    for index in INDICES:
        explanation.interactions(index, 2)
    assert time.process_time() - start < 1.0
