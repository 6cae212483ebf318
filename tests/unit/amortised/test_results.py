"""An amortised explanation does all that needs no v(S), says so where it does, and comes back from its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import condshap as cs
from condshap.cli.screen import print_summary
from condshap.exceptions import CoalitionError, ModelError, OptionError, StorageError
from tests.unit.amortised.conftest import curved, mixed_model, mixed_table


@pytest.fixture(scope="module")
def found(fast, new_rows):
    return fast.explain(new_rows[:40])


@pytest.fixture
def strange(new_rows):
    """Three rows, the second of which is unlike all others."""
    rows = new_rows[:3].copy()
    rows[1] += [8.0, -8.0, 0.0, 0.0]
    return rows


def test_provenance_tells_how_the_network_was_made(fast, found):
    facts = found.provenance.amortised
    assert (facts["labels"], facts["rows"], facts["held_out_rows"], facts["seed"]) == (1200, 1200, 300, 0)
    assert facts["error"] == float(fast.error)
    assert facts["error_interval"] == list(fast.error.interval())
    assert "amortised" in repr(found)
    assert "relative error" in repr(fast)


def test_an_explanation_comes_back_from_its_file(fast, strange, tmp_path):
    with pytest.warns(cs.CondShapWarning, match="unlike"):
        found = fast.explain(strange)
    found.save(tmp_path / "it.parquet")
    again = cs.load_explanation(tmp_path / "it.parquet")
    assert again.value_table is None
    assert again.provenance == found.provenance
    np.testing.assert_array_equal(again.unlike_pool, [False, True, False])
    np.testing.assert_array_equal(again.values, found.values)
    np.testing.assert_array_equal(again.std_errors, found.std_errors)


def test_frames_and_plots_need_no_value_table(found):
    assert found.to_frame(errors=True).shape == (40, 10)
    for plot in (cs.plots.bar, cs.plots.beeswarm, cs.plots.heatmap):
        assert plot(found).get_figure() is not None
    cs.plots.waterfall(found, row=0)
    assert "amortised" in found._repr_html_()


def test_report_tells_of_error_and_unlike_rows(fast, strange, tmp_path):
    with pytest.warns(cs.CondShapWarning, match="unlike"):
        found = fast.explain(strange)
    text = cs.report(found, tmp_path / "report.html").read_text()
    assert "1200 labels of 1200 rows" in text
    assert "unlike the pool" in text
    assert '"unlike":[1]' in text


def test_report_puts_it_beside_the_explainer_itself(fast, explainer, new_rows, tmp_path):
    both = [fast.explain(new_rows[:10]), explainer.explain(new_rows[:10])]
    assert cs.report(both, tmp_path / "report.html", names=["fast", "full"]).exists()


def test_rows_players_and_outputs_are_selected(fast, found, strange, mixed_fast):
    with pytest.warns(cs.CondShapWarning, match="unlike"):
        flagged = fast.explain(strange)
    assert flagged[1:].unlike_pool.tolist() == [True, False]
    assert found[:, [0, 2]].values.shape == (40, 2)
    assert found[:, [0, 2]].value_table is None or len(found[:, [0, 2]].others.names) == 2
    several = mixed_fast.explain(mixed_table(20, 3), fallback="exact")
    assert several[..., 1].values.shape == (20, 3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one, _: one.msev,
        lambda one, _: one.interactions(),
        lambda one, _: one.owen({"left": ["x0", "x1"], "right": ["x2", "x3"]}),
        lambda one, _: cs.plots.msev(one),
        lambda one, explainer: explainer.refine(one, tolerance=0.01),
    ],
    ids=["msev", "interactions", "owen", "plots.msev", "refine"],
)
def test_what_needs_v_is_refused(found, explainer, ask):
    assert not found.has_msev
    with pytest.raises((OptionError, CoalitionError), match=r"v\(S\)") as refused:
        ask(found, explainer)
    assert "values='full'" not in str(refused.value)  # which gives no v(S) here either


def test_the_command_line_says_what_was_asked(found, capsys):
    print_summary(found, Path("found.parquet"), 0.1)
    said = " ".join(capsys.readouterr().out.split())
    assert "a network that learned its values (relative error 0." in said
    assert "coalitions" not in said


def test_rows_unlike_the_pool_are_told(fast, strange):
    with pytest.warns(cs.CondShapWarning, match=r"1 of 3 rows are unlike the pool, at positions \[1\]"):
        found = fast.explain(strange)
    assert found.unlike_pool.tolist() == [False, True, False]
    assert any("unlike the pool" in text for text in found.provenance.warnings)


def test_rows_unlike_the_pool_have_their_labels(fast, strange):
    import pandas as pd

    table = pd.DataFrame(strange, columns=[f"x{j}" for j in range(4)], index=["p", "q", "r"])
    with pytest.warns(
        cs.CondShapWarning, match=r"at positions \[1\].* In the index, these rows are \['q'\]\. The network"
    ):
        fast.explain(table)


def test_rows_like_the_pool_are_hardly_ever_flagged(fast, new_rows):
    assert fast.explain(new_rows).unlike_pool.mean() <= 0.02


def test_unlike_rows_may_be_explained_exactly(fast, explainer, strange, recwarn):
    found, exact = fast.explain(strange, fallback="exact"), explainer.explain(strange)
    np.testing.assert_array_equal(found.values[1], exact.values[1])
    np.testing.assert_array_equal(found.std_errors[1], exact.std_errors[1])
    assert (found.values[0] != exact.values[0]).any()
    assert found.unlike_pool.tolist() == [False, True, False]
    assert found.provenance.amortised["fallback"] == "exact"
    assert not [one for one in recwarn if "unlike" in str(one.message)]


def test_a_gap_that_the_pool_does_not_know_is_unlike_it(mixed_fast):
    rows = mixed_table(5, 4)
    rows.loc[2, "a"] = np.nan

    with pytest.warns(cs.CondShapWarning, match="unlike"):
        found = mixed_fast.explain(rows)
    assert found.unlike_pool[2]


def test_a_level_that_the_pool_lacks_is_unlike_it(quick_training):
    fitted = cs.Explainer(mixed_model, approach="independence", n_samples=16, progress=False, check_draws=False)
    fitted.fit(mixed_table(200, 1))
    pool, rows = mixed_table(400, 2), mixed_table(40, 3)
    fast = fitted.amortise(pool[pool["c"] != "high"], budget="150 rows", calibration_rows=60)
    with pytest.warns(cs.CondShapWarning, match="unlike"):
        found = fast.explain(rows)
    assert found.unlike_pool[(rows["c"] == "high").to_numpy()].all()
    assert found.unlike_pool[(rows["c"] != "high").to_numpy()].mean() < 0.2


def test_a_single_number_far_outside_is_unlike_the_pool_however_many_features_are_as_usual(quick_training):
    X = np.random.default_rng(0).normal(size=(700, 12))
    X[100:, 11] = 3.0  # a constant of the pool
    fitted = cs.Explainer(curved, approach="independence", n_samples=4, progress=False, check_draws=False)
    fast = fitted.fit(X[:100]).amortise(X[100:600], budget="150 rows", calibration_rows=60)
    rows = X[600:]
    assert fast.explain(rows).unlike_pool.mean() <= 0.02
    rows[3, 5], rows[7, 11] = 12.0, 3.5
    with pytest.warns(cs.CondShapWarning, match="unlike"):
        found = fast.explain(rows)
    assert np.flatnonzero(found.unlike_pool).tolist() == [3, 7]


def test_a_fast_explainer_comes_back_from_its_file(mixed_fast, tmp_path):
    rows = mixed_table(30, 5)
    mixed_fast.save(tmp_path / "fast.explainer")
    again = cs.load_explainer(tmp_path / "fast.explainer", mixed_model)
    assert isinstance(again, cs.FastExplainer)
    one, other = mixed_fast.explain(rows), again.explain(rows)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.std_errors, other.std_errors)
    assert again.error.interval() == mixed_fast.error.interval()
    assert b"pickle" not in (tmp_path / "fast.explainer").read_bytes()


def test_another_model_is_refused(fast, new_rows, tmp_path):
    fast.save(tmp_path / "fast.explainer")
    with pytest.raises(ModelError, match="the model must be the one whose Shapley values the network has learned"):
        cs.load_explainer(tmp_path / "fast.explainer", lambda x: curved(x) + 0.1)


def test_a_model_that_has_changed_is_refused(quick_training, normals):
    class Changing:
        shift = 0.0

        def predict(self, x):
            return curved(x) + self.shift

    model = Changing()
    made = cs.Explainer(model, approach="gaussian", n_samples=4, progress=False, check_draws=False).fit(normals[:100])
    fast = made.amortise(normals[:300], budget="200 rows", calibration_rows=40)
    fast.explain(normals[:5])
    model.shift = 1.0
    with pytest.raises(ModelError, match=r"predictions for .* training rows differ"):
        fast.explain(normals[:5])


def test_a_damaged_file_is_refused(fast, tmp_path):
    path = tmp_path / "fast.explainer"
    fast.save(path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        cs.load_explainer(path, curved)


def test_datasets_are_explained_part_by_part(fast, normals, tmp_path):
    import pandas as pd

    rows = pd.DataFrame(normals[1800:1900], columns=[f"x{j}" for j in range(4)])
    rows.to_parquet(tmp_path / "rows.parquet")
    lazy = fast.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", rows_per_part=30)
    together = lazy.to_explanation(limit=None)
    np.testing.assert_array_equal(together.values, fast.explain(normals[1800:1900]).values)


def test_a_misspelt_option_of_a_dataset_run_is_named_with_the_nearest(fast, tmp_path):
    with pytest.raises(OptionError, match=r"no option 'fall_back'. Did you mean 'fallback'\? .*'rows_per_part'"):
        fast.explain_dataset(tmp_path / "rows.parquet", tmp_path / "out", fall_back="exact")
