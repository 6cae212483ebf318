"""The page on designs shows code that runs and finds what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "designs.md"


def test_examples_run_and_the_first_one_prints_the_error_of_the_paper(capsys):
    names: dict[str, object] = {}
    first, *others = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(first, names)
    assert abs(float(names["error"]) - 0.3541) < 0.05
    assert not names["std_errors"].any()
    assert "EC1 0.3" in capsys.readouterr().out
    for code in others:
        exec(code, names)
    assert 0 < names["std_errors"].max() < 0.1
