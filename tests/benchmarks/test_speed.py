"""Pure parts of the benchmarks: what is compared with what, slopes, tables and counts."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import condshap as cs
from benchmarks.lib import report
from benchmarks.lib.measure import Asked, asked_of_models
from benchmarks.speed import cases, growth, overhead, peers, quick
from condshap.studies.designs import LinearModel, MixedGaussian, OneFactor


def test_slopes_are_exponents():
    assert growth.slope([10, 100, 1000], [3e-3, 3e-1, 3e1]) == pytest.approx(2.0)
    assert growth.slope([1, 4], [5.0, 5.0]) == pytest.approx(0.0, abs=1e-12)


def points(*costs):
    return [{"size": 10**i, "cpu_explain": cost} for i, cost in enumerate(costs)]


@pytest.mark.parametrize(
    ("costs", "holds"),
    [
        ((1, 10, 100), True),
        ((1, 15, 225), False),  # 1.18 everywhere
        ((1, 1, 20), False),  # 0.65 in all, but 1.3 at the end
        ((9, 10, 100), True),  # a fixed cost only ever flattens
    ],
)
def test_the_steeper_of_whole_curve_and_last_step_is_judged(costs, holds):
    curve = growth.Curve("x", "rows", (1, 10, 100), growth.Point())
    assert growth.slopes_of(curve, points(*costs))["holds"] is holds


def test_sizes_below_the_first_do_not_count_and_a_curve_without_bar_is_not_judged():
    curve = growth.Curve("x", "rows", (1, 10, 100), growth.Point(), has_bar=False, first=10)
    found = growth.slopes_of(curve, points(1e6, 10, 100))
    assert found["slope"] == pytest.approx(1.0)
    assert found["holds"] is None


@pytest.mark.parametrize(("many", "peak", "verdicts"), [(109, 1000, ["yes", "yes"]), (111, 1025, ["**no**", "**no**"])])
def test_memory_is_judged_by_growth_and_by_the_budget(many, peak, verdicts):
    points = [
        {"size": 100, "beyond_mib": 100.0, "peak_mib": 101.0},
        {"size": 10_000, "beyond_mib": float(many), "peak_mib": float(peak)},
    ]
    lines = growth.memory_bars({"about": "x", "points": points}).splitlines()
    assert [line.split(": ")[-1].rstrip(".") for line in lines] == verdicts


def test_a_ratio_is_worse_beyond_the_factor_only():
    before = {"a": {"ratio": 1.0, "n_rows": 100}, "b": {"ratio": 2.0, "n_rows": 100}}
    now = {"a": {"ratio": 1.49, "n_rows": 100}, "b": {"ratio": 3.1, "n_rows": 100}}
    compared = quick.compare(now, before)
    assert [(one.name, one.what) for one in compared if one.is_worse] == [("b", "ratio")]
    assert "b (ratio: 1.55 times)" in quick.verdict(compared)
    assert "a (" not in quick.verdict(compared)


def test_more_model_rows_are_worse_too():
    compared = quick.compare({"a": {"ratio": 1.0, "n_rows": 151}}, {"a": {"ratio": 1.0, "n_rows": 100}})
    assert [one.what for one in compared if one.is_worse] == ["n_rows"]


def test_lines_that_one_side_lacks_are_told_and_not_judged():
    compared = quick.compare({"new": {"ratio": 9.0, "n_rows": 9}}, {"old": {"ratio": 1.0, "n_rows": 1}})
    assert not any(one.is_worse for one in compared)
    text = quick.describe(compared)
    assert "| new | CPU ratio | 9 | - | - | new |" in text
    assert "| old | CPU ratio | - | 1 | - | not measured |" in text
    assert quick.verdict(compared) == "Nothing got much worse."


@pytest.fixture
def quick_run(monkeypatch, tmp_path):
    """The check with made-up measurements; returns its exit status for a ratio."""
    report.store("quick", {"gaussian / numpy": {"ratio": 1.0, "n_rows": 5}}, tmp_path)
    monkeypatch.setattr(quick, "read", lambda name: report.read(name, tmp_path))
    monkeypatch.setattr(quick, "compile_kernels", lambda: None)
    monkeypatch.setattr(sys, "argv", ["quick", "--only", "gaussian / numpy"])

    def run(ratio):
        monkeypatch.setattr(quick, "run_all", lambda names, slow: {names[0]: {"ratio": ratio, "n_rows": 5}})
        return quick.main()

    return run


def test_the_check_fails_when_a_line_got_slow_and_says_which(quick_run, capsys):
    assert quick_run(1.4) == 0
    assert quick_run(2.0) == 1
    assert "gaussian / numpy (ratio: 2.00 times)" in capsys.readouterr().out


def test_an_update_of_some_lines_keeps_the_others(quick_run, monkeypatch):
    stored = {}
    monkeypatch.setattr(quick, "publish", lambda name, results, text, *, write: stored.update(results))
    monkeypatch.setattr(sys, "argv", ["quick", "--update", "--only", "copula / numpy"])
    assert quick_run(9.0) == 0
    assert stored == {"gaussian / numpy": {"ratio": 1.0, "n_rows": 5}, "copula / numpy": {"ratio": 9.0, "n_rows": 5}}


def test_versions_that_run_in_turns_are_compared_by_the_best_of_each(monkeypatch, tmp_path, capsys):
    runs = {"now": iter([3.0, 1.8, 2.0]), "before": iter([1.0, 1.5, 1.1])}
    order = []

    def run(name, *arguments, checkout):
        order.append("now" if checkout is None else "before")
        return f'{{"ratio": {next(runs[order[-1]])}, "n_rows": 5}}'

    stored = []
    monkeypatch.setattr(quick, "run_alone", run)
    monkeypatch.setattr(quick, "publish", lambda name, results, *_, **__: stored.append(results))
    own = tmp_path / "benchmarks" / "speed"
    own.mkdir(parents=True)
    (own / "quick.py").touch()
    assert quick.tell_change(["copula / numpy", quick.KERNEL], tmp_path, write=False) == 1
    assert order == ["before", "now"] * 3
    now, before = ({"copula / numpy": {"ratio": ratio, "n_rows": 5}} for ratio in (1.8, 1.0))
    assert stored == [[now, before]]
    assert "copula / numpy (ratio: 1.80 times)" in capsys.readouterr().out


def test_an_older_version_must_be_a_checkout_with_the_benchmark(tmp_path):
    with pytest.raises(SystemExit, match="--before must be a checkout of condshap with this benchmark"):
        quick.tell_change(["copula / numpy"], tmp_path, write=False)


def test_the_committed_levels_are_of_the_lines_that_are_run():
    committed = report.read("quick")
    assert committed is not None
    assert set(committed["results"]) == {*quick.LINES, quick.KERNEL}


def test_errors_are_against_the_rows_that_were_explained():
    truth = np.array([[1.0, -3.0], [2.0, 0.0], [100.0, 100.0]])
    found = peers.errors_against(truth, [[1.0, -2.0], [0.0, 1.0]])
    assert found == {"mae": 1.0, "rel": pytest.approx(4 / 6), "top1": 0.5}


def line_of(method, *, explained=100, cpu=1.0, rel=0.04, package="condshap"):
    cost = {"cpu": cpu, "wall": cpu, "n_rows": 1000, "calls": 2, "peak_mib": 3.0, "mae": 0.1, "rel": rel, "top1": 1.0}
    return {"package": package, "method": method, "title": method, "explained": explained, **cost}


def test_times_are_compared_by_the_row_and_judged_with_the_error():
    kernel = line_of("kernel", explained=50, cpu=4.0, package="shap")
    ours = line_of("gaussian", cpu=3.0)
    assert peers.ratio(ours, kernel, "cpu") == pytest.approx(0.375)
    text = peers.judge(ours, kernel, "linear")
    assert text.startswith(
        "- gaussian: rel 0.040, at most 0.045: yes; CPU 0.375 of KernelExplainer's, at most 0.5: yes;"
    )
    assert "**no**" in peers.judge(line_of("vaeac", rel=0.05), kernel, "linear")
    assert "at most 0.5: **no**" in peers.judge(line_of("vaeac", cpu=4.1), kernel, "linear")


def test_peers_that_are_not_installed_are_told_and_the_rest_stands():
    absent = {"package": "shap", "method": "kernel", "title": "shap KernelExplainer", "explained": 100}
    results = {"lines": [absent, line_of("gaussian")], "truth_error": 0.0, "truth_mean": 1.0}
    text = peers.describe("linear", results)
    assert "| shap KernelExplainer | not installed here | - |" in text
    assert "time not judged, KernelExplainer was not measured" in text


def test_values_by_the_true_moments_would_be_the_truth(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "N_TRAIN", 50)
    monkeypatch.setattr(peers, "FOREST", {"n_estimators": 2, "random_state": 0})
    path = tmp_path / "problem.npz"
    design = peers.make_problem(path, seed=3)
    truth, error = peers.find_truth(design, path, "linear")
    problem = peers.read_problem(str(path), "linear")
    covariance = np.full((10, 10), peers.RHO) + (1 - peers.RHO) * np.eye(10)
    monkeypatch.setattr(peers.np, "cov", lambda _: covariance)
    centred = problem.train - problem.train.mean(axis=0)
    exact = peers.values_by_moments(peers.WorkerProblem(centred, centred, problem.X, problem.coef, None, None))
    assert error == 0.0
    np.testing.assert_allclose(exact, truth, atol=1e-9)
    assert isinstance(design, MixedGaussian)
    assert design.law == OneFactor(0, 10, (), peers.RHO)
    assert isinstance(design.linear, LinearModel)


@pytest.mark.parametrize("fast_trees", [True, False])
def test_all_that_models_are_asked_for_is_counted_once(fast_trees):
    X = np.random.default_rng(0).normal(size=(40, 3))
    forest = RandomForestRegressor(2, random_state=0).fit(X, X.sum(axis=1))
    with asked_of_models() as asked:
        explainer = cs.Explainer(forest, approach="gaussian", progress=False, fast_trees=fast_trees).fit(X)
        before, calls = asked.n_rows, asked.calls
        found = explainer.explain(X[:5])
    assert asked.n_rows - before == found.value_table.n_evaluations
    assert asked.calls - calls >= 2
    after = asked.calls
    explainer.explain(X[:5])
    assert asked.calls == after  # counting has ended


def test_rows_are_kept_as_they_came():
    asked = Asked(keep=True)
    X = np.arange(6.0).reshape(3, 2)
    assert asked.around(lambda rows: rows.sum(axis=1))(X).tolist() == [1.0, 5.0, 9.0]
    X[:] = 0
    assert asked.rows[0].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert (asked.calls, asked.n_rows) == (1, 3)


def forest_line(method, **changes):
    cost = {"cpu": 100.0, "cpu_fit": 10.0, "cpu_slow": 130.0, "cpu_predict": 100.0, "n_rows": 10, "recorded_rows": 10}
    return {"method": method, **cost, **changes}


def test_training_is_allowed_for_with_networks_only():
    assert [cells["holds"] for cells in cases.forest_cells(forest_line("gaussian"))] == ["yes", "**no**"]
    assert [cells["holds"] for cells in cases.forest_cells(forest_line("vaeac"))] == ["yes", "yes"]
    assert [cells["at most s"] for cells in cases.forest_cells(forest_line("vaeac"))] == ["145.0", "145.0"]
    more = cases.forest_cells(forest_line("vaeac", n_rows=2_000_001))[0]
    assert more["at most 2,000,000"] == "**no**"
    ctree = {"method": "ctree", "cpu": 181.0, "cpu_fit": 1.0, "n_rows": 3_000_000}
    assert [cells["holds"] for cells in cases.forest_cells(ctree)] == ["**no**"]


def test_overhead_is_judged_where_rows_are_drawn():
    line = {
        "design": "burr",
        "method": "gaussian",
        "cpu": 1.16,
        "cpu_predict": 1.0,
        "n_rows": 1,
        "calls": 1,
        "explained": 1,
    }
    assert cases.overhead_cells(line)["holds"] == "**no**"
    assert cases.overhead_cells({**line, "cpu": 1.14})["holds"] == "yes"
    assert cases.overhead_cells({**line, "method": "regression_separate"})["holds"] == "-"


def test_cases_stand_beside_figures_of_others():
    line = {"case": "burr-5", "method": "gaussian", "cpu": 5.4, "cpu_fit": 1.0, "wall": 6.0, "n_rows": 7, "calls": 1}
    cells = cases.case_cells({**line, "peak_mib": 1.0, "ec1": 0.03})
    assert (cells["paper's CPU s"], cells["ours / paper's"], cells["R shapr's CPU s"]) == ("54", "0.100", "60")
    assert cells["paper's EC1"] == "0.0424"
    assert set(cases.PAPER_MINUTES) | set(cases.SHAPR_SECONDS) <= {
        (name, method) for name, case in cases.CASES.items() for method in case.methods
    }


def test_cases_that_are_not_measured_again_stay():
    old = {"case": "mixed-4", "method": "ctree", "cpu": 1}
    new = {"case": "burr-5", "method": "gaussian", "cpu": 2}
    assert cases.with_earlier({"cases": [new]}, {"cases": [old]})["cases"] == [new, old]
    assert cases.with_earlier({"cases": [{**old, "cpu": 3}]}, {"cases": [old]})["cases"] == [{**old, "cpu": 3}]
    kept = {"overhead": [{"design": "burr", "method": "vaeac"}]}
    assert cases.with_earlier({"cases": []}, kept) == {"cases": [], **kept}


def test_stored_overhead_is_within_what_we_allow_and_more_is_told():
    stored = report.read("overhead")["results"]
    assert {line["ratio"].split()[2] for line in stored} == {"predict", "R"}
    assert overhead.too_large(stored) == []
    slow = [{**line, "ratio": "1.16 x " + line["ratio"].partition(" x ")[2]} for line in stored]
    assert overhead.too_large(slow) == [line["fit + explain"] for line in stored]
