"""The command line ends with 0, 1 or 2 and a message, whatever words, files and cells it gets; never with a traceback."""

from __future__ import annotations

import json
import warnings

import skops.io
from hypothesis import event, given
from hypothesis import strategies as st
from typer.testing import CliRunner

import condshap as cs
from condshap.cli import app
from condshap.cli.files import read_table
from condshap.exceptions import CondShapError
from fuzz.profiles import cases
from fuzz.promise import check_explanation
from fuzz.words import arguments, csv_files, folder


def run(words):
    """Run a command; its exit code and what it wrote."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = CliRunner().invoke(app, list(words))
    assert found.exception is None or isinstance(found.exception, SystemExit), repr(found.exception)
    assert found.exit_code in (0, 1, 2)
    assert found.exit_code == 0 or found.stderr.strip()
    assert "Traceback" not in found.output
    event(f"exit code {found.exit_code}")
    return found


@cases(short=30, long=1500)
@given(data=st.data())
def test_words(data, tmp_path_factory):
    out = tmp_path_factory.getbasetemp() / "fuzz-of-words"
    words = data.draw(arguments(out))
    found = run(words)
    if found.exit_code == 0 and "--json" in words:
        json.loads(found.stdout)
    if found.exit_code == 0 and words[0] == "explain":
        explanation = cs.load_explanation(words[words.index("--out") + 1])
        check_explanation(explanation, len(explanation))


@cases(short=30, long=1500)
@given(data=st.data())
def test_cells(data, tmp_path_factory):
    where, out = folder(), tmp_path_factory.getbasetemp() / "fuzz-of-cells.parquet"
    rows = tmp_path_factory.getbasetemp() / "fuzz-of-cells.csv"
    rows.write_bytes(data.draw(csv_files()))
    whole = data.draw(st.booleans())
    made = (
        ("--explainer", where / "explainer")
        if whole
        else ("--train", where / "train.csv", "--approach", "independence")
    )
    found = run(
        [str(word) for word in ("explain", "--model", where / "model.skops", "--rows", rows, "--out", out, *made)]
    )
    if found.exit_code == 0:
        explanation = cs.load_explanation(out)
        model = skops.io.load(where / "model.skops", trusted=skops.io.get_untrusted_types(file=where / "model.skops"))
        check_explanation(explanation, len(explanation), model.predict(explanation.data[["x", "n", "s"]]))


@cases(short=20, long=1500)
@given(content=csv_files())
def test_tables_of_cells(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzz-of-tables.csv"
    path.write_bytes(content)
    try:
        read_table(path)
    except CondShapError:
        event("refused")
