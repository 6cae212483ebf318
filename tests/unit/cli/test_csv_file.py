"""CSV files of the command line: what the user wrote is what is explained."""

from __future__ import annotations

import io
import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

import condshap as cs
from condshap.cli import app
from condshap.cli.csv_file import text_columns
from condshap.cli.files import read_table
from condshap.exceptions import SchemaError

WORDS = ["None", "null", "NA", "NaN", "nan", "n/a", "N/A", "<NA>", "NULL", "#N/A"]


def written(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_words_for_missing_values_are_text_in_a_column_of_text(tmp_path, capsys):
    cells = [*WORDS, "yes", ""]
    path = written(tmp_path, "s,x\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells)))
    found = read_table(path)
    assert found["s"].astype(object).tolist()[:-1] == cells[:-1]
    assert found["s"].isna().tolist() == [*[False] * (len(cells) - 1), True]
    assert isinstance(found["s"].dtype, pd.CategoricalDtype)
    assert "Note: column 's'" in capsys.readouterr().err


@pytest.mark.parametrize("word", [*WORDS, ""])
def test_words_for_missing_values_are_gaps_among_numbers_and_booleans(tmp_path, word):
    found = read_table(written(tmp_path, f"x,b\n1.5,True\n{word},{word}\n2,False\n"))
    assert found["x"].dtype == np.float64
    assert found.isna().to_numpy().tolist() == [[False, False], [True, True], [False, False]]
    assert found["b"].dropna().tolist() == [True, False]


def test_column_of_nothing_but_such_words_is_read_as_in_training_or_refused(tmp_path):
    path = written(tmp_path, "s,x\nNA,1\nnull,2\n")
    with pytest.raises(SchemaError, match=r"column 's' of .* must have a cell that shows .* got only \['NA', 'null'\]"):
        read_table(path)
    assert read_table(path, used=["x"])["x"].tolist() == [1, 2]  # what nobody uses need not be clear
    assert read_table(path, {"s": True})["s"].tolist() == ["NA", "null"]
    assert read_table(path, {"s": False})["s"].isna().all()


def test_text_of_training_that_looks_like_numbers_stays_text(tmp_path):
    train = read_table(written(tmp_path, "s,x\n01,1\nA2,2\nTrue,3\n"))
    rows = read_table(written(tmp_path, "s,x\n01,1\n", "rows.csv"), text_columns(train))
    assert rows["s"].tolist() == ["01"]
    schema = cs.FeatureSchema.learn(train)
    assert text_columns(schema) == text_columns(train) == {"s": True, "x": False}


def test_numbers_are_those_that_are_written_to_the_last_bit(tmp_path):
    numbers = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-10, 10).repeat(100)
    path = written(tmp_path, pd.DataFrame({"x": numbers}).to_csv(index=False))
    np.testing.assert_array_equal(read_table(path)["x"], numbers)


def test_rows_longer_than_the_header_are_refused(tmp_path):
    with pytest.raises(SchemaError, match="must have a name for every column"):
        read_table(written(tmp_path, "a,b\n1,2,3\n4,5,6\n"))


def test_explained_prediction_is_the_models_own(tmp_path):
    rng = np.random.default_rng(1)
    text = "s,x\n" + "".join(f"{rng.choice(['None', 'NA', 'yes'])},{x:.3f}\n" for x in rng.normal(size=60))
    train = pd.read_csv(io.StringIO(text), keep_default_na=False)
    y = train["s"].map({"None": 5.0, "NA": -3.0, "yes": 0.0}) + train["x"]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["s"]), remainder="passthrough")
    model = make_pipeline(encode, LinearRegression()).fit(train, y)
    joblib.dump(model, tmp_path / "model.joblib")
    rows = train.iloc[[int((train["s"] == "None").argmax())]]
    given = {"model": "model.joblib", "train": "train.csv", "rows": "rows.csv"}
    (tmp_path / "train.csv").write_text(text)
    (tmp_path / "rows.csv").write_text(rows.to_csv(index=False))
    for command, extra in (
        ("fit", ["--out", "f"]),
        ("explain", ["--out", "a.parquet"]),
        ("explain", ["--out", "b.parquet"]),
    ):
        files = {**given, "explainer": "f"} if extra[-1] == "b.parquet" else given
        left_out = {"fit": {"rows"}, "explain": {"train"} if "explainer" in files else set()}[command]
        words = [w for name, file in files.items() if name not in left_out for w in (f"--{name}", str(tmp_path / file))]
        approach = [] if "explainer" in files else ["--approach", "independence"]
        out = ["--out", str(tmp_path / extra[1])]
        done = CliRunner().invoke(app, [command, *words, *approach, *out, "--trust-model", "--json"])
        assert done.exit_code == 0, done.output
        json.loads(done.stdout)
    for name in ("a.parquet", "b.parquet"):
        np.testing.assert_allclose(cs.load_explanation(tmp_path / name).predictions, model.predict(rows), rtol=1e-12)


def test_integers_beyond_64_bits_are_refused_in_our_words(tmp_path):
    table = read_table(written(tmp_path, f"x,s\n{10**29},u\n2,v\n"))
    with pytest.raises(SchemaError, match=r"column 'x' must hold integers below 2\*\*53"):
        cs.FeatureSchema.learn(table)
