"""Commands that show explanation files: pictures and reports, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import condshap
from condshap.cli import app

STARTS = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def _model(X: pd.DataFrame) -> np.ndarray:
    return np.column_stack([X["size"] + 2 * (X["colour"] == "red"), X["mass"] * X["size"]])


def _table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    colours = pd.Categorical(rng.choice(["blue", "red"], n), categories=["blue", "red"])
    return pd.DataFrame({"size": rng.normal(size=n), "mass": rng.normal(size=n), "colour": colours})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Explanations of one output (a, b), of two outputs, of other rows, of fewer rows, and of other columns."""
    where = tmp_path_factory.mktemp("reports")
    train, rows = _table(80, 0), _table(9, 1)

    def save(name: str, X: pd.DataFrame = rows, approach: str = "independence", output: int | None = 0) -> None:
        condshap.explain(_model, train, X, approach=approach, output=output).save(where / f"{name}.parquet")

    save("a")
    save("b", approach="regression_separate")
    save("again")
    save("two", output=None)
    save("other", X=_table(9, 2))
    save("fewer", X=rows[:4])
    numbers = train[["size", "mass"]]
    one = condshap.explain(lambda X: X["size"], numbers, numbers[:9], approach="independence")
    one.save(where / "columns.parquet")
    train.to_csv(where / "train.csv", index=False)
    return where


def _run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def _message(result) -> str:
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.fixture
def drawn(monkeypatch):
    """Axes that commands draw: they stay readable after their figure is closed."""
    from condshap import plots

    found = {}

    def follow(name: str):
        draw = getattr(plots, name)

        def wrapped(*arguments, **options):
            found[name] = draw(*arguments, **options)
            found["options"] = options
            return found[name]

        wrapped.__name__ = name
        monkeypatch.setattr(plots, name, wrapped)

    for name in ("bar", "waterfall", "beeswarm", "scatter", "force", "heatmap", "compare", "msev", "facet"):
        follow(name)
    return found


@pytest.mark.parametrize("suffix", STARTS)
@pytest.mark.parametrize("kind", ["bar", "waterfall", "beeswarm", "force", "heatmap", "compare", "msev"])
def test_every_kind_is_drawn_to_every_format(folder: Path, tmp_path: Path, kind: str, suffix: str) -> None:
    out = tmp_path / "new" / f"picture{suffix}"
    result = _run("plot", folder / "a.parquet", "--kind", kind, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"Written: {out}\n"
    assert out.read_bytes().startswith(STARTS[suffix])


def test_scatter_gets_its_features(folder: Path, tmp_path: Path, drawn) -> None:
    options = ("--kind", "scatter", "--feature", "size", "--color", "colour", "--out", tmp_path / "x.png")
    assert _run("plot", folder / "a.parquet", *options).exit_code == 0
    explanation = condshap.load_explanation(folder / "a.parquet")
    points = np.vstack(
        [np.asarray(part.get_offsets()) for part in drawn["scatter"].collections if len(part.get_offsets())]
    )
    np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(explanation.data["size"]))
    assert drawn["options"]["color"] == "colour"


def test_bars_of_a_row_and_of_all_rows_are_the_apis(folder: Path, tmp_path: Path, drawn) -> None:
    explanation = condshap.load_explanation(folder / "a.parquet")
    for option, wanted in (
        (("--row", 4), explanation.values[4]),
        (("--row", 1, "--row", 3), np.abs(explanation.values[[1, 3]]).mean(axis=0)),
        ((), np.abs(explanation.values).mean(axis=0)),
    ):
        assert _run("plot", folder / "a.parquet", "--kind", "bar", *option, "--out", tmp_path / "x.png").exit_code == 0
        found = [patch.get_width() for patch in drawn["bar"].patches]
        np.testing.assert_allclose(np.sort(found), np.sort(wanted))


