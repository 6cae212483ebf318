"""The report as people meet it: in a real browser, wide and narrow, with mouse and keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import condshap as cs
from browser.visiting import Visit
from condshap.explanation import Explanation, Provenance
from condshap.numerics.readable import estimate
from condshap.values.table import ValueTable

EVIL_NAME = "<img src=x onerror=alert(1)>"
EVIL_LEVEL = "</script><script>alert(1)</script>"
TABS = ("overview", "rows", "quality", "method")
WIDTHS = (1280, 390)
RNG = np.random.default_rng(11)
N = 160
DATA = pd.DataFrame(
    {
        "length": RNG.gamma(5, 0.1, N),
        "weight": RNG.normal(size=N),
        "sex": RNG.choice(["F", "I", "M"], N),
        EVIL_NAME: RNG.choice(["u", EVIL_LEVEL], N),
        "a name of forty letters, which is a lot!": RNG.normal(size=N),
    },
    index=[f"snail {i}" for i in range(N)],
)
TRAIN, ROWS = DATA[:100], DATA[100:]


def rings(X: pd.DataFrame) -> np.ndarray:
    evil = (X[EVIL_NAME] == "u").to_numpy()
    return 3 * X["length"].to_numpy() + X["weight"].to_numpy() ** 2 + (X["sex"] == "M").to_numpy() + evil * X.iloc[:, 4]


def large(n_rows: int = 5000, n_features: int = 50) -> Explanation:
    """Numbers of the promised size; what they mean does not matter here."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, n_features)) * np.exp(-np.arange(n_features) / 12)
    base = np.full(n_rows, 10.0)
    predictions = base + values.sum(axis=1)
    masks = np.zeros((3, n_features), dtype=bool)
    masks[1, 0] = masks[2] = True
    table = ValueTable(masks, np.stack([base, base + values[:, 0], predictions]), np.zeros((3, n_rows)), 1000)
    data = pd.DataFrame(rng.normal(size=(n_rows, n_features)), columns=[f"feature {j}" for j in range(n_features)])
    names = tuple(data.columns)
    about = Provenance("vaeac", {}, 0, (250,), 3, False, 0, "mean prediction", {"fit": 1.0, "explain": 2.0}, {})
    errors = np.abs(rng.normal(size=values.shape)) * 0.05
    return Explanation(
        values,
        base,
        predictions,
        errors,
        table,
        data,
        names,
        names,
        ("y",),
        tuple((j,) for j in range(n_features)),
        about,
    )


@pytest.fixture(scope="module")
def explanations() -> list[Explanation]:
    return [cs.explain(rings, TRAIN, ROWS, approach=name, n_samples=40) for name in ("independence", "ctree")]


