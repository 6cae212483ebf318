"""Texts of plots: names that fit, numbers with signs, the same decimals, nothing read as mathematics."""

import numpy as np
import pytest

from condshap.plots.style import (
    amounts,
    colours_of,
    shorten,
    value_text,
    with_value,
)
from condshap.plots.swarm import spread, swarm
from condshap.tables.reading import Column
from condshap.views.palette import APPROACHES, CYCLE


def test_names_up_to_40_characters_stay_and_longer_ones_lose_their_middle():
    assert shorten("x" * 40) == "x" * 40
    assert shorten("begin" + "x" * 40 + "end", 13) == "beginx…xxxend"
    for longest in (7, 8, 40):
        assert len(shorten("abcdefgh" * 20, longest)) == longest


def test_names_are_one_line_and_never_mathematics():
    assert shorten("two\nlines") == "two lines"
    assert shorten("$x^2$") == r"\$x^2\$"


def test_amounts_share_decimals_and_have_signs():
    assert amounts(np.array([12.34, -0.5, 0.0])) == ["+12.3", "−0.5", "0.0"]
    assert amounts(np.array([0.0123, -0.00004])) == ["+0.0123", "0.0000"]
    assert amounts(np.array([1.5, 0.2]), signed=False) == ["1.50", "0.20"]
    assert amounts(np.array([2e7, -1e3])) == ["+20,000,000", "−1,000"]
    assert amounts(np.array([2e10, -1e3])) == ["+2.00 × 10¹⁰", "−1.00 × 10³"]
    assert amounts(np.zeros(2)) == ["0", "0"]
    assert amounts(np.array([10.0]), signed=False, like=np.array([0.5])) == ["10.000"]


def test_amounts_stop_at_the_second_digit_of_the_smallest_error():
    assert amounts(np.array([66533.0, -4101.0]), np.array([4100.0, 900.0])) == ["+66,530", "−4,100"]
    assert amounts(np.array([1.234, 0.5]), np.array([0.3, 0.2])) == ["+1.23", "+0.50"]
    end = amounts(np.array([536337.4]), np.array([4100.0]), signed=False, like=np.array([66533.0]))
    assert end == ["536,337"], "what is known exactly keeps its whole part"


def test_values_of_rows_may_be_levels_or_missing():
    numbers = Column("a", np.array([1.5, np.nan]))
    levels = Column("b", None, np.array([1, -1]), ("red", "green"))
    assert [value_text(column, row) for column in (numbers, levels) for row in (0, 1)] == [
        "1.5", "missing", "green", "missing",
    ]  # fmt: skip
    assert with_value("a", numbers, 0) == "a = 1.5"
    assert with_value("a group", None, 0) == "a group"


def test_approaches_keep_their_colours_and_no_two_share_one():
    assert colours_of(["ctree", "vaeac"]) == [APPROACHES["ctree"], APPROACHES["vaeac"]]
    names = ["vaeac", "mine", "yours", "ctree", "theirs"]
    found = colours_of(names)
    assert found[0] == APPROACHES["vaeac"]
    assert len(set(found)) == len(names)
    assert len(colours_of([f"a{i}" for i in range(20)])) == 20
    assert set(CYCLE) >= set(colours_of(["x", "y", "z"]))


def test_points_at_one_place_are_stacked_to_both_sides():
    offsets = swarm(np.array([1.0, 1.0, 1.0, 5.0]), 10.0, half=0.4, step=0.1)
    assert sorted(offsets[:3]) == pytest.approx([-0.1, 0.0, 0.1])
    assert offsets[3] == 0.0
    many = swarm(np.zeros(500), 10.0)
    assert np.abs(many).max() == pytest.approx(0.4)
    assert len(np.unique(many)) == 500
    np.testing.assert_array_equal(swarm(np.zeros(3), 0.0), swarm(np.zeros(3), 1.0))


def test_strips_are_filled_evenly():
    points = np.sort(spread(100))
    assert np.diff(points).max() < 3 * 2 / 100
    assert np.abs(points).max() <= 1