def test_comparisons_name_approaches_or_files_where_these_repeat(folder: Path, tmp_path: Path, drawn) -> None:
    for kind in ("compare", "msev"):
        for second, names in (("b", ["independence", "regression_separate"]), ("again", ["a", "again"])):
            files = (folder / "a.parquet", folder / f"{second}.parquet")
            assert _run("plot", *files, "--kind", kind, "--out", tmp_path / "x.png").exit_code == 0
            drawn[kind].figure.canvas.draw()
            legend = drawn[kind].get_legend()
            texts = [text.get_text() for text in legend.get_texts()] if legend else []
            texts += [text.get_text() for text in drawn[kind].get_xticklabels() + drawn[kind].get_yticklabels()]
            assert set(names) <= set(texts), kind


def test_one_of_several_outputs_is_chosen_by_name_or_position_or_all_are_drawn(folder, tmp_path, drawn) -> None:
    files = (folder / "two.parquet", "--kind", "bar", "--out", tmp_path / "x.png")
    explanation = condshap.load_explanation(folder / "two.parquet")
    for given in ("output_1", "1"):
        assert _run("plot", *files, "--output", given).exit_code == 0
        found = [patch.get_width() for patch in drawn["bar"].patches]
        np.testing.assert_allclose(np.sort(found), np.sort(np.abs(explanation.values[:, :, 1]).mean(axis=0)))
    assert _run("plot", *files, "--facet").exit_code == 0
    assert len(drawn["facet"]) == 2
    refused = _run("plot", *files)
    assert refused.exit_code == 1
    assert "a bar plot shows one output, got 2: ['output_0', 'output_1']. Choose one" in _message(refused)
    assert _run("plot", folder / "two.parquet", "--kind", "msev", "--out", tmp_path / "x.png").exit_code == 0


def test_no_figure_stays_open(folder: Path, tmp_path: Path) -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    for more in ((), ("--facet",)):
        files = (folder / "a.parquet", "--kind", "bar", *more, "--out", tmp_path / "x.png")
        assert _run("plot", *files).exit_code == 0
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("a", "--kind", "violin"), "'violin' is not one of 'bar', 'waterfall'"),
        (("a", "b", "--kind", "bar"), "--kind bar takes one file, got 2; for several use compare or msev"),
        (("a", "--kind", "bar", "--feature", "size"), "--feature: works only with --kind scatter"),
        (("a", "--kind", "msev", "--row", "1"), "--row: works only with --kind bar, waterfall, force, compare"),
        (("a", "--kind", "bar", "--by", "size"), "--by: works only with --kind msev"),
        (("a", "--kind", "msev", "--max-features", "5"), "--max-features: works only with --kind bar"),
        (("a", "--kind", "scatter"), "--feature: is required by --kind scatter"),
        (
            ("a", "--kind", "waterfall", "--row", "1", "--row", "2"),
            "--row: must be given only once with --kind waterfall",
        ),
        (("two", "--kind", "bar", "--facet", "--output", "1"), "--facet: draws all outputs"),
        (("a", "--kind", "bar", "--out", "x.gif"), "must end in .png, .pdf, .svg, got 'x.gif'"),
        (("a",), "Missing option '--kind'"),
    ],
)
def test_a_plot_that_is_asked_for_wrongly_leaves_with_2(folder: Path, options, words: str, tmp_path: Path) -> None:
    files = [folder / f"{name}.parquet" for name in options if name in {"a", "b", "two"}]
    rest = [option for option in options if option not in {"a", "b", "two"}]
    out = () if "--out" in rest else ("--out", tmp_path / "x.png")
    result = _run("plot", *files, *rest, *out)
    assert result.exit_code == 2
    assert words in _message(result)
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("a", "--kind", "waterfall", "--row", "99"), "row must be a position below 9"),
        (("a", "--kind", "scatter", "--feature", "nose"), "feature must be one of ['size', 'mass', 'colour']"),
        (("two", "--kind", "bar", "--output", "nose"), "output must be one of"),
        (("nowhere", "--kind", "bar"), "an explanation must be an existing file"),
        (
            ("a", "other", "--kind", "compare"),
            "same rows, got rows that differ at [0, 1, 2, 3, 4, ... 4 more]",
        ),
        (("a", "fewer", "--kind", "msev"), "must be of the same rows, got 9 rows in"),
        (("a", "columns", "--kind", "msev"), "must have the same player names, got ['size', 'mass', 'colour'] in"),
        (("a", "two", "--kind", "compare"), "must have the same output names"),
    ],
)
def test_what_does_not_fit_gets_one_clear_message(folder: Path, options, words: str, tmp_path: Path) -> None:
    names = {"a", "b", "two", "other", "fewer", "columns", "nowhere"}
    files = [folder / f"{name}.parquet" for name in options if name in names]
    result = _run("plot", *files, *(option for option in options if option not in names), "--out", tmp_path / "x.png")
    assert result.exit_code == 1
    assert _message(result).startswith("Error:")
    assert words in _message(result)
    assert "Traceback" not in result.output


