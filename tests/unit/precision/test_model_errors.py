"""Errors of the learned distribution: from members of an ensemble, and from refits."""

import warnings

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.coalitions import all_coalitions, make_plan
from condshap.exceptions import OptionError
from condshap.precision.members import MemberSpread, influences, member_deviations
from condshap.precision.model_errors import combine_refits, draw_table

QUICK = {"epochs": 8, "width": 8, "depth": 1, "latent": 2, "patience": None, "companions": False, "shrink": False}


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.multivariate_normal(np.zeros(4), 0.5 * np.eye(4) + 0.5, size=n), columns=list("abcd"))
    frame["kind"] = pd.Categorical(np.where(frame["a"] + rng.normal(size=n) > 0, "u", "v"))
    return frame


def model(frame):
    return frame["a"].to_numpy() * frame["b"].to_numpy() + frame["c"].to_numpy() + (frame["kind"] == "u").to_numpy()


def fitted(approach="gaussian", frame=None, **options):
    frame = table().drop(columns="kind") if frame is None else frame
    f = model if "kind" in frame else lambda x: x["a"].to_numpy() * x["b"].to_numpy() + x["c"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cs.Explainer(f, approach=approach, check_draws=False, progress=False, **options).fit(frame)


@pytest.fixture(scope="module")
def networks():
    return fitted(cs.approaches.find_approach("vaeac")(**QUICK), table())


def explained(explainer, n=6):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return explainer.explain(table(n, seed=9)[list(explainer.schema_.names)])


def test_an_ensemble_reports_the_error_of_its_training(networks):
    found = explained(networks)
    assert found.provenance.model_errors_from == "members"
    assert found.model_errors.shape == found.values.shape
    assert (found.model_errors > 0).all()
    np.testing.assert_allclose(found.errors, np.hypot(found.std_errors, found.model_errors))


def test_without_members_nobody_has_estimated_anything():
    found = explained(fitted())
    assert found.provenance.model_errors_from is None
    assert (found.model_errors == 0).all()
    assert (found.errors == found.std_errors).all()


def test_blocks_have_no_say_in_errors_of_training(networks):
    whole = explained(networks).model_errors
    networks.set_params(memory_budget="1MiB")
    small = explained(networks).model_errors
    networks.set_params(memory_budget="1GiB")
    assert (whole == small).all()


def test_refined_explanations_keep_their_errors_of_training():
    explainer = fitted(
        cs.approaches.find_approach("vaeac")(**QUICK), table(), n_coalitions="auto", tolerance=0.5, max_coalitions=30
    )
    found = explained(explainer)
    assert found.provenance.model_errors_from == "members"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        finer = explainer.refine(found, tolerance=0.3)
    assert (finer.model_errors == found.model_errors).all()


@pytest.mark.parametrize("n_coalitions", [None, 16])
def test_spread_is_that_of_the_members_own_values(n_coalitions):
    plan = make_plan(5, n_coalitions, seed=0)
    rng = np.random.default_rng(0)
    v = rng.normal(size=(3, len(plan.masks), 4, 2))  # three members, four rows, two outputs
    spread = MemberSpread(plan, 4, 2)
    apart = v - v.mean(axis=0)
    for some in (np.arange(3), np.arange(3, len(plan.masks))):
        spread.add(some, slice(0, 2), apart[:, some, :2])
        spread.add(some, slice(2, 4), apart[:, some, 2:])
    operator = influences(plan)
    own = np.einsum("pc,ecro->erpo", operator, v)
    np.testing.assert_allclose(spread.deviations, own - own.mean(axis=0), atol=1e-12)
    squares = own.var(axis=0, ddof=1) / 3
    nobody = np.zeros((4, 5), dtype=bool)
    wanted = (3 * squares + 4 * squares.mean(axis=1, keepdims=True)) / 7
    np.testing.assert_allclose(spread.errors(nobody) ** 2, wanted)


def test_noise_of_samples_is_taken_off():
    """Members that differ by noise alone have an error of nearly 0: 0.3 of the noise at most, over 400 rows."""
    plan, rng = all_coalitions(4), np.random.default_rng(1)
    v = rng.normal(size=(6, len(plan.masks), 400, 1))
    spread = MemberSpread(plan, 400, 1)
    spread.add(np.arange(len(plan.masks)), slice(None), v - v.mean(axis=0))
    before = spread.errors(np.zeros((400, 4), dtype=bool))
    spread.count_noise(np.full(v.shape[1:], 1 / 6))  # variance of the mean over members
    after = spread.errors(np.zeros((400, 4), dtype=bool))
    assert np.sqrt((after**2).mean()) < 0.6 * np.sqrt((before**2).mean())


def test_members_with_other_samples_between_them_are_diluted():
    f = np.array([1.0, 3.0, 10.0, 10.0]).reshape(1, 1, 4, 1)
    apart = member_deviations(f, None, np.array([0, 1, -1, -1]))
    np.testing.assert_allclose(apart.ravel(), [-0.5, 0.5])  # half of the samples are theirs


def test_drawn_tables_look_like_the_training_rows_and_lose_no_level():
    frame = table()
    frame["kind"] = pd.Categorical(["rare", *frame["kind"].iloc[1:]])
    explainer = fitted("ctree", frame)
    rows = explainer.training_rows_
    for seed in range(5):
        drawn = draw_table(explainer.game_, rows, seed)
        assert drawn.shape == rows.shape
        assert set(drawn[:, 4]) == {0.0, 1.0, 2.0}


def test_tables_are_drawn_from_the_approach():
    """Correlations of a drawn table are those of the rows: within 5 standard errors of 1 / sqrt(N), 6 pairs, 5 tables."""
    explainer = fitted()
    rows = explainer.training_rows_
    for seed in range(5):
        drawn = draw_table(explainer.game_, rows, seed)
        assert not np.isin(drawn, rows).any()
        assert np.abs(np.corrcoef(drawn.T) - np.corrcoef(rows.T)).max() < 5 / np.sqrt(len(rows))


def test_gaps_stay_where_they_were():
    frame = table()
    frame.loc[::5, "a"] = np.nan
    explainer = fitted(cs.approaches.find_approach("vaeac")(**QUICK), frame)
    drawn = draw_table(explainer.game_, explainer.training_rows_, 0)
    assert 0.05 < np.isnan(drawn[:, 0]).mean() < 0.4
    assert not np.isnan(drawn[:, 1:]).any()


def test_fewer_rows_mean_larger_errors():
    """Errors fall about as the root of the number of rows: here by 4, with 8 refits by at least 2."""
    X = table(8, seed=5).drop(columns="kind")
    few, many = (
        fitted(frame=table(n, seed=1).drop(columns="kind")).estimate_model_errors(X, n_refits=8) for n in (60, 960)
    )
    assert few.mean() > 2 * many.mean()


def test_errors_of_refits_hold_bias_and_variance_without_noise():
    explainer = fitted()
    first = explained(explainer)
    shifted = [first.with_model_errors(first.std_errors) for _ in range(4)]
    found = combine_refits(first, shifted)
    assert (found <= first.std_errors).all()  # nothing but noise between them


def test_seeds_and_rows_decide_on_errors():
    X = table(3, seed=7).drop(columns="kind")
    first, second = (fitted().estimate_model_errors(X, n_refits=2) for _ in range(2))
    assert (first == second).all()
    assert (first > 0).all()


def test_all_errors_are_in_the_table(networks):
    found = explained(networks)
    frame = found.to_frame(errors=True)
    np.testing.assert_allclose(frame["error of a"], found.errors[:, 0])
    assert list(found.to_frame()) == ["base_value", *found.player_names, "prediction"]


def test_errors_of_another_shape_are_refused():
    found = explained(fitted())
    with pytest.raises(OptionError, match="of the same shape as values"):
        found.with_model_errors(np.zeros((2, 2)))
    with pytest.raises(OptionError, match="at least 0"):
        found.with_model_errors(np.full(found.values.shape, np.nan))


def test_refits_need_the_training_rows(tmp_path):
    explainer = fitted()
    explainer.save(tmp_path / "e.safetensors")
    loaded = cs.load_explainer(tmp_path / "e.safetensors", explainer.model)
    with pytest.raises(OptionError, match=r"Call fit\(X_train\) again"):
        loaded.estimate_model_errors(table(2).drop(columns="kind"))
    with pytest.raises(OptionError, match="n_refits"):
        explainer.estimate_model_errors(table(2).drop(columns="kind"), n_refits=1)


def test_errors_are_saved_with_the_explanation(networks, tmp_path):
    found = explained(networks)
    found.save(tmp_path / "e.parquet")
    loaded = cs.load_explanation(tmp_path / "e.parquet")
    assert (loaded.model_errors == found.model_errors).all()
    assert loaded.provenance.model_errors_from == "members"


def test_surrogate_regressors_report_how_far_they_differ():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 7)), columns=list("abcdefg"))
    explainer = fitted("regression_surrogate", frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = explainer.explain(frame[:3])
    assert len(explainer.parts_[0].approach.fitted_) == 4
    assert found.provenance.model_errors_from == "members"
    assert (found.std_errors == 0).all()
    assert (found.model_errors > 0).all()
