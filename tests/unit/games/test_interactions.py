"""Interactions from v(S) of all coalitions: shapiq's numbers, errors, shapes, bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
import shapiq
from shapiq.game_theory import MoebiusConverter

import condshap as cs
from condshap.coalitions import all_coalitions
from condshap.exceptions import CoalitionError, OptionError
from condshap.numerics.interactions import INDICES, derivative_weights, player_sets
from tests.unit.games.tables_of_games import of_table, random_table, sampled

SHARING = ("k-SII", "STII", "FSII")  # their values add up to the prediction


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
        with pytest.raises(CoalitionError, match="need all 3 players, but only 2 of them"):
            ask()
