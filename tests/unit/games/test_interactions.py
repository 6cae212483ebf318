"""Interactions from value tables: against shapiq, against games whose interactions are known, and what is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
import shapiq
from shapiq.game_theory import MoebiusConverter

import condshap as cs
from condshap.coalitions import all_coalitions, make_plan
from condshap.exceptions import CoalitionError, OptionError
from condshap.explanation import Explanation, Provenance
from condshap.numerics.interactions import INDICES, derivative_weights, player_sets

SHARING = ("k-SII", "STII", "FSII")  # their values add up to the prediction


def of_table(values, masks=None, errors=0.0, *, is_exact=True, outputs=("prediction",)) -> Explanation:
    """Explanation with this value table (C, R) or (C, R, O); its Shapley values do not matter here."""
    values = np.asarray(values, dtype=float)
    P = masks.shape[1] if masks is not None else int(np.log2(len(values)))
    masks = all_coalitions(P).masks if masks is None else masks
    base, predictions = values[0], values[-1]
    names = tuple(f"player {j}" for j in range(P))
    phi = np.repeat((predictions - base)[:, None] / P, P, axis=1)
    table = cs.ValueTable(masks, values, np.broadcast_to(np.asarray(errors, float), values.shape).copy(), 0)
    data = pd.DataFrame(np.zeros((values.shape[1], P)), columns=names, index=[f"r{i}" for i in range(values.shape[1])])
    about = Provenance("gaussian", {}, 0, (), len(masks), is_exact, 0, "mean", {}, {})
    members = tuple((j,) for j in range(P))
    return Explanation(
        phi, base, predictions, np.zeros_like(phi), table, data, names, names, outputs, members, about
    )  # fmt: skip


def random_table(P, *shape, seed=0):
    return np.random.default_rng(seed).normal(size=(2**P, *shape)) + 3.0


def sampled(explanation, n_coalitions, seed=0) -> Explanation:
    """The same game with some of its coalitions."""
    P = len(explanation.player_names)
    masks = make_plan(P, n_coalitions, seed=seed).masks
    table = explanation.value_table
    place = {mask.tobytes(): i for i, mask in enumerate(table.coalitions)}
    some = [place[mask.tobytes()] for mask in masks]
    return of_table(table.values[some], masks, table.std_errors[some], is_exact=False)


# --- the same numbers as shapiq --------------------------------------------------------------------------------------


def theirs(explanation, index, order, row=0):
    """shapiq's exact values of the same table."""
    table = explanation.value_table
    v = {tuple(mask.tolist()): table.values[i, row] for i, mask in enumerate(table.coalitions)}
    game = lambda masks: np.array([v[tuple(np.asarray(mask, bool).tolist())] for mask in masks])  # noqa: E731
    return shapiq.ExactComputer(game, n_players=len(explanation.player_names))(index, order)


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("index", INDICES)
def test_values_are_those_of_shapiq(index, order):
    explanation = of_table(random_table(5, 2, seed=order))
    mine = explanation.interactions(index=index, order=order)
    assert set(mine.values) == set(player_sets(5, order))
    for row in range(2):
        expected = theirs(explanation, index, order, row).dict_values
        for members, values in mine.values.items():
            # shapiq meets the constraint of FSII by a large weight, 1e8, and leaves out zeros
            assert values[row] == pytest.approx(expected.get(members, 0.0), abs=1e-8), members


@pytest.mark.parametrize("index", ["SII", "k-SII", "STII", "FSII"])
def test_values_are_those_of_shapiq_by_moebius_coefficients(index):
    explanation = of_table(random_table(6, 1, seed=3))
    expected = MoebiusConverter(theirs(explanation, "Moebius", 6))(index, 3).dict_values
    mine = explanation.interactions(index, 3)
    for members, values in mine.values.items():
        if members:
            assert values[0] == pytest.approx(expected.get(members, 0.0), abs=1e-11)


@pytest.mark.parametrize("index", INDICES)
def test_a_row_goes_to_shapiq_and_comes_back(index):
    mine = of_table(random_table(4, 3)).interactions(index, 3)
    given = mine.to_shapiq(2)
    assert given.index == index
    assert given.max_order == 3
    assert given.n_players == 4
    assert not given.estimated
    for members, values in mine.values.items():
        assert given[members] == values[2]
    if index in SHARING:
        assert given.baseline_value == mine.base_values[2]


