"""Losses and log-odds on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression, LogisticRegression
from typer.testing import CliRunner

import condshap as cs
from condshap.cli import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("loss")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    table["y"] = table["a"] + 2 * table["b"] + rng.normal(size=80)
    table["kind"] = np.where(table["y"] > 0, "up", "down")
    table.to_csv(where / "table.csv", index=False)
    table[:10].to_csv(where / "rows.csv", index=False)
    table[["a", "b", "c"]].to_csv(where / "features.csv", index=False)
    X = table[["a", "b", "c"]]
    skops.io.dump(LinearRegression().fit(X, table["y"]), where / "linear.skops")
    skops.io.dump(LogisticRegression().fit(X, table["kind"]), where / "classes.skops")
    return where


def run(folder, *arguments, code=0):
    words = [str(folder / word) if "." in word else word for word in arguments]
    found = CliRunner().invoke(app, ["explain", *words])
    assert found.exit_code == code, found.output
    return found


def common(model="linear.skops", train="table.csv"):
    return ["--model", model, "--train", train, "--rows", "rows.csv", "--approach", "gaussian", "--out", "out.parquet"]


def test_loss_of_a_column_is_explained(folder):
    found = run(folder, *common(), "--loss", "squared_error", "--target", "y")
    assert "Explained the squared error of 10 rows" in found.output
    assert "lowers the loss by" in found.output
    loss = cs.load_explanation(folder / "out.parquet")
    assert isinstance(loss, cs.LossExplanation)
    assert loss.player_names == ("a", "b", "c")
    told = json.loads(run(folder, *common(), "--loss", "squared_error", "--target", "y", "--json").stdout)
    np.testing.assert_allclose(told["importance"], loss.importance)
    assert told["loss"] == "squared_error"


def test_training_rows_need_no_answers(folder):
    run(folder, *common(train="features.csv"), "--loss", "absolute_error", "--target", "y")
    assert cs.load_explanation(folder / "out.parquet").loss == "absolute_error"


def test_labels_of_a_classifier_are_read_from_their_column(folder):
    run(folder, *common("classes.skops"), "--loss", "log_loss", "--target", "kind")
    assert cs.load_explanation(folder / "out.parquet").losses.mean() < 0.7


def test_saved_explainer_explains_a_loss(folder):
    fit = ["fit", "--model", "linear.skops", "--train", "table.csv", "--approach", "gaussian", "--out", "e.safetensors"]
    words = [str(folder / word) if "." in word else word for word in fit]
    assert CliRunner().invoke(app, words).exit_code == 0
    arguments = [
        "--model",
        "linear.skops",
        "--explainer",
        "e.safetensors",
        "--rows",
        "rows.csv",
        "--out",
        "out.parquet",
    ]
    run(folder, *arguments, "--loss", "squared_error", "--target", "y")
    assert len(cs.load_explanation(folder / "out.parquet")) == 10


def test_file_of_losses_is_reported_and_drawn(folder):
    run(folder, *common(), "--loss", "squared_error", "--target", "y")
    for command in (
        ["report"],
        ["plot", "--kind", "bar"],
        ["plot", "--kind", "waterfall"],
        ["plot", "--kind", "beeswarm"],
    ):
        out = folder / ("out.html" if command == ["report"] else "out.png")
        found = CliRunner().invoke(app, [*command, str(folder / "out.parquet"), "--out", str(out)])
        assert found.exit_code == 0, found.output
        assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--loss", "squared_error"], "needs --target", 2),
        (["--target", "y"], "works only with --loss", 2),
        (["--loss", "huber", "--target", "y"], "huber", 2),
        (["--loss", "squared_error", "--target", "z"], "must be a column of", 1),
        (["--loss", "squared_error", "--target", "a"], "does not use", 1),
        (["--loss", "squared_error", "--target", "y", "--target-error", "1"], "is about predictions", 2),
        (["--loss", "log_loss", "--target", "y"], "needs a classifier", 1),
        (["--link", "logit"], "needs a classifier", 1),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder, arguments, message, code):
    found = run(folder, *common(), *arguments, code=code)
    assert message in " ".join(found.output.replace("│", " ").split())


def test_log_odds_are_explained_and_said(folder):
    found = run(folder, *common("classes.skops"), "--link", "logit", "--output", "up")
    assert "are log-odds" in found.output
    assert "MSEv" not in found.output
    assert cs.load_explanation(folder / "out.parquet").provenance.link == "logit"
    told = json.loads(run(folder, *common("classes.skops"), "--link", "logit", "--json").stdout)
    assert told["link"] == "logit"
    assert told["msev"] is None
