"""How the report reads: numbers as in Python, contrast in both themes, the best first, nothing hidden, all by keyboard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.keys import Keys

import condshap as cs
from browser.visiting import Visit
from condshap.explanation import Explanation
from condshap.numerics import readable

N_FEATURES = 16
NUMBERS = [
    0.0, -0.0, 1.0, -1.0, 7.0, 0.5, 2.5, -2.5, 0.125, 0.375, 1.005, 9.9996, 99.95, 999.96, 0.1 + 0.2, 1 / 3, -2 / 3,
    1999.0, -4101.0, 9999.0, 10000.0, 9999.5, 66530.0, 66530.2, 123456.789, 1234567.0, 12345678.9, 999999999.4, 1e9,
    2.4246e10, 1.2345e10, -8.7e9, 1e15, 123456789012345.0, 6.02e23, 1e-4, 9.99e-5, 1.5e-5, -2.5e-7, 1e-300, 5e-324, 1.7e308,
    float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
SHARED = [  # numbers side by side, their standard errors
    ([1.234, -0.5], []), ([66533.0, -4101.0], [4100.0, 900.0]), ([66533.0, 12.0], [4100.0, 0.0]), ([0.0, 0.0], [0.1, 0.2]),
    ([0.012, 0.003], [0.5, 0.6]), ([2.4e10, 1e3], [7e8, 1e2]), ([3e-6, 2e-22], []), ([1e-4, -9e-5], [1e-5, 2e-5]),
    ([250.0, 149.5], [100.0, 95.0]), ([999.6, 0.4], [0.0, 9.95]), ([0.91837, 0.66], [0.124, float("nan")]),
]  # fmt: skip
TICKS = [
    [0.0], [-0.5, 0.0, 0.5], [0.0, 2.5, 5.0], [1900.0, 1950.0, 2000.0], [-250000.0, 0.0, 250000.0], [0.0, 1e10, 2e10],
    [0.0, 1e-6, 2e-6], [-0.30000000000000004, -0.1, 0.1], [1000000.0, 1000000.5], [0.25, 0.5, 0.75], [9000.0, 10000.0],
    [10_000_000.05], [1000.0, 2000.0],
]  # fmt: skip


def three(X: pd.DataFrame) -> np.ndarray:
    return (
        100_000 * (X.to_numpy() @ 0.8 ** np.arange(N_FEATURES))
        + 30_000 * X.iloc[:, 0].to_numpy() * X.iloc[:, 1].to_numpy()
    )


@pytest.fixture(scope="module")
def explanations() -> list[Explanation]:
    rng = np.random.default_rng(3)
    names = [f"the measured width of leaf number {j:02d} in millimetres" for j in range(N_FEATURES)]
    X = pd.DataFrame(rng.normal(size=(160, N_FEATURES)) + rng.normal(size=(160, 1)), columns=names)
    X.index = pd.date_range("2024-01-01", periods=160)
    options = {"n_coalitions": 60, "n_samples": 20, "check_draws": False}
    return [cs.explain(three, X[:120], X[120:], approach=name, **options) for name in ("independence", "gaussian")]


@pytest.fixture(scope="module")
def page(explanations, tmp_path_factory) -> Path:
    return cs.report(explanations, tmp_path_factory.mktemp("look") / "report.html")


@pytest.fixture
def visit(browser, page):
    return lambda width=1280, at="": Visit(browser, page, width, at)


def in_page(page: Visit, function: str, calls: list[list]) -> list:
    """What a function of the page returns; JSON has neither NaN nor infinite numbers, so they travel as text."""
    script = (
        f"const open = (x) => Array.isArray(x) ? x.map(open) : typeof x === 'string' ? Number(x) : x;"
        f"return arguments[0].map((call) => {function}(...open(call)))"
    )

    def closed(x):
        if isinstance(x, list):
            return [closed(one) for one in x]
        if isinstance(x, float) and not np.isfinite(x):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(x)]
        return "-0" if isinstance(x, float) and x == 0 and np.signbit(x) else x

    return page.run(script, closed(calls))


def test_numbers_are_written_as_in_python(visit):
    page = visit()
    for digits in (2, 4, 6):
        calls = [[x, digits] for x in NUMBERS]
        assert in_page(page, "number", calls) == [readable.number(*call) for call in calls]
        assert in_page(page, "featureValue", calls) == [readable.feature_value(*call) for call in calls]
    for places in (-2, 0, 3, None):
        small = [x for x in NUMBERS if not abs(x) >= 1e15]  # toFixed is not meant for more
        found = in_page(page, "fixed", [[x, places, True] for x in small])
        assert found == [readable.fixed(x, places, signed=True) for x in small]
    shared = [[values, errors, digits] for values, errors in SHARED for digits in (3, 4)]
    assert in_page(page, "placesOf", shared) == [readable.places_of(*call) for call in shared]
    pairs = [[values[0], errors[0], 4] for values, errors in SHARED if errors]
    assert in_page(page, "estimate", pairs) == [readable.estimate(*pair) for pair in pairs]
    for of_feature in (False, True):
        calls = [[ticks, of_feature] for ticks in TICKS]
        assert in_page(page, "tickTexts", calls) == [
            readable.tick_texts(ticks, of_feature=of_feature) for ticks in TICKS
        ]


def test_the_report_opens_on_the_approach_with_the_smallest_msev(visit, explanations):
    best = min(range(2), key=lambda i: float(explanations[i].msev))
    assert best == 1
    page = visit()
    assert page.run("return document.getElementById('approach').selectedOptions[0].text") == "gaussian"
    cards = [x for x in page.every(".cards") if x.is_displayed()]
    assert len(cards) == 1
    assert readable.estimate(float(explanations[1].msev), explanations[1].msev.total_std_error()) in cards[0].text
    page.click("#tab-rows")
    assert page.one(".fall h2").text == "Row 2024-04-30, gaussian", "a day has no hour"


def test_waterfalls_lead_down_from_the_prediction_as_in_plots(visit):
    page = visit(at="#tab=rows")
    texts = page.texts(".fall .strong")
    assert texts[0] == "Prediction"
    assert texts[2] == "Base value"
    tops = page.run(
        "return Array.from(document.querySelectorAll('.fall .strong'), (x) => x.getBoundingClientRect().top)"
    )
    assert tops[0] < tops[2]


@pytest.mark.parametrize("width", [1280, 390])
def test_folded_players_have_a_whisker_and_are_unfolded_by_a_key(visit, explanations, width):
    page = visit(width, at="#tab=rows")
    assert len(page.every(".fall .step")) == len(page.every(".fall .whisker")) == 13
    assert page.one(".unfold").text.startswith("4 others")
    page.run("document.querySelector('.unfold').focus()")
    page.press(Keys.ENTER)
    assert len(page.every(".fall .step")) == N_FEATURES
    page.press(Keys.ENTER)  # the focus is on the button that folds them again
    assert page.one(".unfold").is_displayed()
    sizes = np.abs(explanations[1].values[0])
    folded = float(page.texts(".fall .phi")[-1].replace("−", "-").replace(",", ""))
    assert folded == pytest.approx(explanations[1].values[0][np.argsort(-sizes)[12:]].sum(), abs=500)


def test_names_that_begin_and_end_alike_stay_apart(visit):
    page = visit(390, at="#tab=rows")
    names = page.run("return DATA.players.map((_, p) => playerLabel(p, 120))")
    assert len(set(names)) == N_FEATURES


def test_empty_filters_say_so_and_a_row_that_is_filtered_out_is_not_shown(visit):
    page = visit(at="#tab=rows&row=3")
    page.one("#search").send_keys("2024-05-12")
    assert page.lines() == [12]
    assert page.one(".fall h2").text == "Row 2024-05-12, gaussian"
    page.one("#search").send_keys(" no such row")
    assert page.one("#nothing").is_displayed()
    assert "No row matches" in page.one("#nothing").text
    assert not page.one("#falls").is_displayed()
    page.click("#clear")
    assert not page.one("#nothing").is_displayed()
    assert page.one("#falls").is_displayed()
    assert page.one("#count").text == "40 rows"
    assert page.is_clean()


def test_on_a_phone_the_deciding_columns_are_in_sight(visit, explanations):
    page = visit(390, at="#tab=rows")
    last = explanations[0].player_names[-1]
    page.select("#sort", f"Shapley value of {last}")
    assert_within(page, f"th[data-key=p{N_FEATURES - 1}]", 390)
    page.select("#shown", "Shapley values")
    page.select("#sort", explanations[0].player_names[-2])
    assert_within(page, f"th[data-key=p{N_FEATURES - 2}]", 390)
    page.click("#tab-quality")
    heads = [x for x in page.every("#quality th[scope=col]") if x.text == "Above the best"]
    assert heads[0].rect["x"] + heads[0].rect["width"] <= 390


def assert_within(page: Visit, css: str, width: int) -> None:
    rect = page.one(css).rect
    assert rect["x"] >= 0
    assert rect["x"] + rect["width"] <= width


CONTRASTS = """
    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = (rgb) => rgb.slice(0, 3).map((x) => x / 255)
      .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
      .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (node) => {
      for (; node; node = node.parentElement) {
        const rgb = parse(getComputedStyle(node).backgroundColor);
        if (rgb.length === 3 || rgb[3] === 1) return rgb;
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const node of document.querySelectorAll("body *")) {
      const own = Array.from(node.childNodes).some((child) => child.nodeType === 3 && child.data.trim());
      if (!own || !node.getClientRects().length || node.closest(".skip, script, style, title, noscript")) continue;
      const style = getComputedStyle(node), ink = parse(node.closest("svg") ? style.fill : style.color);
      const [a, b] = [light(ink), light(behind(node))].sort((x, y) => y - x);
      found.push([(a + 0.05) / (b + 0.05), node.textContent.trim().slice(0, 40), node.className.baseVal ?? node.className]);
    }
    return found;
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_stands_out_from_its_background(visit, theme):
    page = visit(at=f"#tab=rows&theme={theme}")
    page.select("#shown", "Shapley values")
    page.click("#filters summary")
    for tab in ("rows", "overview", "quality", "method"):
        page.click(f"#tab-{tab}")
        found = page.run(CONTRASTS)
        assert len(found) > 20
        assert [one for one in found if one[0] < 4.5] == [], tab


@pytest.mark.parametrize("tab", ["overview", "rows", "quality", "method"])
def test_the_tab_key_reaches_every_control(visit, tab):
    page = visit(at=f"#tab={tab}")
    page.run("for (const box of document.querySelectorAll('details')) box.open = true")
    everything = page.run(
        "return Array.from(document.querySelectorAll('a, button, select, input, summary, [tabindex]'))"
        ".filter((x) => x.checkVisibility() && x.tabIndex >= 0).map((x, i) => { x.dataset.stop = i; return i; })"
    )
    pointed = page.run(  # what only the mouse can press: headings sort as the list "Sort by" does, tabs follow arrow keys
        "return Array.from(document.querySelectorAll('button')).filter((x) => x.checkVisibility() && x.tabIndex < 0 "
        "&& !x.closest('thead') && x.getAttribute('role') !== 'tab').length"
    )
    assert pointed == 0
    seen = set()
    for _ in range(len(everything) + 2):
        page.press(Keys.TAB)
        seen.add(page.run("return document.activeElement.dataset.stop"))
    assert {str(i) for i in everything} <= seen