@pytest.fixture(scope="module")
def page(explanations, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    return cs.report(explanations, path, train=TRAIN, title="Snails & <b>names</b>", model="rings")


@pytest.fixture(scope="module")
def large_page(tmp_path_factory) -> Path:
    return cs.report(large(), tmp_path_factory.mktemp("large") / "large.html")


@pytest.fixture
def visit(browser, page):
    return lambda width=1280, path=page, at="": Visit(browser, path, width, at)


def assert_shows(steps: dict[int, float], values: np.ndarray) -> None:
    """The written numbers are the values, to the two decimals that a range of some units leaves."""
    assert sorted(steps) == list(range(len(values)))
    np.testing.assert_allclose([steps[p] for p in range(len(values))], values, atol=0.0051)
    sizes = np.abs(list(steps.values()))
    assert (np.diff(sizes) < 0.011).all(), "largest first"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_click_on_a_row_changes_its_waterfall(visit, explanations, screenshots, width):
    page = visit(width)
    page.click("#tab-rows")
    assert_shows(page.steps(), explanations[0].values[0])
    assert page.has_full_charts()
    page.click("tbody tr[data-row='4'] td")
    assert page.one(".fall h2").text == "Row snail 104, independence"
    assert_shows(page.steps(), explanations[0].values[4])
    assert page.one("tr[data-row='4']").get_attribute("aria-selected") == "true"
    whiskers = page.every(".fall .whisker")
    assert len(whiskers) == 5
    page.keep(screenshots, "row")
    page.select("#approach", "ctree")
    assert_shows(page.steps(), explanations[1].values[4])
    assert page.is_clean()


@pytest.mark.parametrize("width", WIDTHS)
def test_sorting(visit, explanations, screenshots, width):
    page = visit(width, at="#tab=rows")
    order = np.argsort(explanations[0].predictions, kind="stable")
    page.click("th[data-key=prediction] button")
    assert page.lines()[:5] == order[:5].tolist()
    assert page.one("th[data-key=prediction]").get_attribute("aria-sort") == "ascending"
    page.click("th[data-key=prediction] button")
    assert page.lines()[:5] == order[::-1][:5].tolist()
    page.select("#sort", "Shapley value of weight")
    assert page.lines()[:5] == np.argsort(-explanations[0].values[:, 1], kind="stable")[:5].tolist()
    page.click("#direction")
    assert page.lines()[:5] == np.argsort(explanations[0].values[:, 1], kind="stable")[:5].tolist()
    page.select("#shown", "Shapley values")
    page.select("#sort", "length")
    page.keep(screenshots, "sorted")
    assert page.lines()[:5] == np.argsort(explanations[0].values[:, 0], kind="stable")[:5].tolist()
    assert page.is_clean()


@pytest.mark.parametrize("width", WIDTHS)
def test_filters_and_search(visit, screenshots, width):
    page = visit(width, at="#tab=rows")
    page.click("#filters summary")
    page.one("#filter-low").send_keys("0.4")
    page.one("#filter-high").send_keys("0.7")
    within = ROWS["length"].astype(np.float32).between(0.4, 0.7).to_numpy()
    assert page.one("#count").text == f"{within.sum()} of 60 rows"
    page.select("#filter-feature", EVIL_NAME)
    label = next(x for x in page.every("#filter-body label") if x.text.startswith(EVIL_LEVEL))
    label.click()
    both = within & (ROWS[EVIL_NAME] == EVIL_LEVEL).to_numpy()
    assert 0 < both.sum() < within.sum()
    assert page.one("#count").text == f"{both.sum()} of 60 rows"
    assert page.lines() == np.flatnonzero(both).tolist()[: len(page.lines())]
    page.keep(screenshots, "filtered")
    assert page.run("return document.documentElement.scrollWidth") <= width, "the open box of filters fits"
    page.press(Keys.ESCAPE)
    assert page.one("#filters").get_attribute("open") is None
    page.click("#chips button")
    assert page.one("#count").text == f"{(ROWS[EVIL_NAME] == EVIL_LEVEL).sum()} of 60 rows"
    page.click("#chips button")
    page.one("#search").send_keys("snail 15")
    assert page.lines() == list(range(50, 60))
    page.one("#search").send_keys(" nonsense")
    assert page.one("#count").text == "0 of 60 rows"
    assert page.lines() == []
    assert page.is_clean()


def test_rows_outside_the_training_data_are_marked_and_can_be_filtered(visit):
    page = visit(at="#tab=rows")
    numbers = DATA[["length", "weight", DATA.columns[4]]]
    low, high = numbers[:100].min(), numbers[:100].max()
    outside = np.flatnonzero(((numbers[100:] < low) | (numbers[100:] > high)).any(axis=1))
    assert 0 < len(outside) < 20
    page.click("#filters summary")
    page.select("#filter-feature", "outside the training data")
    page.click("#filter-body input")
    assert page.lines() == outside.tolist()
    page.press(Keys.ESCAPE)
    page.click(f"tr[data-row='{outside[0]}'] td")
    assert "Outside the training data:" in page.one(".fall .alert").text
    assert page.is_clean()


@pytest.mark.parametrize("width", WIDTHS)
def test_two_rows_side_by_side(visit, explanations, screenshots, width):
    page = visit(width, at="#tab=rows")
    page.click("#compare-row")
    page.click("tr[data-row='5'] td")
    assert_sides(page, explanations[0].values[0], explanations[0].values[5])
    page.click(".fall[data-slot=a] .slot")
    page.click("tr[data-row='2'] td")
    assert_sides(page, explanations[0].values[2], explanations[0].values[5])
    page.open_numbers()
    differences = [float(text.replace("−", "-").replace(",", "")) for text in page.texts("#numbers-body td:last-child")]
    names = page.texts("#numbers-body th[scope=row]")
    expected = explanations[0].values[5] - explanations[0].values[2]
    found = [differences[names.index(name)] for name in DATA.columns]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    page.keep(screenshots, "two-rows")
    page.click("#compare-none")
    assert len(page.every(".fall")) == 1
    assert page.is_clean()


@pytest.mark.parametrize("width", WIDTHS)
def test_two_approaches_side_by_side(visit, explanations, screenshots, width):
    page = visit(width, at="#tab=rows&row=7")
    assert page.has_full_charts()
    page.click("#compare-approach")
    assert_sides(page, explanations[0].values[7], explanations[1].values[7])
    assert page.texts(".fall h2") == ["A: Row snail 107, independence", "B: Row snail 107, ctree"]
    page.keep(screenshots, "two-approaches")
    assert page.is_clean()


def assert_sides(page: Visit, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Both waterfalls show their values, in the order of the first."""
    assert_shows(page.steps("a"), ours)
    steps = page.steps("b")
    assert list(steps) == list(page.steps("a"))
    np.testing.assert_allclose([steps[p] for p in range(len(theirs))], theirs, atol=0.0051)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_theme_switches_and_stays(visit, screenshots, width):
    page = visit(width)
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.keep(screenshots, "overview-light")
    page.click("#theme")
    dark = page.run(colour)
    assert brightness(dark) < 40 < 200 < brightness(light)
    page.browser.refresh()
    assert page.run(colour) == dark
    page.keep(screenshots, "overview-dark")
    page.click("#theme")
    page.run("localStorage.clear()")
    page.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    fresh = visit(width)
    assert fresh.run(colour) == dark, "what the system prefers"
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert fresh.is_clean()


def brightness(colour: str) -> float:
    return float(np.mean([int(number) for number in re.findall(r"\d+", colour)[:3]]))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["page", "large_page"])
def test_no_part_is_wider_than_the_screen(visit, screenshots, request, which, width):
    page = visit(width, request.getfixturevalue(which))
    for tab in TABS:
        page.click(f"#tab-{tab}")
        assert page.run("return document.documentElement.scrollWidth") <= width, tab
        assert page.run("return Math.round(visualViewport.width)") in (width, width - 15), tab  # a bar to scroll with
        assert page.one(f"#{tab}").is_displayed()
        assert tab in ("quality", "method") or page.has_full_charts()
        page.keep(screenshots, f"{which}-{tab}")
    assert page.is_clean()


def test_names_and_levels_are_text(visit):
    page = visit(at="#tab=rows")
    assert EVIL_NAME in page.texts("th button")
    assert EVIL_LEVEL in page.texts("tbody td")
    row = int(np.flatnonzero(ROWS[EVIL_NAME] == EVIL_LEVEL)[0])
    page.click(f"tr[data-row='{row}'] td")
    page.open_numbers()
    assert EVIL_NAME in page.texts("#numbers-body th")
    assert EVIL_LEVEL in page.texts("#numbers-body td")
    page.click("#tab-overview")
    page.select("#shape-feature", EVIL_NAME)
    assert page.one("h1").text == "Snails & <b>names</b>"
    assert len(page.every("img")) == 0
    assert len(page.every("script")) == 2
    assert page.is_clean()


def test_all_of_it_works_with_the_keyboard_alone(visit, explanations):
    page = visit()
    seen = []
    for _ in range(40):
        page.press(Keys.TAB)
        focused = page.browser.switch_to.active_element
        seen.append(focused.get_attribute("id") or focused.get_attribute("class"))
        outline = page.run("return getComputedStyle(document.activeElement).outlineWidth")
        assert outline == "3px", f"the focus on {seen[-1]} is not to be seen"
        if seen[-1] == "tab-overview":
            page.press(Keys.ARROW_RIGHT)
        if seen[-1] == "scroller":
            break
    assert seen[:5] == ["skip", "approach", "theme", "tab-overview", "search"]
    assert seen[-1] == "scroller"
    page.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    active = page.run("return document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))")
    assert active.get_attribute("data-row") == "2"
    page.press(Keys.ENTER)
    assert_shows(page.steps(), explanations[0].values[2])
    page.press(Keys.END, Keys.ENTER)
    assert_shows(page.steps(), explanations[0].values[59])
    page.press(Keys.TAB, Keys.TAB, Keys.ENTER)  # over "nothing" to "a row"
    assert len(page.every(".fall")) == 2
    assert page.is_clean()


def test_five_thousand_rows_of_fifty_features(visit, large_page):
    assert large_page.stat().st_size < 15e6
    page = visit(path=large_page)
    paints = dict(page.run("return performance.getEntriesByType('paint').map((p) => [p.name, p.startTime])"))
    assert paints["first-contentful-paint"] < 2000
    page.click("#tab-rows")
    assert len(page.lines()) < 60
    script = """
        const done = arguments[0], took = [];
        let top = 0;
        function step() {
            grid.scrollTop = top += took.length < 20 ? 100 : 16000; // as by a wheel, then as by a drag of the bar
            const start = performance.now();
            paint();
            took.push(performance.now() - start);
            if (top < 5000 * 32) requestAnimationFrame(step); else done(took);
        }
        step();
    """
    page.browser.set_script_timeout(20)
    data = large().data
    took = page.browser.execute_async_script(script)
    wheel, drag = np.median(took[:20]), np.median(took[20:])
    print(
        f"first paint {paints['first-contentful-paint']:.0f} ms, lines written in {wheel:.1f} ms, all anew {drag:.1f} ms"
    )
    assert wheel < 16  # a frame
    assert drag < 50
    assert page.lines() == list(range(5000 - len(page.lines()), 5000))
    page.browser.execute_async_script(
        "const done = arguments[0]; grid.scrollTop -= 1000; requestAnimationFrame(() => requestAnimationFrame(done))"
    )
    rows = page.lines()
    assert rows == list(range(rows[0], rows[0] + len(rows)))
    assert rows[-1] < 4999
    written = [
        float(text.replace("−", "-").replace(",", "")) for text in page.texts("tbody tr[role=row] td:nth-child(12)")
    ]
    np.testing.assert_allclose(written, data.iloc[rows, 9], atol=5e-5)
    page.select("#sort", "feature 7")
    page.one("#search").send_keys("0.123")
    assert page.is_clean()


def test_several_outputs_and_groups(visit, tmp_path, screenshots):
    def two(X):
        return np.column_stack([rings(X), -(X["weight"].to_numpy() ** 3)])

    groups = {"size": ["length", "weight"], "rest": ["sex", EVIL_NAME, DATA.columns[4]]}
    explanation = cs.explain(two, TRAIN, ROWS, approach="independence", n_samples=20, groups=groups)
    page = visit(path=cs.report(explanation, tmp_path / "groups.html"), at="#tab=rows&row=3")
    assert_shows(page.steps(), explanation.values[3, :, 0])
    page.select("#output", explanation.output_names[1])
    assert_shows(page.steps(), explanation.values[3, :, 1])
    page.keep(screenshots, "groups")
    page.click("#tab-overview")
    cards = [x for x in page.every(".cards") if x.is_displayed()]
    assert len(cards) == 1
    assert estimate(explanation.msev.value[1], explanation.msev.std_error[1]) in cards[0].text
    page.keep(screenshots, "groups-overview")
    assert page.is_clean()


def test_without_scripts_quality_and_method_can_be_read(visit, browser, page, explanations, screenshots):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        text = browser.find_element(By.TAG_NAME, "body").text
        assert not browser.find_element(By.ID, "search").is_displayed(), "nothing that cannot work"
        browser.save_screenshot(str(screenshots / "no-scripts-1280.png"))
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "need JavaScript" in text
    assert estimate(float(explanations[0].msev), explanations[0].msev.total_std_error()) in text
    assert "minbucket=7" in text


def test_printing_shows_every_part(visit):
    page = visit()
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert [page.one(f"#{tab}").is_displayed() for tab in TABS] == [True] * 4
    assert page.has_full_charts()
    assert len(page.every("#falls svg")) == len(page.every("#msev svg")) == 1
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert [page.one(f"#{tab}").is_displayed() for tab in TABS] == [True, False, False, False]
    assert page.is_clean()


def test_one_row_of_one_feature(visit, tmp_path, screenshots):
    X = np.arange(20.0).reshape(-1, 1)
    explanation = cs.explain(lambda x: x[:, 0] ** 2, X, X[:1], approach="independence")
    page = visit(path=cs.report(explanation, tmp_path / "tiny.html"))
    for tab in TABS:
        page.click(f"#tab-{tab}")
        page.keep(screenshots, f"tiny-{tab}")
    page.click("#tab-rows")
    assert page.steps() == {0: pytest.approx(explanation.values[0, 0], abs=0.51)}
    assert page.is_clean()


@pytest.fixture(scope="module")
def together(explanations, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("together") / "report.html"
    return cs.report(explanations, path, interactions=explanations[0].interactions("k-SII", 3))


def numbers(texts: list[str]) -> np.ndarray:
    return np.array([float(text.replace("−", "-").replace(",", "")) for text in texts])


@pytest.mark.parametrize("width", WIDTHS)
def test_interactions_of_all_rows_and_of_the_selected_one(visit, explanations, together, screenshots, width):
    found = explanations[0].interactions("k-SII", 3)
    sets = [members for members in found.values if len(members) > 1]
    page = visit(width, path=together, at="#tab=rows&row=4")
    page.click("#tab-interactions")
    for shown, values in (
        ("all rows: mean size", {members: np.abs(found.values[members]).mean() for members in sets}),
        ("row snail 104", {members: found.values[members][4] for members in sets}),
    ):
        page.select("#pair-rows", shown)
        largest = sorted(sets, key=lambda members, values=values: -abs(values[members]))[:12]
        drawn = page.run("return Array.from(document.querySelectorAll('#pair-bars [data-set]'), (x) => x.dataset.set)")
        assert drawn[:3] == ["-".join(map(str, members)) for members in largest[:3]]
        written = numbers(page.texts("#pair-bars .amount"))
        np.testing.assert_allclose(written, [values[members] for members in largest], rtol=0.02, atol=0.006)
        cells = page.run(
            "return Array.from(document.querySelectorAll('#pair-heat [data-pair]'), (x) => x.dataset.pair)"
        )
        assert len(cells) == 5 * 4
        assert page.has_full_charts()
        assert page.run("return document.documentElement.scrollWidth") <= width
        page.keep(screenshots, f"interactions-{shown.split()[0]}")
    assert page.is_clean()


def test_interactions_are_a_tab_for_the_keyboard_and_on_paper(visit, together):
    page = visit(path=together)
    page.one("#tab-rows").click()
    page.press(Keys.ARROW_RIGHT)
    assert page.one("#interactions").is_displayed()
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert len(page.every("#pair-heat svg")) == 1
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.is_clean()
