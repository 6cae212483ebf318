"""Generated Markdown can be read in an editor: paragraphs and items are filled, all else stays as it is."""

from __future__ import annotations

import pytest

from condshap.studies.pages.markdown import WIDTH, markdown, wrapped

LONG = "a cow " * 40


def test_a_table_has_heads_a_rule_and_lines():
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@pytest.mark.parametrize(
    "kept", [f"| {LONG} |", f"# {LONG}", f"```\n{LONG}\n\n- {LONG}\n```", f"<!-- {LONG} -->", "x" * 200]
)
def test_what_is_not_prose_stays(kept):
    assert wrapped(f"{kept}\n") == f"{kept}\n"


def test_paragraphs_and_items_lose_no_word_and_keep_their_indents():
    text = f"{LONG}\n\n- {LONG}\n  - {LONG}\n1. {LONG}\nend\n\nterm\n: {LONG}\n\nshort\nlines\n"
    made = wrapped(text)
    assert made.split() == text.split()
    assert max(map(len, made.splitlines())) <= WIDTH
    starts = {line[: len(line) - len(line.lstrip())] for line in made.splitlines()}
    assert starts == {"", "  ", "    ", "   "}
    assert made.endswith("\n\nshort\nlines\n")
    assert wrapped(made) == made


@pytest.mark.parametrize("sign", ["-", "+", "*", "1.", "#", ">", "=", ":"])
def test_no_line_begins_with_a_sign_that_would_begin_another_block(sign):
    for n in range(WIDTH - 4, WIDTH + 1):
        made = wrapped(f"{'x' * n} {sign} y")
        assert made.replace("\n", " ") == f"{'x' * n} {sign} y"
        assert not any(line.startswith(sign) for line in made.splitlines())


def test_short_code_stays_on_one_line():
    for n in range(WIDTH - 30, WIDTH):
        assert "`study table s`" in wrapped(f"{'x' * n} made by `study table s` and more")
