"""The budget decides how much is learned, and bad input is refused before anything is spent."""

from __future__ import annotations

import numpy as np
import pytest

import condshap as cs
from condshap.amortised.budget import Budget
from condshap.amortised.fast_explainer import teacher_of
from condshap.amortised.labels import Course, Labels, by_output
from condshap.exceptions import OptionError, SchemaError
from tests.unit.amortised.conftest import curved


def course_of(explainer, rows, budget):
    teacher = teacher_of(explainer, explainer.game_)
    return Course(teacher, rows, curved(rows)[:, None], Budget.of(budget), 0)


def test_the_same_rows_are_the_same_lesson_and_the_same_answer(explainer, normals, quick_training):
    one, two = (explainer.amortise(normals[300:800], budget="250 rows", calibration_rows=60) for _ in range(2))
    np.testing.assert_array_equal(one.explain(normals[:20]).values, two.explain(normals[:20]).values)
    other = explainer.amortise(normals[300:800], budget="250 rows", calibration_rows=60, seed=1)
    assert (one.explain(normals[:20]).values != other.explain(normals[:20]).values).any()


def test_seconds_can_be_repeated_by_the_rows_that_they_were(explainer, normals, quick_training):
    one = explainer.amortise(normals[300:700], budget=1.0, calibration_rows=60)
    labels = one.explain(normals[:2]).provenance.amortised["labels"]
    two = explainer.amortise(normals[300:700], budget=f"{labels} rows", calibration_rows=60)
    np.testing.assert_array_equal(one.explain(normals[:20]).values, two.explain(normals[:20]).values)


def test_labels_do_not_depend_on_where_rounds_end(explainer, normals):
    course = course_of(explainer, normals[300:400], "150 rows")
    none = Labels.none(100, 4, 1)
    at_once, in_rounds = course.go_on(none, 150), course.go_on(course.go_on(none, 37), 150)
    np.testing.assert_array_equal(at_once.values, in_rounds.values)
    assert at_once.counts.tolist() == [2] * 50 + [1] * 50


def test_labels_are_around_what_the_explainer_says(explainer, normals):
    # the mean of 64 labels of 20 rows: 5 standard errors, less than 1 in 10,000 for 80 values
    rows = normals[300:320]
    course = course_of(explainer, rows, "2000 rows")
    teacher = course.teacher
    turns = np.stack([
        by_output(teacher.with_few_samples().with_seed(seed).explain(rows, course.predictions)) for seed in range(64)
    ])  # fmt: skip
    full = explainer.explain(rows)
    noise = np.sqrt(turns[..., 0].var(axis=0, ddof=1) / 64 + full.std_errors**2)
    assert (np.abs(turns[..., 0].mean(axis=0) - full.values) < 5 * noise).all()


def test_no_more_labels_are_made_than_full_precision_has_samples(explainer, normals):
    course = course_of(explainer, normals[300:310], "100000 rows")
    full = explainer.game_.n_samples[explainer.plan_.interior]
    assert course.most == 10 * int(np.ceil(full.sum() / np.minimum(full, 8).sum()))
    assert course.go_on(Labels.none(10, 4, 1), course.most).counts.tolist() == [course.most // 10] * 10


def test_values_without_noise_are_asked_for_once(normals):
    made = cs.Explainer(lambda x: x @ [1.0, 2.0, 0.0, -1.0], approach="gaussian", additive=True, progress=False)
    made.fit(normals[:200])
    assert course_of(made, normals[300:310], "1000 rows").most == 10


def test_a_target_that_is_reached_ends_the_lesson(explainer, normals, quick_training, monkeypatch):
    monkeypatch.setattr("condshap.amortised.learning._FIRST_ROUND", 200)
    fast = explainer.amortise(normals[300:1200], budget="800 rows", target=0.9, calibration_rows=90)
    assert fast.explain(normals[:2]).provenance.amortised["labels"] == 200


def test_a_target_that_is_missed_is_told(explainer, normals, quick_training, monkeypatch):
    monkeypatch.setattr("condshap.amortised.learning._FIRST_ROUND", 150)
    with pytest.warns(cs.CondShapWarning, match=r"target=1e-06 was not reached.*after 300 labels"):
        explainer.amortise(normals[300:800], budget="300 rows", target=1e-6, calibration_rows=90)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": 0}, "budget must be seconds or a number of rows"),
        ({"budget": -1.0}, "budget must be"),
        ({"budget": "20 minutes"}, "budget must be seconds or a number of rows, above 0, got '20 minutes'"),
        ({"budget": "50 rows"}, "budget must be at least 100 rows"),
        ({"budget": None}, "budget must be"),
        ({"budget": float("nan")}, "budget must be"),
        ({"budget": 1e-9}, "budget must allow for at least 100 rows"),
        ({"target": 0}, "target must be a finite number above 0"),
        ({"calibration_rows": 5}, "calibration_rows must be an integer of at least 30"),
        ({"calibration_rows": 2.5}, "calibration_rows must be an integer"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_options_out_of_range_are_refused(explainer, normals, options, says):
    with pytest.raises(OptionError, match=says):
        explainer.amortise(normals[300:600], **{"budget": "200 rows", "calibration_rows": 40, **options})


@pytest.mark.parametrize(
    ("pool", "held_out", "says"),
    [
        (lambda X: X[:, :3], 40, "columns"),
        (lambda X: X[:30], 40, "X_pool must have at least 100 rows besides the 40 held out"),
        (lambda X: X[:130], 500, "X_pool must have at least 100 rows besides the 500 held out"),
        (lambda X: np.repeat(X[:20], 20, axis=0), 40, "X_pool must have at least 100 rows that differ"),
        (lambda X: np.where(X > 3, np.inf, X) + np.inf, 40, "finite"),
    ],
    ids=["columns", "few", "held out", "repeated", "infinite"],
)
def test_a_pool_that_cannot_teach_is_refused(explainer, normals, pool, held_out, says):
    with pytest.raises(SchemaError, match=says):
        explainer.amortise(pool(normals[300:800]), budget="200 rows", calibration_rows=held_out)


def test_a_log_says_what_is_being_done(normals, quick_training, capsys):
    shown = cs.Explainer(curved, approach="gaussian", progress=True, check_draws=False).fit(normals[:300])
    capsys.readouterr()
    shown.amortise(normals[300:600], budget="150 rows", calibration_rows=30)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("held-out rows, explaining: ") for line in lines)
    assert any(line.startswith("explaining rows to learn from: 150 of 150 rows") for line in lines)
    assert lines[-1].startswith("training")


def test_only_a_fitted_explainer_can_teach(normals):
    with pytest.raises(cs.CondShapError, match="fitted"):
        cs.Explainer(curved).amortise(normals)


def test_a_fallback_that_does_not_exist_is_refused(fast, new_rows):
    with pytest.raises(OptionError, match="fallback must be one of"):
        fast.explain(new_rows, fallback="guess")
