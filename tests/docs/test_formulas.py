"""Formulas of the pages: pictures without fonts that follow the theme, and MathML for screen readers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    pytest.importorskip("ziamath", reason="comes with the extra docs")
    spec = importlib.util.spec_from_file_location("condshap_docs_conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("tex", [r"\frac{1}{N} \sum_{i} x_i", r"p(x_{\overline{S}} \mid x_S)", r"\sqrt{2}"])
def test_formulas_take_the_colour_of_the_text_and_need_no_font(conf, tex):
    drawn = conf._picture(tex, inline=False)
    assert set(re.findall(r'fill="([^"]*)"', drawn)) <= {"currentColor", "none"}
    assert set(re.findall(r'stroke="([^"]*)"', drawn)) <= {"currentColor", "none"}
    picture, spoken = drawn.split("</svg>")
    assert "<text" not in picture
    assert 'aria-hidden="true"' in picture
    assert "<math" in spoken


def test_the_bar_over_a_letter_is_drawn(conf):
    def parts(tex: str) -> int:
        picture = conf._picture(tex, inline=True).split("</svg>")[0]
        return picture.count("<path") + picture.count("<rect")

    assert parts(r"\overline{S}") > parts("S")
