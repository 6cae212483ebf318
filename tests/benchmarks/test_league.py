"""The league's tables, ratios and resumption; its results are in benchmarks/results."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from benchmarks.league import cells as league_cells
from benchmarks.league import run as league
from benchmarks.league.cells import Cell, all_cells, suits
from benchmarks.league.designs import DESIGNS, solve
from benchmarks.league.report import default_over_best, page, paired_ratio, value_distances
from benchmarks.league.store import LeagueStore, rounded
from benchmarks.league.tables import BY_NAME, ENTRIES, export, load, names_of
from condshap.coalitions import make_plan

OF_PLOTNINE = {"economics", "mpg", "diamonds", "txhousing", "midwest", "midwest_counts"}
OF_STATSMODELS = {"anes96", "anes96_levels", "macrodata", "star98", "grunfeld", "modechoice", "randhie", "fair"}


def need_package(name):
    package = "plotnine" if name in OF_PLOTNINE else "statsmodels" if name in OF_STATSMODELS else "sklego"
    if find_spec(package) is None:
        pytest.skip(f"the table {name} is in {package}, which is not installed (extra 'league')")


def make_line(approach, per_row, table="mpg", seed=0, sanity=None):
    key = {"table": table, "model": "forest", "approach": approach, "seed": seed}
    found = {"msev": float(np.mean(per_row)), "per_row": list(per_row), "model_mark": 1.0, "seconds": {"cpu": 2.0}}
    return key | found | {"sanity": sanity}


@pytest.mark.parametrize("name", names_of("all"))
def test_a_table_has_the_kind_and_the_rows_that_the_league_says(name):
    need_package(name)
    table, entry = load(name), BY_NAME[name]
    is_level = [isinstance(dtype, pd.CategoricalDtype) for dtype in table.X_train.dtypes]
    assert entry.kind == ("categorical" if all(is_level) else "mixed" if any(is_level) else "continuous")
    assert len(table.X_test) == entry.n_test >= 80
    assert 98 <= len(table.X_train) == len(table.y_train) <= 5000
    assert table.X_train.isna().any(axis=None) == (name in league_cells.WITH_GAPS)
    assert np.isfinite(table.y_train).all()
    for column in table.X_test.columns[is_level]:
        assert set(table.X_test[column].dropna()) <= set(table.X_train[column].dropna())


def test_the_halves_have_as_many_tables_of_each_kind():
    kinds = {half: sorted(BY_NAME[n].kind for n in names_of(half) if "gaps" not in n) for half in ("tuning", "unseen")}
    assert kinds["tuning"] == kinds["unseen"]
    assert len(kinds["tuning"]) == 11
    assert {"diamonds", "penguins", "abalone"} <= set(names_of("tuning"))
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("name", ["penguins_gaps", "diabetes", "abalone"])
def test_an_exported_table_is_the_same_when_it_is_read(tmp_path, name):
    need_package(name)
    export([name], tmp_path)
    here, there = load(name), load(name, tmp_path)
    pd.testing.assert_frame_equal(here.X_train, there.X_train)
    pd.testing.assert_frame_equal(here.X_test, there.X_test)
    assert np.array_equal(here.y_train, there.y_train)


def test_approaches_meet_only_tables_whose_kinds_they_support():
    assert suits("gaussian", "wine")
    assert not suits("gaussian", "mpg")
    assert not suits("categorical", "mpg")
    assert suits("categorical", "fair")
    assert not suits("ctree", "penguins_gaps")
    assert {cell.approach for cell in all_cells(["penguins_gaps"], ["forest"])} == {"vaeac", "independence"}


def test_a_ratio_is_paired_over_rows():
    best = np.random.default_rng(0).exponential(size=400)
    exact = paired_ratio(1.1 * best, best)
    assert exact.low == pytest.approx(exact.value) == pytest.approx(1.1)
    noisy = paired_ratio(best + np.random.default_rng(1).normal(scale=0.1, size=400), best)
    assert noisy.low < 1 < noisy.high
    assert noisy.high - noisy.low < 0.05


def test_other_versions_of_the_default_are_no_rivals_of_it():
    found = {
        name: make_line(name, np.array(rows)) for name, rows in {"vaeac": [2.0, 4.0], "vaeac@new": [1.0, 1.0]}.items()
    }
    assert default_over_best(found).value == 1.0
    found["ctree"] = make_line("ctree", [1.0, 2.0])
    assert default_over_best(found).value == 2.0
    assert default_over_best(found, "vaeac@new").value == 1.0
    assert default_over_best({"ctree": found["ctree"]}) is None


def test_a_value_on_the_wrong_side_of_the_base_is_counted_where_rows_are_sure():
    values = [["c", "a", [3.0], [1.0], [0.1]], ["c", "b", [3.0], [4.0], [0.1]], ["c", "d", [1.9], [2.1], [0.1]]]
    distance, in_errors, same_side = value_distances({"values": values, "base": [2.0]}, "c")
    assert distance == pytest.approx((2.0 + 1.0 + 0.2) / 3)
    assert in_errors == pytest.approx((20.0 + 10.0 + 2.0) / 3)
    assert same_side == 0.5


def test_the_page_has_every_half_and_says_what_the_default_loses():
    sanity = {"means": [["c", "a", "x", 1.0], ["c", "a", "y", 3.0]], "values": [["c", "a", [3.0], [1.0], [0.1]]]}
    sanity |= {"base": [2.0], "pairs": [["x", "y", "nothing", 0.99, 0.01]]}
    lines = [make_line("vaeac", [1.2, 1.2], sanity=sanity), make_line("ctree", [1.0, 1.0])]
    text = page(lines, "tuning")
    assert "| mpg | mixed | forest | 0 | 1.200 | 1.000 | ctree | 1.200 (1.200 to 1.200) |" in text
    assert "0% of 1 contests at most 1.05" in text
    assert "| mpg | c | vaeac | 1 of 2 | 2 | 20.00 | nan | 0.00 |" in text
    assert page(lines, "unseen").endswith("No results.\n")


def test_a_store_skips_what_was_never_finished_and_keeps_the_last(tmp_path):
    store = LeagueStore(tmp_path)
    for value in (1.0, 3.0):
        store.append(make_line("ctree", [value]))
    store.append(make_line("vaeac", [2.0]))
    with store.path_of("mpg").open("a") as file:
        file.write('{"table": "mpg", "mod')
    found = store.read(["mpg", "wine"])
    assert {key[2]: line["msev"] for key, line in found.items()} == {"ctree": 3.0, "vaeac": 2.0}


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch, capsys):
    ran = []

    def run_cell(cell, folder, device):
        ran.append(cell.label)
        if ran == ["ctree", "independence"]:
            raise RuntimeError("stopped")
        return make_line(cell.label, [1.0, 2.0])

    monkeypatch.setattr(league, "run_cell", run_cell)
    command = ["--only", "mpg", "--models", "forest", "--store", str(tmp_path), "--approaches", "ctree", "independence"]
    assert league.main([*command, "gaussian"]) == 1  # which does not suit the table
    assert "stopped" in capsys.readouterr().out
    assert league.main([*command, "vaeac"]) == 0
    assert league.main([*command, "--tag", "new"]) == 0
    assert ran == ["ctree", "independence", "vaeac", "independence", "ctree@new", "independence@new"]
    assert "ctree@new" in (tmp_path / "league.md").read_text()


def test_a_cell_is_run_on_a_table_of_scikit_learn(monkeypatch):
    monkeypatch.setattr(league_cells, "N_TREES", 5)
    line = league_cells.run_cell(Cell("wine", "forest", "gaussian"))
    assert len(line["per_row"]) == 80
    assert line["msev"] == pytest.approx(np.mean(line["per_row"]), rel=1e-4)
    assert line["coalitions"] == 1000
    given, rows, draws = line["sanity"]["pairs"][0][2:]
    assert given == "nothing"
    assert draws == pytest.approx(rows, abs=0.02)


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_has_a_proper_correlation_matrix(name):
    assert np.linalg.eigvalsh(DESIGNS[name].correlations())[0] > 1e-4


def test_the_truth_of_an_additive_game_is_its_terms():
    plan, terms = make_plan(3, None, seed=0), np.array([1.0, 2.0, -3.0])
    means = np.repeat((plan.masks @ terms)[None, :, None], 2, axis=0)
    phi, error = solve(means, np.array([terms.sum()]), plan, 0.0)
    assert phi == pytest.approx(terms[None])
    assert error == pytest.approx(0.0)


def test_numbers_are_stored_with_few_digits():
    assert rounded({"a": [1.23456789, float("nan")], "b": "text"}, 3) == {"a": [1.23, None], "b": "text"}
