"""Owen values: worked numbers, averages over the orders that they stand for, and unions that are refused."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.coalitions import all_coalitions
from condshap.exceptions import CoalitionError
from condshap.explanation import Explanation, Provenance


def of_game(v, names, errors=0.0, *, is_exact=True) -> Explanation:
    """Explanation of one row of a game, a function of the set of names; its Shapley values do not matter here."""
    masks = all_coalitions(len(names)).masks
    values = np.array([np.atleast_1d(v(frozenset(np.array(list(names))[mask]))) for mask in masks], dtype=float)[
        :, None, :
    ]
    values = values[:, :, 0] if values.shape[2] == 1 else values
    base, predictions = values[0], values[-1]
    phi = np.repeat((predictions - base)[:, None] / len(names), len(names), axis=1)
    table = cs.ValueTable(masks, values, np.broadcast_to(np.asarray(errors, float), values.shape).copy(), 0)
    about = Provenance("gaussian", {}, 0, (), len(masks), is_exact, 0, "mean", {}, {})
    outputs = tuple(f"output {i}" for i in range(values.shape[2])) if values.ndim == 3 else ("prediction",)
    data = pd.DataFrame(np.zeros((1, len(names))), columns=list(names))
    members = tuple((j,) for j in range(len(names)))
    return Explanation(
        phi, base, predictions, np.zeros_like(phi), table, data, tuple(names), tuple(names), outputs, members, about
    )


def random_game(names, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    known: dict[frozenset, np.ndarray] = {}
    return lambda inside: known.setdefault(inside, rng.normal(size=outputs))


def orders(unions):
    """All orders of players in which the players of every union, at any level, come one after the other."""
    if not isinstance(unions, list):
        return [[unions]]
    found = []
    for turn in permutations(unions):
        tails = [[]]
        for part in turn:
            tails = [[*head, *tail] for head in tails for tail in orders(part)]
        found += tails
    return found


def by_orders(v, names, unions):
    """Mean of what every player adds, over these orders."""
    total = dict.fromkeys(names, 0.0)
    every = orders(unions)
    for one in every:
        for position, name in enumerate(one):
            total[name] += v(frozenset(one[: position + 1])) - v(frozenset(one[:position]))
    return np.array([total[name] / len(every) for name in names])[..., 0]


def test_the_worked_example():
    game = lambda inside: 6.0 if {"B", "C", "D"} <= inside else 0.0  # noqa: E731
    owen = of_game(game, "ABCD").owen({"first": ["A", "B", "C"], "last": ["D"]})
    assert owen.values[0].tolist() == [0.0, 1.5, 1.5, 3.0]
    assert {name: values[0] for name, values in owen.union_values.items()} == {"first": 3.0, "last": 3.0}


@pytest.mark.parametrize(
    ("unions", "plain"),
    [
        ({"x": ["a", "b"], "y": ["c", "d", "e"]}, [["a", "b"], ["c", "d", "e"]]),
        ({"x": ["e", "a"], "y": ["c"], "z": ["d", "b"]}, [["e", "a"], ["c"], ["d", "b"]]),
        ({"x": {"p": ["a", "b"], "q": ["c"]}, "y": ["d", "e"]}, [[["a", "b"], ["c"]], ["d", "e"]]),
        ({"x": {"p": ["a", "d"], "q": ["b", "c"]}, "y": {"r": ["e"]}}, [[["a", "d"], ["b", "c"]], [["e"]]]),
    ],
)
def test_values_are_means_over_the_orders_in_which_unions_stay_together(unions, plain):
    game = random_game("abcde")
    owen = of_game(game, "abcde").owen(unions)
    np.testing.assert_allclose(owen.values[0], by_orders(game, "abcde", plain), atol=1e-12)
    np.testing.assert_allclose(owen.base_values + owen.values.sum(axis=1), owen.predictions, atol=1e-12)


def test_totals_of_unions_are_the_sums_of_their_players_and_the_shapley_values_of_the_game_of_unions():
    game = random_game("abcde", outputs=2)
    owen = of_game(game, "abcde").owen({"x": {"p": ["a", "b"], "q": ["c"]}, "y": ["d"], "z": ["e"]})
    assert owen.values.shape == (1, 5, 2)
    assert list(owen.union_values) == ["x", "p", "q", "y", "z"]
    for name, members in (("x", [0, 1, 2]), ("p", [0, 1]), ("q", [2]), ("y", [3]), ("z", [4])):
        np.testing.assert_allclose(owen.union_values[name], owen.values[:, members].sum(axis=1), atol=1e-12)
    quotient = lambda inside: game(frozenset("".join(inside)))  # noqa: E731
    shapley = by_orders(lambda inside: quotient(inside)[:1], ["abc", "d", "e"], ["abc", "d", "e"])
    totals = [owen.union_values[name][0, 0] for name in ("x", "y", "z")]
    np.testing.assert_allclose(totals, shapley, atol=1e-12)


@pytest.mark.parametrize("unions", [{name: [name] for name in "abcd"}, {"all": list("abcd")}])
def test_single_players_and_one_union_of_all_give_shapley_values_and_their_errors(unions):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    explanation = cs.explain(lambda x: (x["a"] * x["b"] + x["c"]).to_numpy(), X, X[:5], approach="gaussian")
    owen = explanation.owen(unions)
    np.testing.assert_allclose(owen.values, explanation.values, atol=1e-12)
    np.testing.assert_allclose(owen.std_errors, explanation.std_errors, atol=1e-12)


def test_errors_come_by_the_same_linear_map():
    names, unions = "abcd", {"x": ["a", "b", "c"], "y": ["d"]}
    errors = np.random.default_rng(3).uniform(0.1, 1.0, size=(16, 1))
    owen = of_game(random_game(names), names, errors).owen(unions)
    masks = all_coalitions(4).masks
    sets = [frozenset(np.array(list(names))[mask]) for mask in masks]
    units = [of_game(lambda inside, one=one: float(inside == one), names).owen(unions) for one in sets]
    for j in range(4):
        weights = np.array([unit.values[0, j] for unit in units])
        assert owen.std_errors[0, j] == pytest.approx(np.sqrt((weights**2 * errors[:, 0] ** 2).sum()))
    weights = np.array([unit.union_values["x"][0] for unit in units])
    assert owen.union_std_errors["x"][0] == pytest.approx(np.sqrt((weights**2 * errors[:, 0] ** 2).sum()))
    assert owen.union_std_errors["x"][0] < owen.std_errors[0, :3].sum()


def test_players_may_be_given_by_position_and_groups_are_players():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    groups = {"first": ["a", "b"], "second": ["c"], "third": ["d"]}
    explanation = cs.explain(lambda x: x.sum(axis=1).to_numpy(), X, X[:3], approach="gaussian", groups=groups)
    by_name, by_position = (
        explanation.owen({"u": ["first", "third"], "v": ["second"]}),
        explanation.owen({"u": [0, 2], "v": [1]}),
    )
    np.testing.assert_array_equal(by_name.values, by_position.values)


def test_owen_values_go_where_explanations_go(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"), index=range(100, 160))
    owen = cs.explain(lambda x: (x["a"] * x["b"]).to_numpy(), X, X[:3], approach="gaussian").owen(
        {"x": ["a", "b"], "y": ["c"]}
    )
    assert repr(owen) == "OwenValues(3 rows x 3 players in 2 unions ['x', 'y'])"
    frame = owen.to_frame(errors=True)
    assert list(frame.index) == [100, 101, 102]
    np.testing.assert_array_equal(frame[["a", "b", "c"]], owen.values)
    given = owen.to_explanation()
    np.testing.assert_array_equal(given.values, owen.values)
    assert "These are Owen values with the unions ['x', 'y']" in given.provenance.warnings[-1]
    given.save(tmp_path / "owen.parquet")
    np.testing.assert_array_equal(cs.load_explanation(tmp_path / "owen.parquet").values, owen.values)


@pytest.mark.parametrize(
    ("unions", "message"),
    [
        ({"x": ["a", "b"]}, r"cover every player, missing are \['c', 'd'\]"),
        ({"x": ["a", "b"], "y": ["b", "c", "d"]}, r"not overlap, named more than once are \['b'\]"),
        ({"x": ["a", "a", "b"], "y": ["c", "d"]}, r"not overlap, named more than once are \['a'\]"),
        ({"x": ["a", "b"], "y": ["c", "d", "z"]}, r"players among \['a', 'b', 'c', 'd'\], got \['z'\] in 'y'"),
        ({"x": ["a", "b"], "y": ["c", 7]}, r"players among \['a', 'b', 'c', 'd'\], got \[7\] in 'y'"),
        ({"x": ["a", "b", "c", "d"], "y": []}, "at least one player each, but 'y' is empty"),
        ({"x": {"y": ["a", "b"]}, "y": ["c", "d"]}, r"different names, used more than once are \['y'\]"),
        ({"x": {"y": {"z": ["a", "b", "c", "d"]}}}, "at most two levels"),
        ({"x": {}, "y": ["a", "b", "c", "d"]}, "must map names to lists of players, got {}"),
        ({"x": "abcd"}, r"union 'x' must be a list of players, got 'abcd'"),
        ({"x": 3}, "union 'x' must be a list of players, got 3"),
        ({}, "must map names to lists"),
        (["a", "b"], "must map names to lists"),
        (None, "must map names to lists"),
    ],
)
def test_unions_that_are_no_partition_are_refused(unions, message):
    with pytest.raises(CoalitionError, match=message):
        of_game(random_game("abcd"), "abcd").owen(unions)


def test_sampled_tables_and_gaps_are_refused():
    X = np.random.default_rng(0).normal(size=(80, 7))
    some = cs.explain(lambda x: x.sum(axis=1), X, X[:2], approach="gaussian", n_coalitions=40)
    with pytest.raises(
        CoalitionError, match=r"Owen values must come from v\(S\) of all coalitions.*40 of the 2\^7 = 128"
    ):
        some.owen({"x": list(range(6)), "y": [6]})
    explanation = of_game(random_game("abc"), "abc")
    explanation.value_table.values[3] = np.nan
    with pytest.raises(CoalitionError, match="NaN in 1 of 1 rows"):
        explanation.owen({"x": ["a"], "y": ["b", "c"]})