def test_places_that_cannot_be_written_to_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "folder.html").mkdir()
    for out in (tmp_path / "file" / "x.png", tmp_path / "folder.png", "/proc/x.png"):
        result = _run("plot", folder / "a.parquet", "--kind", "bar", "--out", out)
        assert result.exit_code == 1
        assert _message(result).startswith("Error:")
    for out in (tmp_path / "file" / "x.html", tmp_path / "folder.html", "/proc/x.html"):
        result = _run("report", folder / "a.parquet", "--out", out)
        assert result.exit_code == 1
        assert _message(result).startswith("Error:")


def test_report_is_a_page_about_all_files(folder: Path, tmp_path: Path) -> None:
    files = (folder / "a.parquet", folder / "b.parquet")
    options = ("--title", "Sizes & colours", "--train", folder / "train.csv", "--model-name", "my <model>")
    result = _run("report", *files, "--out", tmp_path / "new" / "page.html", *options, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"written": [str(tmp_path / "new" / "page.html")]}
    page = (tmp_path / "new" / "page.html").read_text()
    for words in ("Sizes &amp; colours", "independence", "regression_separate"):
        assert words in page
    assert "<model>" not in page


def test_report_takes_names_and_refuses_what_does_not_fit(folder: Path, tmp_path: Path) -> None:
    files = (folder / "a.parquet", folder / "b.parquet")
    out = ("--out", tmp_path / "page.html")
    assert _run("report", *files, *out, "--name", "plain", "--name", "regressed").exit_code == 0
    page = (tmp_path / "page.html").read_text()
    assert "regressed" in page
    wrong = _run("report", *files, *out, "--name", "plain")
    assert wrong.exit_code == 2
    assert "must be given once per file, got 1 for 2" in _message(wrong)
    assert _run("report", *files, "--out", tmp_path / "page.pdf").exit_code == 2
    assert _run("report").exit_code == 2
    wrong = _run("report", folder / "a.parquet", folder / "other.parquet", *out)
    assert wrong.exit_code == 1
    assert "explanations must be of the same rows" in _message(wrong)


def test_the_entry_point_draws_and_reports(folder: Path, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("condshap")
    for words in (
        ["plot", folder / "a.parquet", "--kind", "heatmap", "--out", tmp_path / "x.svg", "--json"],
        ["report", folder / "a.parquet", "--out", tmp_path / "x.html", "--json"],
    ):
        done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        (written,) = json.loads(done.stdout)["written"]
        assert Path(written).stat().st_size > 1000


def test_rows_with_gaps_are_the_same_rows(tmp_path: Path) -> None:
    train, rows = _table(80, 0), _table(9, 1)
    for table in (train, rows):
        table["colour"] = table["colour"].astype("str")
        table.loc[[1, 4], "colour"] = None
        table.loc[[2, 4], "mass"] = np.nan

    def model(X: pd.DataFrame) -> np.ndarray:
        return X["size"] + (X["colour"] == "red") + X["mass"].fillna(0.0)

    for name, seed in (("a", 0), ("b", 1)):
        condshap.explain(model, train, rows, approach="independence", seed=seed).save(tmp_path / f"{name}.parquet")
    files = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    done = _run("report", *files, "--out", tmp_path / "gaps.html")
    assert done.exit_code == 0, done.output
    filled = rows.assign(colour=rows["colour"].fillna("red"))
    condshap.explain(model, train, filled, approach="independence").save(tmp_path / "b.parquet")
    refused = _run("report", *files, "--out", tmp_path / "other.html")
    assert refused.exit_code == 1
    assert "rows that differ at [1, 4]" in _message(refused)
