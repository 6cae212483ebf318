"""Plots of interactions and unions: cells, bars, lines and steps are those of the numbers, and nothing overlaps."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from condshap import Explanation, ValueTable, plots
from condshap.coalitions import all_coalitions
from condshap.exceptions import OptionError
from condshap.explanation import Provenance
from condshap.games.interactions import Interactions
from condshap.views.palette import LOWERS, NEUTRAL, RAISES
from tests.unit.plots.test_layout import check_layout

NAMES4 = ("a", "b", "c", "d")


def made(values, errors=0.0, single=None, names=NAMES4, outputs=("prediction",)) -> Interactions:
    """Interactions with these values of pairs, a mapping from two positions to (R,) or (R, O)."""
    P = len(names)
    values = {members: np.asarray(one, dtype=float) for members, one in values.items()}
    first = next(iter(values.values()))
    zero = np.zeros_like(first)
    single = {(j,): zero + (0.0 if single is None else single[j]) for j in range(P)}
    pairs = {(i, j): values.get((i, j), zero) for i in range(P) for j in range(i + 1, P)}
    every = {(): zero, **single, **pairs}
    wrong = {members: np.full_like(one, errors) for members, one in every.items()}
    return Interactions(
        every, wrong, "k-SII", 2, True, 2**P, zero, sum(every.values()), names, outputs, pd.RangeIndex(len(first))
    )


def random_pairs(n_players, long_names=False, outputs=(), seed=0) -> Interactions:
    rng = np.random.default_rng(seed)
    names = tuple(f"{'A rather long name of a feature' if long_names else 'f'}{j:_>8}" for j in range(n_players))
    pairs = {(i, j): rng.normal(size=(5, *outputs)) for i in range(n_players) for j in range(i + 1, n_players)}
    labels = tuple(f"output {i}" for i in range(*outputs)) if outputs else ("prediction",)
    return made(pairs, 0.3, rng.normal(size=n_players), names, labels)


def of_game(names, seed=0, outputs=1) -> Explanation:
    rng, P = np.random.default_rng(seed), len(names)
    masks = all_coalitions(P).masks
    v = rng.normal(size=(2**P, 3)) if outputs == 1 else rng.normal(size=(2**P, 3, outputs))
    phi = np.repeat((v[-1] - v[0])[:, None] / P, P, axis=1)
    data = pd.DataFrame(rng.normal(size=(3, P)), columns=list(names))
    about = Provenance("gaussian", {}, 0, (), 2**P, True, 0, "mean", {}, {})
    members, labels = tuple((j,) for j in range(P)), tuple(f"output {i}" for i in range(outputs))
    table = ValueTable(masks, v, np.full_like(v, 0.2), 0)
    return Explanation(phi, v[0], v[-1], 0 * phi, table, data, tuple(names), tuple(names), labels, members, about)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def ticks(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


# --- heat map --------------------------------------------------------------------------------------------------------


def test_cells_are_the_pairs_of_a_row():
    ax = plots.interactions(made({(0, 1): [1.0, 2.0], (1, 3): [-0.5, 3.0]}), row=0)
    shown = ax.images[0].get_array()
    assert shown[0, 1] == shown[1, 0] == 1.0
    assert shown[1, 3] == shown[3, 1] == -0.5
    assert np.ma.getmaskarray(np.ma.masked_invalid(shown)).diagonal().all()
    assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert texts(ax)[:3] == ["+1.00", "0.00", "0.00"]
    assert ticks(ax) == list(NAMES4)


def test_without_a_row_cells_are_mean_sizes():
    ax = plots.interactions(made({(0, 1): [1.0, -2.0]}), None)
    assert ax.images[0].get_array()[0, 1] == 1.5
    assert ax.images[0].get_clim() == (0.0, 1.5)
    assert texts(ax)[0] == "1.50"


def test_players_beyond_the_most_are_left_out_and_counted():
    ax = plots.interactions(made({(0, 3): [2.0], (1, 3): [1.0], (0, 2): [0.1]}), max_features=3)
    assert ticks(ax) == ["a", "b", "d"]
    assert ax.get_xlabel() == "1 player with smaller interactions left out"


# --- bars ------------------------------------------------------------------------------------------------------------


def test_bars_of_a_row_have_signs_and_errors():
    ax = plots.interaction_bar(made({(0, 1): [1.0, 2.0], (1, 3): [-3.0, 3.0]}, errors=0.25), 0, max_features=2)
    assert ticks(ax) == ["b × d", "a × b"]
    assert [patch.get_width() for patch in ax.patches] == [-3.0, 1.0]
    assert [to_hex(patch.get_facecolor()).upper() for patch in ax.patches] == [LOWERS, RAISES]
    assert texts(ax) == ["−3.00", "+1.00"]
    segments = ax.containers[-1].lines[2][0].get_segments()
    np.testing.assert_allclose([segment[:, 0] for segment in segments], [[-3.25, -2.75], [0.75, 1.25]])
    assert ax.get_xlabel() == "k-SII, the largest 2 of 6"


def test_bars_of_several_rows_are_mean_sizes():
    ax = plots.interaction_bar(made({(0, 1): [1.0, -2.0], (1, 3): [-3.0, 3.0]}))
    assert ticks(ax)[:2] == ["b × d", "a × b"]
    assert [patch.get_width() for patch in ax.patches][:2] == [3.0, 1.5]
    assert to_hex(ax.patches[0].get_facecolor()).upper() == NEUTRAL
    assert ax.get_xlabel() == "mean |k-SII| of 2 rows"


def test_higher_orders_are_bars_too():
    ax = plots.interaction_bar(of_game("abcd").interactions("STII", 3), 1, max_features=20)
    assert any(name.count("×") == 2 for name in ticks(ax))
    assert len(ax.patches) == 6 + 4


# --- network ---------------------------------------------------------------------------------------------------------


def lines_of(ax):
    return [line for line in ax.lines if len(line.get_xdata()) == 2]


def test_lines_are_as_thick_as_interactions_and_dashed_where_they_lower():
    ax = plots.interaction_network(made({(0, 1): [2.0], (1, 3): [-1.0], (0, 2): [0.001]}, single=[1, -1, 0, 0]), 0)
    first, second = lines_of(ax)  # the third would not be seen
    assert first.get_linewidth() == 2 * second.get_linewidth()
    assert (first.get_linestyle(), second.get_linestyle()) == ("-", "--")
    assert (first.get_color(), second.get_color()) == (RAISES, LOWERS)
    assert texts(ax) == list(NAMES4)
    dots = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert [dot.get_marker() for dot in dots] == ["o", "s", "o", "o"]
    assert dots[0].get_markersize() > dots[2].get_markersize()


def test_lines_that_may_be_noise_are_faint():
    sure, unsure = lines_of(plots.interaction_network(made({(0, 1): [2.0], (1, 3): [0.5]}, errors=0.5), 0))
    assert unsure.get_alpha() < sure.get_alpha()


# --- all of them -----------------------------------------------------------------------------------------------------

DRAW = {
    "interactions": plots.interactions,
    "mean": lambda pairs, **options: plots.interactions(pairs, None, **options),
    "interaction_bar": plots.interaction_bar,
    "bar of a row": lambda pairs, **options: plots.interaction_bar(pairs, 1, **options),
    "interaction_network": plots.interaction_network,
}


@pytest.mark.parametrize("long_names", [False, True])
@pytest.mark.parametrize("n_players", [2, 3, 10, 12, 30])
@pytest.mark.parametrize("name", DRAW)
def test_nothing_overlaps(name, n_players, long_names):
    ax = DRAW[name](random_pairs(n_players, long_names))
    if n_players > (3 if "network" in name else 2):  # the check expects more than three texts
        check_layout(ax.figure)


@pytest.mark.parametrize("name", DRAW)
def test_outputs_are_chosen_and_facets_draw_all(name):
    pairs = random_pairs(4, outputs=(2,))
    with pytest.raises(OptionError, match="output must say which one of"):
        DRAW[name](pairs)
    assert DRAW[name](pairs, output="output 1").get_title() == "output 1"
    assert len(plots.facet(plots.interactions, pairs, outputs=["output 0", 1])) == 2
    assert len(plots.facet(plots.interaction_bar, pairs)) == 2


@pytest.mark.parametrize("name", DRAW)
def test_axes_are_taken_and_zeros_are_drawn(name):
    _, ax = plt.subplots()
    assert DRAW[name](made({(0, 1): [0.0, 0.0]}), ax=ax) is ax


@pytest.mark.parametrize("name", DRAW)
def test_other_things_are_refused(name):
    with pytest.raises(OptionError, match="must get Interactions, got Explanation"):
        DRAW[name](of_game("abc"))
    with pytest.raises(OptionError, match="max_features"):
        DRAW[name](random_pairs(3), max_features=1)
    with pytest.raises(OptionError, match="NaN or infinite"):
        DRAW[name](made({(0, 1): [np.nan, 1.0]}))


def test_a_row_that_is_not_there_is_refused():
    for draw in (plots.interactions, plots.interaction_network, plots.interaction_bar):
        with pytest.raises(OptionError, match="below 5"):
            draw(random_pairs(3), 5)


# --- unions ----------------------------------------------------------------------------------------------------------

UNIONS = {"x": {"p": ["a", "b"], "q": ["c"]}, "y": ["d", "e"]}


def bars(ax, height=0.7):
    """Start and width of the bars of this height, by line."""
    return {
        round(patch.get_y() + height / 2): (patch.get_x(), patch.get_width())
        for patch in ax.patches
        if patch.get_height() == pytest.approx(height)
    }


def test_a_waterfall_of_unions_has_a_step_per_union():
    owen = of_game("abcde").owen(UNIONS)
    ax = plots.waterfall(owen, 1)
    totals = {name: owen.union_values[name][1] for name in ("x", "y")}
    expected = sorted(totals, key=lambda name: -abs(totals[name]))
    assert ticks(ax)[1:-1] == expected
    np.testing.assert_allclose([bars(ax)[line + 1][1] for line in range(2)], [totals[name] for name in expected])


def test_an_unfolded_union_shows_its_parts_below_its_total():
    owen = of_game("abcde").owen(UNIONS)
    ax = plots.waterfall(owen, 0, unfold="y")
    names = ticks(ax)
    head = names.index("y:")
    assert {name.split(" = ")[0] for name in names[head + 1 : head + 3]} == {"d", "e"}
    start, width = bars(ax, 0.12)[head]
    assert width == pytest.approx(owen.union_values["y"][0])
    parts = [bars(ax)[line] for line in (head + 1, head + 2)]
    assert sum(part[1] for part in parts) == pytest.approx(width)
    assert min(start, start + width) >= min(min(part[0], part[0] + part[1]) for part in parts) - 1e-12


@pytest.mark.parametrize(
    ("unfold", "heads", "n_lines"),
    [
        (True, {"x:", "y:", "p:", "q:"}, 9),
        ("x", {"x:"}, 4),
        ("p", {"x:", "p:"}, 6),
        (["p", "y"], {"x:", "p:", "y:"}, 8),
        (False, set(), 2),
    ],
)
def test_unions_unfold_by_name_and_open_those_around_them(unfold, heads, n_lines):
    ax = plots.waterfall(of_game("abcde").owen(UNIONS), 0, unfold=unfold)
    names = ticks(ax)[1:-1]
    assert {name for name in names if name.endswith(":")} == heads
    assert len(names) == n_lines
    check_layout(ax.figure)


def test_steps_of_unfolded_unions_lead_from_the_base_value_to_the_prediction():
    owen = of_game("abcde").owen(UNIONS)
    found = bars(plots.waterfall(owen, 2, unfold=True))
    total = sum(width for _, width in found.values())
    assert total == pytest.approx(owen.predictions[2] - owen.base_values[2])


def test_many_unions_and_parts_are_added_up():
    names = [f"feature {j}" for j in range(8)]
    owen = of_game(names).owen({"many": names[:6], "x": [names[6]], "y": [names[7]]})
    ax = plots.waterfall(owen, 0, unfold="many", max_features=3)
    assert sum("others" in name for name in ticks(ax)) == 1
    check_layout(ax.figure)


def test_unions_of_several_outputs_are_drawn_output_by_output():
    owen = of_game("abcde", outputs=2).owen(UNIONS)
    ax = plots.waterfall(owen, 0, output="output 1")
    totals = sorted(np.abs([owen.union_values[name][0, 1] for name in ("x", "y")]))
    np.testing.assert_allclose(sorted(abs(width) for _, width in bars(ax).values()), totals)
    assert len(plots.facet(plots.waterfall, owen, row=0)) == 2


@pytest.mark.parametrize("unfold", ["z", ["x", "z"], 3])
def test_unions_that_are_not_there_cannot_unfold(unfold):
    with pytest.raises(OptionError, match="unfold must be True or names of unions among"):
        plots.waterfall(of_game("abcde").owen(UNIONS), unfold=unfold)


def test_shapley_values_have_nothing_to_unfold():
    with pytest.raises(OptionError, match="unfold works only with Owen values"):
        plots.waterfall(of_game("abc"), unfold=True)