def test_a_row_with_several_outputs_goes_to_shapiq_output_by_output():
    mine = of_table(random_table(3, 4, 2), outputs=("no", "yes")).interactions()
    assert mine.to_shapiq(-1, output="yes")[(0, 2)] == mine.values[0, 2][3, 1]
    with pytest.raises(OptionError, match="output must say which one of"):
        mine.to_shapiq(0)
    with pytest.raises(OptionError, match="output must be one of"):
        mine.to_shapiq(0, output="maybe")
    with pytest.raises(OptionError, match="row must be a position below 4"):
        mine.to_shapiq(4, output=0)


# --- what is known of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", SHARING)
@pytest.mark.parametrize("order", [2, 3, 4])
def test_values_of_a_row_add_up_to_its_prediction(index, order):
    explanation = of_table(random_table(4, 5, 2), outputs=("a", "b"))
    mine = explanation.interactions(index, order)
    np.testing.assert_allclose(sum(mine.values.values()), explanation.predictions, atol=1e-12)
    np.testing.assert_array_equal(mine.values[()], explanation.base_values)


@pytest.mark.parametrize("index", INDICES)
def test_a_product_of_two_players_is_their_interaction_and_nobody_elses(index):
    masks = all_coalitions(5).masks
    v = 1.0 + masks @ [1.0, 2.0, 3.0, 0.0, 0.0] + 7.0 * (masks[:, 1] & masks[:, 3])
    mine = of_table(v[:, None]).interactions(index, 3)
    for members, values in mine.values.items():
        if len(members) > 1:
            assert values[0] == pytest.approx(7.0 if members == (1, 3) else 0.0, abs=1e-12)


@pytest.mark.parametrize("index", SHARING)
def test_all_orders_together_are_the_moebius_coefficients(index):
    masks = all_coalitions(4).masks
    v = random_table(4, 1, seed=5)
    mine = of_table(v).interactions(index, 4)
    for members, value in mine.values.items():
        inside = [i for i, mask in enumerate(masks) if set(np.flatnonzero(mask)) <= set(members)]
        expected = sum((-1) ** (len(members) - masks[i].sum()) * v[i, 0] for i in inside)
        assert value[0] == pytest.approx(expected, abs=1e-12)


def test_single_players_have_their_shapley_values_in_sii():
    X = np.random.default_rng(0).normal(size=(60, 4))
    explanation = cs.explain(lambda x: x[:, 0] * x[:, 1] + x[:, 2], X, X[:5], approach="gaussian")
    mine = explanation.interactions("SII", 2)
    for j in range(4):
        np.testing.assert_allclose(mine.values[j,], explanation.values[:, j], atol=1e-12)
        np.testing.assert_allclose(mine.std_errors[j,], explanation.std_errors[:, j], atol=1e-12)


def test_weights_of_the_shapley_interaction_index_are_grabischs():
    P, s = 6, 2
    weights = derivative_weights("SII", P, s)
    for t in range(P - s + 1):
        assert weights[s + t, s] == pytest.approx(factorial(P - t - s) * factorial(t) / factorial(P - s + 1), rel=1e-14)


def test_the_order_of_coalitions_in_the_table_does_not_matter():
    explanation = of_table(random_table(4, 2))
    table = explanation.value_table
    turned = np.r_[0, np.arange(14, 0, -1), 15]
    shuffled = replace(
        explanation,
        value_table=cs.ValueTable(table.coalitions[turned], table.values[turned], table.std_errors[turned], 0),
    )
    for members, values in explanation.interactions().values.items():
        np.testing.assert_allclose(shuffled.interactions().values[members], values, atol=1e-13)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDICES)
