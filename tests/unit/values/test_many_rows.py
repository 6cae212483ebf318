"""Very many training rows: what approaches learn from, and that usual tables are not touched."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.approaches.base import ENOUGH_ROWS, capabilities_of
from condshap.coalitions import all_coalitions
from condshap.draw_check import checking
from condshap.numerics.margins import EmpiricalMargin
from condshap.schema import FeatureSchema
from condshap.vaeac import VAEACConfig
from condshap.values.assignments import learning_rows, make_parts

N = 60_000


def product(x):
    return x[:, 0] * x[:, 1]


def normals(n, m=3):
    return np.random.default_rng(0).normal(size=(n, m)) @ np.tri(m)


def chosen(approach, rows, seed=0):
    schema = FeatureSchema.learn(rows)
    encoded = schema.encode(rows)
    return learning_rows(make_parts(approach, all_coalitions(encoded.shape[1])), encoded, schema, seed=seed)


@pytest.mark.parametrize("approach", cs.available_approaches())
def test_fifty_thousand_rows_are_all_learned_from(approach):
    limit = capabilities_of(make_parts(approach, all_coalitions(3))[0].approach).most_rows
    assert limit is None or limit >= ENOUGH_ROWS == 50_000
    rows = np.zeros((ENOUGH_ROWS, 3))
    assert learning_rows(make_parts(approach, all_coalitions(3)), rows, None, seed=0) is None


def test_of_more_rows_a_random_part_is_taken_that_depends_on_the_seed_alone():
    rows = normals(N)
    first, again, other = chosen("ctree", rows), chosen("empirical", rows), chosen("ctree", rows, seed=1)
    assert len(first) == ENOUGH_ROWS
    np.testing.assert_array_equal(first, again)
    assert (np.diff(first) > 0).all()
    assert 0.8 < np.isin(first, other).mean() < 0.87  # 5/6 by chance, with a standard deviation of 0.0007
    assert abs(first.mean() / (N / 2) - 1) < 0.01  # four standard deviations: from everywhere
    np.testing.assert_array_equal(chosen(["gaussian", "ctree"], rows), first)  # the part of the one that takes fewest


def test_no_level_and_no_gap_is_lost():
    codes = np.zeros(N, dtype=int)
    codes[[17, 40_000]] = 1, 2
    rows = pd.DataFrame({"x": normals(N)[:, 0], "c": pd.Categorical.from_codes(codes, ["usual", "rare", "rarer"])})
    gap = next(i for i in range(N) if i not in chosen("ctree", rows))
    rows.loc[gap, "x"] = np.nan
    part = chosen("ctree", rows)
    assert {17, 40_000, gap} <= set(part.tolist())
    assert ENOUGH_ROWS <= len(part) <= ENOUGH_ROWS + 3


@pytest.mark.parametrize("approach", ["ctree", "empirical", "regression_separate"])
def test_provenance_says_what_was_learned_from_and_saving_keeps_it(approach, tmp_path):
    rows = normals(N)
    explainer = cs.Explainer(product, approach=approach, n_samples=None, check_draws=False).fit(rows)
    found = explainer.explain(rows[:2])
    assert found.provenance.n_learned == ENOUGH_ROWS
    assert float(found.base_values[0]) == product(rows).mean()  # of all rows
    explainer.save(tmp_path / "one.condshap")
    assert (tmp_path / "one.condshap").stat().st_size < 1.3 * ENOUGH_ROWS * 4 * 8
    again = cs.load_explainer(tmp_path / "one.condshap", product).explain(rows[:2])
    np.testing.assert_array_equal(again.values, found.values)
    found.save(tmp_path / "two.parquet")
    assert cs.load_explanation(tmp_path / "two.parquet").provenance.n_learned == ENOUGH_ROWS


def test_all_rows_are_learned_from_where_there_are_few():
    assert cs.explain(product, normals(200), normals(2), approach="ctree").provenance.n_learned is None


def test_other_rows_beyond_the_part_make_another_explainer():
    rows = normals(N)
    part = chosen("empirical", rows)
    changed = rows.copy()
    changed[np.setdiff1d(np.arange(N), part)[0], 2] += 1.0  # the model does not read it
    first, other = (cs.Explainer(product, approach="empirical", check_draws=False).fit(r) for r in (rows, changed))
    assert first.made_by_ != other.made_by_


def test_the_draw_check_knows_which_donor_a_row_is_itself(monkeypatch):
    """It compares places in tables: a row that lent to itself would hide what is wrong."""
    seen = []
    usual = checking._lend

    def noted(donors, compared, seed):
        seen.append((donors, compared))
        return usual(donors, compared, seed)

    monkeypatch.setattr(checking, "_lend", noted)
    cs.Explainer(product, approach="ctree").fit(normals(N))
    assert seen
    for donors, compared in seen:
        np.testing.assert_array_equal(donors.table, compared.training)


def test_epochs_count_steps_of_at_most_fifty_thousand_rows():
    def asked(n):
        config = VAEACConfig().resolve(n, 10, has_continuous=True).warmed_up(n, share_much=True)
        return config.epochs, config.kl_warmup

    assert asked(50_000) == asked(1_000_000) == (63, 9)
    assert asked(20_000) == (100, 15)


def test_margins_of_very_many_values_keep_quantiles_and_ends():
    column = np.random.default_rng(0).lognormal(size=400_000)
    thinned, whole = EmpiricalMargin.learn(column), EmpiricalMargin(np.sort(column))
    assert len(thinned.ordered) == 2**17 + 1
    assert (thinned.ordered[0], thinned.ordered[-1]) == (column.min(), column.max())
    scores = np.linspace(-3, 3, 101)
    np.testing.assert_allclose(thinned.from_scores(scores), whole.from_scores(scores), rtol=2e-3)
    np.testing.assert_allclose(thinned.to_scores(column[:99]), whole.to_scores(column[:99]), atol=2e-3)
    few = EmpiricalMargin.learn(column[: 2**17])
    np.testing.assert_array_equal(few.ordered, np.sort(column[: 2**17]))


@pytest.mark.slow
def test_a_million_rows_fit_into_four_gibibytes():
    code = (
        "import json; from benchmarks.speed.many_rows import Point, run_point\n"
        "for name in ('gaussian', 'ctree'): print(json.dumps(run_point(Point(name, 1_000_000))))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("peak_gib") == 2
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 4 * 2**20  # KiB
