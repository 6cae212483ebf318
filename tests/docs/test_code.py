"""Every block of code in the README and the documentation runs, and prints what the page says it prints.

Blocks ``python`` of a page run one after the other in one namespace, commands of ``console`` blocks in the same folder.
A block ``text`` that directly follows one of them is what it prints, with ``...`` for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import tomllib
import warnings
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
import skops.io
import typer.main
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from condshap.cli import app
from condshap.studies.commands import make_parser

ROOT = Path(__file__).parents[2]
SKIPPED = {"_build", "auto_examples", "results", "examples"}  # built, made by the studies, or run by the gallery
PAGES = [ROOT / "README.md"] + [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if not SKIPPED & set(page.relative_to(ROOT / "docs").parts)
]
KINDS = {"python", "console", "text"}
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    kind: str
    text: str
    line: int
    follows: bool  # nothing but blank lines since the block before


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found, end = [], 0
    for match in re.finditer(r"^```(\S*)[^\n]*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        between = text[end : match.start()]
        found.append(Block(match[1], match[2], text[: match.start()].count("\n") + 2, not between.strip()))
        end = match.end()
    return found


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that commands on the pages are about; the working directory."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "80")  # as wide as the pages show it
    X = pd.DataFrame(
        {"age": range(60), "weight": [(7 * i) % 13 for i in range(60)], "size": [i**0.5 for i in range(60)]}
    )
    X = X.astype(float)
    X.to_csv("train.csv", index=False)
    X[:3].to_csv("rows.csv", index=False)
    X[:3].assign(y=X["age"]).to_csv("rows_with_y.csv", index=False)
    skops.io.dump(LinearRegression().fit(X, X["age"] + X["weight"]), "model.skops")
    yield tmp_path
    plt.close("all")


def run_python(block: Block, names: dict[str, object], page: Path) -> str:
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")  # so that errors name the page's line
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def run_console(block: Block) -> str:
    lines = block.text.splitlines()
    assert all(line.startswith("$ ") for line in lines), f"a console block holds commands only, got {lines}"
    return "".join(run_command(shlex.split(line[2:])) for line in lines)


def run_command(words: list[str]) -> str:
    """Run a command of condshap; of those that take minutes, of make and of pip, look whether they can be run."""
    words = [
        found for word in words for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]  # as a shell does
    program, *rest = words
    if program == "make":
        targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert targets
        assert set(rest) <= set(targets[1].split()), words
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        wanted = re.fullmatch(r"\.(?:\[(.*)\])?", words[2])
        assert wanted
        assert not wanted[1] or set(wanted[1].split(",")) <= set(extras), words
    elif words[:2] == ["condshap", "study"] and rest[1] != "list":
        make_parser("condshap study").parse_args(rest[1:])
    elif words[:2] == ["condshap", "demo"]:
        command = typer.main.get_command(app).commands["demo"]
        command.make_context("demo", rest[1:])
    else:
        assert program == "condshap", f"do not know how to try {words}"
        result = CliRunner().invoke(app, rest)
        assert result.exit_code == 0, result.output
        return result.output
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_code_of_the_page_runs_and_prints_what_is_shown(page, folder):
    names: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=DeprecationWarning)
        warnings.simplefilter("error", category=FutureWarning)
        for block in blocks(page):
            if block.kind == "python":
                printed = run_python(block, names, page)
            elif block.kind == "console":
                printed = run_console(block)
            elif block.kind == "text" and block.follows and printed is not None:
                alike = doctest.OutputChecker().check_output(block.text, printed, LIKE)
                assert alike, f"{name(page)}, line {block.line}, shows\n{block.text}\nbut got\n{printed}"
                printed = None
    assert Path.cwd() == folder


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_block_of_the_page_escapes(page):
    kinds = {block.kind for block in blocks(page)}
    assert {kind for kind in kinds if not kind.startswith("{")} <= KINDS
    assert page.read_text().count("```") == 2 * len(blocks(page))


def test_all_pages_are_there():
    assert {"README.md", "docs/index.md", "docs/quickstart.md", "docs/guide/mixed_data.md"} <= {name(p) for p in PAGES}
    assert sum(block.kind == "python" for page in PAGES for block in blocks(page)) >= 30


EXAMPLES = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_example_of_the_gallery_runs_and_draws(example, folder):
    import matplotlib.pyplot as plt

    exec(compile(example.read_text(), str(example), "exec"), {"__name__": "__main__"})
    assert plt.get_fignums()


def test_gallery_has_eight_examples_with_titles():
    assert len(EXAMPLES) >= 8
    for path in EXAMPLES:
        assert re.match(r'"""\n(\S.*)\n(=+)\n', path.read_text()), path.name


def test_links_of_the_readme_lead_somewhere_and_its_pictures_are_small():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert len(links) >= 10
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link
    pictures = [ROOT / link for link in links if link.endswith(".png")]
    assert len(pictures) == 2
    assert all(path.stat().st_size < 150_000 for path in pictures)


def test_pages_of_the_benchmarks_that_docs_name_are_there():
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py"), ROOT / "README.md"]
    named = {path for page in pages for path in re.findall(r"\bbenchmarks/[\w/]+\.md\b", page.read_text())}
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