def test_errors_come_by_the_same_linear_map(index):
    rng = np.random.default_rng(1)
    masks, errors = all_coalitions(4).masks, rng.uniform(0.1, 1.0, size=(16, 1))
    mine = of_table(random_table(4, 1), masks, errors).interactions(index, 3)
    units = of_table(np.eye(16)).interactions(index, 3)  # row c: the game that is 1 in coalition c alone
    for members, error in mine.std_errors.items():
        assert error[0] == pytest.approx(np.sqrt((units.values[members] ** 2 * errors[:, 0] ** 2).sum()), rel=1e-12)


def test_unknown_errors_stay_unknown_where_they_count():
    errors = np.full((8, 1), np.nan)
    errors[[0, -1]] = 0.0
    mine = of_table(random_table(3, 1), errors=errors).interactions("STII", 2)
    assert mine.std_errors[()] == 0.0
    assert np.isnan(mine.std_errors[0, 1])


def test_no_row_depends_on_another_one():
    explanation = of_table(random_table(6, 40), errors=0.3)
    for given in (explanation, sampled(explanation, 50)):
        whole, alone = given.interactions("FSII"), given[7].interactions("FSII")
        for members, values in whole.values.items():
            assert values[7] == alone.values[members][0]
            assert whole.std_errors[members][7] == alone.std_errors[members][0]


# --- shape -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_matrices_are_symmetric_with_an_empty_diagonal(outputs):
    mine = of_table(random_table(4, 3, *outputs), outputs=("a", "b")[: len(outputs) + 1]).interactions("SII", 3)
    matrix = mine.matrix()
    assert matrix.shape == (3, 4, 4, *outputs)
    for i, j in combinations(range(4), 2):
        np.testing.assert_array_equal(matrix[:, i, j], mine.values[i, j])
        np.testing.assert_array_equal(matrix[:, j, i], mine.values[i, j])
    assert not matrix[:, range(4), range(4)].any()


def test_a_frame_has_a_line_per_row_output_and_set():
    mine = of_table(random_table(3, 2, 2), errors=0.5, outputs=("no", "yes")).interactions()
    frame = mine.to_frame()
    assert list(frame.columns) == ["row", "output", "players", "order", "value", "std_error"]
    assert len(frame) == 2 * 2 * 7
    line = frame[(frame["row"] == "r1") & (frame["output"] == "yes") & (frame["players"] == "player 0 x player 2")]
    assert line["value"].item() == mine.values[0, 2][1, 1]
    assert line["std_error"].item() == mine.std_errors[0, 2][1, 1]
    assert line["order"].item() == 2
    single = of_table(random_table(3, 2)).interactions().to_frame()
    assert list(single.columns) == ["row", "players", "order", "value", "std_error"]
    assert len(single) == 14


def test_it_says_what_it_is():
    assert repr(of_table(random_table(3, 2)).interactions()) == (
        "Interactions(k-SII of order 2, 2 rows x 3 players, 8 coalitions (all))"
    )
    assert "x 2 outputs" in repr(of_table(random_table(3, 2, 2), outputs=("a", "b")).interactions())


def test_groups_and_several_outputs_have_interactions():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=list("abcd"))
    two = lambda x: np.column_stack([x["a"] * x["d"], x["b"]])  # noqa: E731
    groups = {"first": ["a", "b"], "c": ["c"], "d": ["d"]}
    mine = cs.explain(two, X, X[:6], approach="gaussian", groups=groups).interactions("SII")
    assert mine.player_names == ("first", "c", "d")
    assert mine.values[0, 2].shape == (6, 2)


def test_no_rows_have_no_interactions():
    none = of_table(random_table(3, 2))[:0]
    assert len(none.interactions()) == 0
    assert none.interactions().matrix().shape == (0, 3, 3)
    assert len(none.interactions().to_frame()) == 0
    assert none.owen({"x": [0, 1], "y": [2]}).values.shape == (0, 3)


def test_some_of_the_players_are_refused():
    explanation = of_table(random_table(3, 2))
    some = replace(explanation, player_names=explanation.player_names[:2])
    for ask in (some.interactions, lambda: some.interactions("FSII"), lambda: some.owen({"x": [0], "y": [1]})):
        with pytest.raises(CoalitionError, match="all 3 players whose v\\(S\\) the explanation has, but it shows 2"):
            ask()


# --- sampled tables --------------------------------------------------------------------------------------------------


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
