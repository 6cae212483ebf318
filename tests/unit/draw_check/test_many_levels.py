"""The draw check sees columns of many levels through the numbers that they go with, and is quiet where draws are right."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import condshap as cs
from condshap.approaches.base import Donors
from condshap.draw_check.checking import _Compared
from condshap.draw_check.result import DrawCheck
from condshap.numerics.score_columns import score_rows
from tests.unit.draw_check.regions import Law, Regions
from tests.unit.draw_check.test_checking import Margins, checked, constant, fitted

STRONG, WEAK, NONE = 0.8, 0.2, 0.0


def of_effects(check):
    """Large differences of levels as numbers."""
    return [one for one in check.large if any("(by " in what for what in one.what)]


# --- where it must be quiet -------------------------------------------------------------------------------------------


def quiet_fits():
    """Regions and their law: 81 fits."""
    for n_regions in (20, 48, 120):
        for n in (400, 1000, 3000):
            for strength in (STRONG, WEAK, NONE):
                for seed in range(3):
                    design = Regions(n_regions, strength, seed, skew=0.6 * seed)
                    yield design.draw(n, seed), Law(design), seed


def test_draws_that_are_right_raise_no_alarm_in_81_fits():
    # 2 % false alarms would give none in 19 % of such runs; there was none in 720 more fits of such designs
    assert sum(checked(*one).score >= 1 for one in quiet_fits()) == 0


@pytest.mark.parametrize(("n_regions", "n"), [(20, 1000), (48, 1000), (120, 3000)])
def test_donors_raise_no_alarm_whether_effects_are_strong_or_noise(n_regions, n):
    for strength in (STRONG, NONE):
        assert checked(Regions(n_regions, strength, 0).draw(n, 0), "ctree").looks_right


def test_noise_that_independence_repeats_with_its_donors_is_no_dependence():
    # were effects kept that carry nothing, 2 of 20 such fits would raise an alarm
    for seed in range(4):
        for n_regions, n in ((20, 400), (48, 600), (120, 1500), (120, 3000)):
            assert checked(Regions(n_regions, NONE, seed, rho=0).draw(n, seed), "independence", seed).looks_right


def test_numbers_from_other_rows_of_the_region_are_right():
    for seed in range(3):
        design = Regions(120, 0.05, seed, rho=0)
        assert checked(design.draw(1500, seed), OwnRegion(design), seed).looks_right


class OwnRegion(Law):
    """The law, but a known region lends the numbers of its training rows: means of few rows, the row's own among them."""

    name = "own region"

    def _fill(self, drawn, X, mask, rng):
        super()._fill(drawn, X, mask, rng)
        for i, region in enumerate(X[:, 0] if mask[0] else ()):
            rows = self.rows_[self.rows_[:, 0] == region]
            for j in np.flatnonzero(~mask):
                drawn[i, :, j] = rng.choice(rows[:, j], size=drawn.shape[1])


# --- what it must see -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_regions", "n"), [(20, 400), (48, 768), (48, 3000), (120, 1000), (120, 3000)])
def test_numbers_drawn_without_their_region_are_flagged(n_regions, n):
    for seed in range(3):
        design = Regions(n_regions, STRONG, seed)
        check = checked(design.draw(n, seed), Law(design, strangers=1.0), seed)
        assert check.score > 2
        assert "region" in check.columns
        assert of_effects(check)


def test_dependence_on_the_region_that_is_halved_is_flagged():
    for seed in range(3):
        for n_regions in (20, 48):
            design = Regions(n_regions, STRONG, seed)
            assert of_effects(checked(design.draw(1000, seed), Law(design, strangers=0.5), seed))


def test_a_panel_whose_numbers_hardly_move_within_a_region_is_flagged_if_draws_follow_a_fifth_of_it():
    # 48 regions x 16 years: networks drew such numbers with a slope of .2 of the region's means
    design = Regions(48, 0.98, 0)
    table = design.draw(768, 0)
    assert checked(table, Law(design)).looks_right
    assert checked(table, Law(design, strangers=0.8)).score > 2


def test_a_region_drawn_without_the_known_numbers_is_flagged():
    for seed in range(3):
        design = Regions(48, STRONG, seed)
        found = of_effects(checked(design.draw(1000, seed), Law(design, stray=1.0), seed))
        assert any("region" not in one.known and one.known for one in found)


@pytest.mark.filterwarnings("always")
def test_the_warning_names_both_columns():
    design = Regions(48, STRONG, 0)
    with pytest.warns(
        cs.CondShapWarning, match=r"'region \(by (income|age|rooms)\)' given .* in draws, 0\.\d\d in rows"
    ):
        check = fitted(design.draw(1000, 0), Law(design, strangers=1.0)).draw_check_
    assert set(check.columns) == {"region", "income", "age", "rooms"}
    assert "region (by " in check.to_frame()["columns"].iloc[0]


# --- gaps, half of the rows, storage ----------------------------------------------------------------------------------


def with_gaps(table):
    return table.mask(np.random.default_rng(1).random(table.shape) < 0.2)


def test_gaps_in_levels_and_in_numbers_are_no_difference_and_hide_none():
    strong, none = (with_gaps(Regions(48, strength, 0, rho=0).draw(1500, 0)) for strength in (STRONG, NONE))
    assert of_effects(checked(strong, Margins()))
    assert checked(none, Margins()).looks_right


def test_rows_keep_their_half_when_others_drop_out():
    explainer = fitted(Regions(48, STRONG, 0).draw(800, 0), "ctree", check_draws=False)
    X = explainer.schema_.encode(Regions(48, STRONG, 0).draw(800, 0))
    some = _Compared.choose(X, explainer.schema_, 0).at(np.arange(800) % 3 == 0)
    np.testing.assert_array_equal(some.scores, score_rows(some.columns, X[some.positions], halves=some.halves))
    assert {column.target for column in some.columns if column.effects is not None} == {1, 2, 3}
    assert 0.3 < some.halves.mean() < 0.7


class Reluctant(cs.approaches.Independence):
    """Lends nothing to a third of the rows."""

    name = "reluctant"

    def sample(self, X, masks, n_samples, *, keys, seed):
        donors = super().sample(X, masks, n_samples, keys=keys, seed=seed)
        weights = np.ones(donors.indices.shape) if donors.weights is None else donors.weights.copy()
        weights[:, keys % 3 == 0] = 0
        return Donors(donors.indices, donors.table, weights)


def test_rows_without_donors_do_no_harm():
    check = checked(Regions(48, NONE, 0, rho=0).draw(1500, 0), Reluctant())
    assert check.looks_right
    assert check.n_rows < 800


def test_what_was_found_is_saved_with_the_explainer(tmp_path):
    table = Regions(48, STRONG, 0).draw(600, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = fitted(table, "independence")
        explainer.save(tmp_path / "explainer")
        loaded = cs.load_explainer(tmp_path / "explainer", constant).draw_check_
    assert of_effects(loaded)
    assert loaded == explainer.draw_check_ == DrawCheck.from_json(json.loads(json.dumps(loaded.to_json())))


def test_tables_of_twelve_levels_at_most_have_no_such_columns():
    design = Regions(12, STRONG, 0)
    check = checked(design.draw(1000, 0), Law(design, strangers=1.0))
    assert not any("(by " in what for one in check.worst for what in one.what)
