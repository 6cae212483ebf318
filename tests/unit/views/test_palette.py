"""One palette for plots, notebook and report: signs can be read, and nothing else looks like a sign."""

from __future__ import annotations

import colorsys
import re
from importlib.resources import files

import pytest

from condshap.views.palette import APPROACHES, CYCLE, LOWERS, NEUTRAL, RAISES

STYLE = (files("condshap.reporting") / "assets" / "page.css").read_text(encoding="utf-8")
THEMES = {
    "light": re.search(r":root \{(.*?)\}", STYLE, re.S),
    "dark": re.search(r':root\[data-theme="dark"\] \{(.*?)\}', STYLE, re.S),
    "dark, by the system": re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', STYLE, re.S),
}
PAIRS = [
    *[(ink, ground) for ink in ("ink", "muted", "plus", "minus", "accent") for ground in ("bg", "surface", "soft")],
    *[(ink, "chosen") for ink in ("ink", "plus", "minus", "accent")],
    ("ink", "warn"), ("muted", "warn"), ("accent", "warn"), ("ink", "fine"),
]  # fmt: skip


def colours_of(theme: str) -> dict[str, str]:
    found = THEMES[theme]
    assert found is not None
    return dict(re.findall(r"--([\w-]+): (#\w{6})", found[1]))


def brightness(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted(brightness(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_texts_of_the_report_have_a_contrast_of_at_least_4_5(theme):
    colours = colours_of(theme)
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in PAIRS}
    assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}


def test_the_contrast_of_black_on_white_is_21():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_both_ways_to_the_dark_theme_are_the_same():
    by_system, chosen = colours_of("dark, by the system"), colours_of("dark")
    assert {**chosen, **by_system} == chosen


def test_signs_are_the_same_in_plots_and_report_and_can_be_read_as_text():
    light = colours_of("light")
    assert (light["plus"], light["minus"], light["muted"]) == (RAISES.lower(), LOWERS.lower(), NEUTRAL.lower())
    assert min(contrast(colour, "#FFFFFF") for colour in (RAISES, LOWERS)) >= 4.5


def hue(colour: str) -> tuple[float, float]:
    """Hue in degrees and saturation."""
    h, _, s = colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    return 360 * h, s


@pytest.mark.parametrize("colour", sorted({*APPROACHES.values(), *CYCLE}))
def test_no_approach_looks_like_a_sign(colour):
    own, saturation = hue(colour)
    for sign in (RAISES, LOWERS):
        apart = abs(own - hue(sign)[0])
        assert min(apart, 360 - apart) > 20 or saturation < 0.5, (colour, sign)
    assert contrast(colour, "#FFFFFF") > 2.4, "in sight as a bar or a line"
