"""The page on studies shows code that runs, and names every study and option."""

import re
from pathlib import Path

from condshap.studies.commands import make_parser
from condshap.studies.running.catalogue import STUDIES

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"


def test_the_example_runs_and_finds_what_everyone_knows():
    names: dict[str, object] = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(code, names)
    found = {
        (key.cell, key.method, key.repetition): one.ec1 for key, one in names["Store"](names["store"]).read().items()
    }
    assert len(found) == 2 * 3 * 2
    assert names["failures"] == ()
    cell, tree = "mixed M4 rho=0.8 N=200 rows=20", "condshap.approaches.ctree.Ctree:minsplit=30"
    assert all(found[cell, tree, r] < found[cell, "independence", r] for r in (0, 1))


def test_every_study_is_named():
    assert set(re.findall(r"^\| `([a-z-]+)`", PAGE.read_text(), flags=re.MULTILINE)) == set(STUDIES)


def test_commands_of_the_page_can_be_parsed():
    lines = re.findall(r"^\$ condshap study (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        make_parser("condshap study").parse_args(line.split())
