"""Features, or groups of them, become players."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.coalitions.exact import enumerate_masks
from condshap.coalitions.players import Players
from condshap.exceptions import CoalitionError

FEATURES = ("a", "b", "c", "d")


def test_without_groups_every_feature_is_a_player():
    players = Players.of(FEATURES)
    assert players.names == FEATURES
    assert len(players) == 4
    masks = enumerate_masks(4)
    np.testing.assert_array_equal(players.feature_masks(masks), masks)


def test_coalition_of_groups_knows_the_features_of_its_groups():
    players = Players.of(FEATURES, {"outer": ["d", "a"], "inner": ("b", "c")})
    assert players.names == ("outer", "inner")
    masks = players.feature_masks(enumerate_masks(2))
    np.testing.assert_array_equal(
        masks, [[False] * 4, [True, False, False, True], [False, True, True, False], [True] * 4]
    )
    assert masks.dtype == bool


def test_groups_of_more_than_255_features_do_not_overflow():
    names = [f"f{j}" for j in range(600)]
    players = Players.of(names, {"first": names[:512], "rest": names[512:]})
    assert players.feature_masks(np.array([[True, False]])).sum() == 512
    assert players.feature_masks(np.array([[True, True]])).all()


def test_groups_of_one_feature_each_may_change_the_order():
    players = Players.of(("a", "b"), {"B": ["b"], "A": ["a"]})
    np.testing.assert_array_equal(players.feature_masks(np.array([[True, False]])), [[False, True]])


def test_members_may_be_positions_where_no_feature_has_that_name():
    np.testing.assert_array_equal(
        Players.of(FEATURES, {"p": [0, 2], "q": [np.int64(1), "d"]}).membership[0], [1, 0, 1, 0]
    )
    named = Players.of(("1", "0"), {"p": [1], "q": [0]})  # columns called 1 and 0
    np.testing.assert_array_equal(named.membership, np.eye(2))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"p": ["a", "b"], "q": ["b", "c", "d"]}, r"not overlap, but these features appear more than once: \['b'\]"),
        ({"p": ["a", "a", "b"], "q": ["c", "d"]}, r"not overlap, but these features appear more than once: \['a'\]"),
        ({"p": ["a"], "q": ["d"]}, r"cover every feature, but these are in no group: \['b', 'c'\]"),
        ({"p": ["a", "b", "c", "d"], "q": []}, r"have at least one feature each, but these have none: \['q'\]"),
        (
            {"p": ["a", "b"], "q": ["c", "d", "e"]},
            r"name features among \['a', 'b', 'c', 'd'\], but these are unknown: \['e'\]",
        ),
        ({"p": ["a", "b"], "q": ["c", 9]}, r"but these are unknown: \['9'\]"),
        ({}, r"cover every feature, but these are in no group: \['a', 'b', 'c', 'd'\]"),
        ({"p": "ab", "q": ["c", "d"]}, "map a name to a list of columns, got"),
        ({"p": 3}, "map a name to a list of columns, got"),
        ([["a", "b"], ["c", "d"]], "map a name to a list of columns, got"),
        ({1: ["a", "b"], "1": ["c", "d"]}, "different names"),
    ],
)
def test_groups_that_are_no_partition_are_refused_with_names(groups, message):
    with pytest.raises(CoalitionError, match=f"groups must .*{message}"):
        Players.of(FEATURES, groups)
