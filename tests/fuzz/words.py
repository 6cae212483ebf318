"""Words of the command line and cells of CSV files, as they should be or as somebody may write them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import skops.io
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import condshap as cs
from fuzz.options import FAST

RNG = np.random.default_rng(0)
TRAIN = pd.DataFrame({"x": RNG.normal(size=40), "n": RNG.integers(0, 5, 40), "s": RNG.choice(["u", "v"], 40)})

CELLS = [
    "", " ", "0", "1", "-3", "1.5", "1e5", "1e400", "-1e-400", "nan", "NaN", "NA", "None", "null", "inf",
    "-inf", "Infinity", "True", "false", "u", "v", "w", "'u'", '"u"', '"', '""', "'", ",", ";", "\t", "\n",
    "\r", "a,b", "1,5", "0x10", "1_000", "١", "½", "ü", "\ufeff", "\x00", "2020-01-01", "9" * 30, "u" * 5000,
    "=1+1", "#", "\\N", "-", "+", ".", "e", "9007199254740993", "1+2j", "TRUE ", " u",
]  # fmt: skip
NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "7",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "x",
    "",
    " 3",
    "0x1",
    "١",
    "auto",
    "--seed",
]
OPTIONS: dict[str, list[str]] = {
    "--approach": [*FAST, "independence", "independence", "ctree", "x", "", "Ctree"],
    "--categorical": ["n", "s", "x", "", "9", "0"],
    "--n-samples": NUMBERS,
    "--target-error": ["0.1", *NUMBERS],
    "--n-coalitions": ["auto", *NUMBERS],
    "--tolerance": ["0.1", *NUMBERS],
    "--max-coalitions": NUMBERS,
    "--base-value": NUMBERS,
    "--output": ["output", "0", "-1", "5", "name:output", "position:0", "position:x", "²", ""],
    "--additive": ["auto", "yes", "no", "maybe"],
    "--seed": NUMBERS,
    "--n-jobs": ["1", "0", "x", "1.5"],
    "--memory-budget": ["1KB", "1GiB", "0", "-1", "x", "1e3", "9" * 400],
}  # fmt: skip


@cache
def folder() -> Path:
    """A folder with a model, training rows and rows to explain; an explainer and an explanation of them."""
    where = Path(mkdtemp())
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["s"]), remainder="passthrough")
    table = TRAIN.astype({"s": "category"})
    model = make_pipeline(encode, LinearRegression()).fit(table, TRAIN["x"] + (TRAIN["s"] == "u"))
    skops.io.dump(model, where / "model.skops")
    TRAIN.to_csv(where / "train.csv", index=False)
    TRAIN[:3].to_csv(where / "rows.csv", index=False)
    explainer = cs.Explainer(model, approach="independence", check_draws=False).fit(table)
    explainer.save(where / "explainer")
    explainer.explain(table[:3]).save(where / "found.parquet")
    (where / "empty").write_bytes(b"")
    return where


@st.composite
def csv_files(draw) -> bytes:
    """A CSV file of rows to explain, of which some cells, names or bytes are others."""
    cells = [list(TRAIN.columns), *TRAIN[:3].astype(str).values.tolist()]
    for _ in range(draw(st.integers(0, 3))):
        row, column = draw(st.sampled_from([1, 2, 3, 1, 2, 3, 0])), draw(st.integers(0, 2))
        cells[row][column] = draw(
            st.one_of(st.sampled_from(CELLS), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
        )
    mark, end = (
        draw(st.sampled_from([*[","] * 9, ";", "\t"])),
        draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])),
    )
    quoted = draw(st.booleans())
    lines = [mark.join(_quoted(cell) if quoted else cell for cell in line) for line in cells]
    content = (end.join(lines) + end).encode(
        draw(st.sampled_from([*["utf-8"] * 9, "utf-8-sig", "utf-16"])), "surrogatepass"
    )
    if draw(st.integers(0, 5)) == 0:
        place = draw(st.integers(0, len(content)))
        content = content[:place] + draw(st.binary(max_size=3)) + content[place + draw(st.integers(0, 3)) :]
    return content


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@st.composite
def arguments(draw, out: Path) -> Sequence[str]:
    """Words of a command, most of which fit."""
    where = folder()
    names = ("model.skops", "train.csv", "rows.csv", "explainer", "found.parquet", "empty")
    files = [
        *(str(where / name) for name in names),
        str(where),
        "/nowhere/file",
        "",
        "\x01",
        "x" * 300,
    ]  # no process can be given a NUL
    command = draw(st.sampled_from(["explain", "explain", "explain", "fit", "compare", "report", "plot", "approaches"]))
    usual = {"--model": "model.skops", "--train": "train.csv", "--rows": "rows.csv"}
    words = [command]
    if command in {"explain", "fit", "compare"}:
        for name in ("--model", "--train", *(["--rows"] if command != "fit" else [])):
            is_usual = draw(st.integers(0, 11)) > 0
            words += [name, str(where / usual[name]) if is_usual else draw(st.sampled_from(files))]
        chosen = draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=3))
        for name in ["--approach", *(one for one in chosen if one != "--approach")]:
            words += [name, draw(st.sampled_from(OPTIONS[name]))]
        words.append("--no-check-draws")
    elif command in {"report", "plot"}:
        words += [draw(st.sampled_from([str(where / "found.parquet")] * 6 + files))]
        if command == "plot":
            kinds = ["bar", "waterfall", "beeswarm", "scatter", "force", "heatmap", "compare", "msev", "x"]
            words += ["--kind", draw(st.sampled_from(kinds))]
            for name in draw(
                st.lists(st.sampled_from(["--row", "--feature", "--color", "--output", "--max-features"]), max_size=2)
            ):
                words += [name, draw(st.sampled_from(["0", "2", "99", "-1", "x", "s", "", "12"]))]
    if command != "approaches":
        ending = {"plot": ".png", "report": ".html"}.get(command, ".parquet")
        words += [
            "--out",
            draw(
                st.sampled_from(
                    [f"{out}{ending}"] * 9 + [f"{out}.x", str(where), "", "/proc/\x01", "/proc/x/y" + ending]
                )
            ),
        ]
    if draw(st.booleans()):
        words.append("--json")
    return words
