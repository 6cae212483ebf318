"""Whatever can be refused is refused before anything is trained; what is finished is kept."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import condshap as cs
from condshap.approaches.categorical import Categorical
from condshap.approaches.copula import Copula
from condshap.approaches.ctree import Ctree
from condshap.approaches.empirical import Empirical
from condshap.approaches.gaussian import Gaussian
from condshap.approaches.independence import Independence
from condshap.approaches.regression_separate import RegressionSeparate
from condshap.approaches.regression_surrogate import RegressionSurrogate
from condshap.approaches.vaeac import VAEAC
from condshap.cli import app
from condshap.exceptions import CondShapError, CondShapWarning, ModelError, OptionError, SchemaError

RNG = np.random.default_rng(2)
TRAIN = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"])
ROWS = TRAIN.iloc[:4]
GAPPY = TRAIN.mask(RNG.random(TRAIN.shape) < 0.1)


class Slow(Independence):
    """An approach whose training must not begin."""

    name = "slow"
    handles_missing = True

    def fit(self, X, schema, *, plan, seed):
        raise AssertionError("training has begun")


class Complete(Slow):
    """The same for rows without gaps."""

    name = "complete"
    handles_missing = False


class Broken(Independence):
    """An approach that fails in training."""

    name = "broken"

    def fit(self, X, schema, *, plan, seed):
        raise RuntimeError("no convergence")


def model(X):
    return np.nan_to_num(X["a"].to_numpy()) + np.nan_to_num(X["b"].to_numpy())


def nan_for_large(X):
    return np.where(X["a"].to_numpy() > 5, np.nan, X["a"].to_numpy())


def test_slow_approach_would_tell_if_it_was_trained():
    with pytest.raises(AssertionError, match="training has begun"):
        cs.explain(model, TRAIN, ROWS, approach=Slow())


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (ROWS[["a"]], SchemaError),
        (ROWS.assign(a="high"), SchemaError),
        (ROWS.assign(b=np.inf), SchemaError),
        (ROWS.iloc[:0], SchemaError),
        (ROWS.assign(a=9.0), ModelError),
        ("rows", SchemaError),
    ],
)
def test_rows_to_explain_are_looked_at_before_training(rows, error):
    with pytest.raises(error):
        cs.explain(nan_for_large, TRAIN, rows, approach=Slow())
    with pytest.raises(error):
        cs.compare(nan_for_large, TRAIN, rows, approaches=[Slow()])


def test_gaps_in_rows_are_refused_before_training():
    with pytest.raises(SchemaError, match="'complete' needs complete rows to explain"):
        cs.explain(model, TRAIN, GAPPY, approach=Complete())


@pytest.mark.parametrize(
    "options", [{"base_value": [1.0, 2.0]}, {"n_samples": 0}, {"output": 3}, {"groups": {"g": ["a"]}}]
)
def test_options_are_refused_before_training(options):
    with pytest.raises(CondShapError):
        cs.Explainer(model, approach=Slow(), **options).fit(TRAIN)


def test_model_that_fails_on_a_training_row_is_refused_before_training():
    with pytest.raises(ModelError, match="must return finite numbers"):
        cs.Explainer(nan_for_large, approach=Slow()).fit(TRAIN.assign(a=[*TRAIN["a"][:-1], 9.0]))


WRONG = [
    Gaussian(covariance="none"),
    Gaussian(covariance=np.eye(2)),
    Gaussian(mean=[0.0]),
    Copula(margins="none"),
    Copula(covariance="none"),
    Empirical(sigma=0.0),
    Empirical(covariance=np.eye(2)),
    Ctree(mincriterion=2.0),
    Ctree(minsplit=[1]),
    RegressionSeparate(regressor="linear"),
    RegressionSurrogate(n_coalitions_per_row=100),
    VAEAC(epochs=0),
    VAEAC(fill_missing="maybe"),
    VAEAC(support={"z": (0, 1)}),
    VAEAC(masking="by_size", size_probabilities=(0.5, 0.5)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_options_of_every_approach_are_refused_before_another_one_is_trained(wrong):
    with pytest.raises(CondShapError):
        cs.Explainer(model, approach=[Slow(), wrong]).fit(TRAIN)
    with pytest.raises(CondShapError):
        cs.compare(model, TRAIN, ROWS, approaches=[Slow(), wrong])


def test_options_of_categorical_are_refused_before_training():
    labels = pd.DataFrame({"a": list("uvuv") * 15, "b": list("pqqp") * 15, "c": list("xxyy") * 15})
    for wrong in (Categorical(epsilon=0.0), Categorical(joint_table=labels)):
        with pytest.raises(CondShapError):
            cs.compare(lambda X: np.zeros(len(X)), labels, labels[:2], approaches=[Slow(), wrong])


def test_compare_refuses_an_unfit_approach_before_another_one_is_trained():
    with pytest.raises(SchemaError, match="'ctree' needs complete training rows"):
        cs.compare(model, GAPPY, ROWS, approaches=[Slow(), "ctree"])
    with pytest.raises(OptionError, match="level must be a number between 0 and 1, got 95"):
        cs.compare(model, TRAIN, ROWS, approaches=[Slow()], level=95)


def test_compare_keeps_what_is_finished():
    with pytest.warns(CondShapWarning, match="'broken' failed, the others are kept: RuntimeError: no convergence"):
        found = cs.compare(model, TRAIN, ROWS, approaches=["independence", Broken(), "gaussian"], n_samples=None)
    assert found["approach"].tolist() == ["independence", "broken", "gaussian"]
    assert found["msev"].isna().tolist() == [False, True, False]
    with pytest.raises(RuntimeError, match="no convergence"):
        cs.compare(model, TRAIN, ROWS, approaches=[Broken()])


def test_one_call_gives_the_numbers_and_model_rows_of_two():
    calls = []

    def counted(X):
        calls.append(len(X))
        return model(X)

    one = cs.explain(counted, GAPPY, GAPPY[:5], approach="independence", seed=3)
    in_one, calls[:] = sum(calls), []
    two = cs.Explainer(counted, approach="independence", seed=3).fit(GAPPY).explain(GAPPY[:5])
    np.testing.assert_array_equal(one.values, two.values)
    assert one.value_table.n_evaluations == two.value_table.n_evaluations
    assert in_one == sum(calls)


@pytest.fixture
def files(tmp_path):
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.iloc[:, :2].to_csv(tmp_path / "wrong.csv", index=False)
    joblib.dump(LinearRegression().fit(TRAIN, TRAIN["a"]), tmp_path / "model.joblib")
    return tmp_path


def run(files, command, rows, out, *more):
    given = ["--model", files / "model.joblib", "--trust-model", "--train", files / "train.csv", "--rows", files / rows]
    return CliRunner().invoke(app, [command, *map(str, [*given, "--out", files / out, *more])])


def test_command_line_looks_at_rows_before_training(files, monkeypatch):
    monkeypatch.setattr(Independence, "fit", Slow.fit)
    for command, out in (("explain", "out.parquet"), ("compare", "out")):
        found = run(files, command, "wrong.csv", out, "--approach", "independence")
        assert found.exit_code == 1
        assert "but lack ['c']" in found.stderr


def test_command_line_keeps_what_is_finished(files, monkeypatch):
    monkeypatch.setattr(Gaussian, "fit", Broken.fit)
    chosen = [word for name in ("independence", "gaussian", "copula") for word in ("--approach", name)]
    found = run(files, "compare", "rows.csv", "out", *chosen, "--json")
    assert found.exit_code == 1
    assert "Error: approach 'gaussian' failed, the others are kept: RuntimeError: no convergence" in found.stderr
    assert list(json.loads(found.stdout)["failed"]) == ["gaussian"]
    assert pd.read_csv(files / "out" / "comparison.csv")["approach"].tolist() == ["independence", "copula"]
    assert len(cs.load_explanation(files / "out" / "copula.parquet")) == 4


def test_command_line_keeps_what_is_finished_when_it_is_stopped(files, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Gaussian, "fit", stop)
    found = run(files, "compare", "rows.csv", "out", "--approach", "independence", "--approach", "gaussian")
    assert found.exit_code != 0
    assert pd.read_csv(files / "out" / "comparison.csv")["approach"].tolist() == ["independence"]
