"""The catalogue holds the paper's studies: every figure that it prints has its cell and method, and nothing unfit runs."""

import pytest

from condshap.exceptions import OptionError, SchemaError
from condshap.studies.pages.published import published_for, published_minutes, published_table
from condshap.studies.running.catalogue import RHOS, STUDIES, Choice, choose, find_study
from condshap.studies.running.runner import TRUTH

TABLES = {
    "continuous-low": "continuous_low",
    "continuous-high": "continuous_high",
    "mixed-low": "mixed_low",
    "mixed-high": "mixed_high",
    "categorical": "categorical",
    "abalone": "abalone_ec3",
}

SHARED = ("vaeac-paper", "independence:n_samples=1000")
"""Methods that share the paper's figures with another one."""


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_every_figure_of_the_paper_has_a_cell_and_a_method(name, table):
    study = STUDIES[name].study
    printed = published_table(table)
    column = "value" if "value" in printed else "EC1" if "EC1" in printed else "EC3"
    criteria = ("EC1", "EC2", "EC3") if column == "value" else (column,)
    found = []
    for cell in study.cells:
        methods = [name for name in (TRUTH, *study.methods) if name not in SHARED]
        found += [published_for(cell, method, criterion) for method in methods for criterion in criteria]
    assert sorted(figure for figure in found if figure is not None) == sorted(printed[column])


@pytest.mark.parametrize("table", ["cpu_minutes_continuous", "cpu_minutes_mixed"])
def test_every_computation_time_of_the_paper_has_a_cell_and_a_method(table):
    names = ("continuous-low", "continuous-high") if "continuous" in table else ("mixed-low", "mixed-high")
    found = {}
    for study in (STUDIES[name].study for name in names):
        for cell in study.cells:
            for method in study.methods:
                minutes = published_minutes(cell, method)
                if minutes is not None and method not in SHARED:
                    found[tuple((k, v) for k, v in cell.setting.items() if k != "rho"), method] = minutes
    assert sorted(found.values()) == sorted(published_table(table)["total_min"])


def test_names_of_the_issue_are_there_and_keys_are_unique():
    by_formula = {"continuous-high-formula", "mixed-high-formula"}
    assert {*TABLES, *by_formula, "monte-carlo-samples", "computation-times", "mixture"} == set(STUDIES)
    for entry in STUDIES.values():
        keys = [cell.key for cell in entry.study.cells]
        assert len(keys) == len(set(keys))
        assert set(entry.quick_cells or ()) <= set(entry.study.cells)


@pytest.mark.parametrize("name", [name for name, entry in STUDIES.items() if entry.study.cells])
def test_every_study_fits_its_methods_and_has_a_quick_version_of_other_cells(name):
    entry = STUDIES[name]
    assert choose(entry, Choice()) == entry.study
    quick = choose(entry, Choice(quick=True))
    assert quick.name == f"{name}-quick"
    assert len(quick.repetitions) == 2
    assert 1 <= len(quick.cells) <= 2
    assert not {cell.key for cell in quick.cells} & {cell.key for cell in entry.study.cells}


def test_filters_take_cells_of_all_settings_together():
    chosen = choose(find_study("mixed-low"), Choice(M=(4,), n_train=(100, 5000), rho=(0.5,)))
    assert [cell.key for cell in chosen.cells] == [f"mixed M4 rho=0.5 N={N} rows=500" for N in (100, 5000)]
    assert [cell.rho for cell in choose(find_study("categorical"), Choice(M=(3,), levels=(4,))).cells] == list(RHOS)


def test_repetitions_start_at_the_studys_own_first_one():
    entry = find_study("continuous-high")
    assert choose(entry, Choice(repetitions=2)).repetitions == (100, 101)
    assert choose(entry, Choice(repetitions=2, first=7)).repetitions == (7, 8)


@pytest.mark.parametrize("choice", [Choice(repetitions=0), Choice(first=-1)])
def test_repetitions_that_cannot_be_are_refused(choice):
    with pytest.raises(OptionError, match="repetitions must be at least 1"):
        choose(find_study("abalone"), choice)


@pytest.mark.parametrize("choice", [Choice(M=(9,)), Choice(M=(4,), levels=(3,)), Choice(rho=(0.2,)), Choice(M=())])
def test_a_filter_that_leaves_nothing_is_refused_with_what_there_is(choice):
    with pytest.raises(OptionError, match=r"cells of study 'mixed-low' must have M in \[4, 6\]"):
        choose(find_study("mixed-low"), choice)


@pytest.mark.parametrize(
    ("name", "method"), [("mixed-low", "gaussian"), ("categorical", "copula"), ("continuous-low", "categorical")]
)
def test_a_method_that_does_not_support_the_features_is_refused(name, method):
    with pytest.raises(SchemaError, match=f"'{method}' does not support"):
        choose(find_study(name), Choice(methods=("independence", method)))


def test_an_unknown_study_is_refused_with_the_names():
    with pytest.raises(OptionError, match=r"must be one of .*'mixed-low'"):
        find_study("mixed")
