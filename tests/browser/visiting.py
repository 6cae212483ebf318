"""A page in the browser, with the eyes and hands that tests need."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait


class Visit:
    """A page in the browser, with the eyes and hands that the tests need."""

    def __init__(self, browser: webdriver.Chrome, path: Path, width: int, at: str = "") -> None:
        self.browser, self.width = browser, width
        phone = {"width": width, "height": 844 if width < 600 else 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        browser.get("about:blank")  # a change of the fragment alone would not load the page again
        browser.get_log("browser")
        browser.get(path.as_uri() + at)

    def one(self, css: str):
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def every(self, css: str) -> list:
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        return self.run("return Array.from(document.querySelectorAll(arguments[0]), (node) => node.textContent)", css)

    def run(self, script: str, *arguments):
        return self.browser.execute_script(script, *arguments)

    def click(self, css: str) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.one(css))
        self.one(css).click()

    def select(self, css: str, text: str) -> None:
        Select(self.one(css)).select_by_visible_text(text)

    def open_numbers(self) -> None:
        """Browsers tell of opened details a moment later."""
        self.click("#numbers summary")
        WebDriverWait(self.browser, 5).until(lambda _: self.every("#numbers-body table"))

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def lines(self) -> list[int]:
        """Positions of the explained rows in the table, as far as they are in sight."""
        rows = self.run("return Array.from(document.querySelectorAll('tbody tr[role=row]'), (tr) => tr.dataset.row)")
        return [int(row) for row in rows]

    def steps(self, slot: str = "a") -> dict[int, float]:
        """Shapley values by player, as the waterfall writes them."""
        fall = f".fall[data-slot={slot}] "
        players = self.run(
            "return Array.from(document.querySelectorAll(arguments[0]), (node) => node.dataset.player)", fall + ".step"
        )
        written = [text.replace("−", "-") for text in self.texts(fall + ".phi")]
        return {int(player): float(text) for player, text in zip(players, written, strict=True)}

    def keep(self, folder: Path, name: str) -> None:
        """A picture of the whole page."""
        height = self.run("return document.documentElement.scrollHeight")
        size = {"width": self.width, "height": max(600, height), "deviceScaleFactor": 1, "mobile": self.width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.browser.save_screenshot(str(folder / f"{name}-{self.width}.png"))
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": 844})

    def has_full_charts(self) -> bool:
        """Charts in sight are drawn for the room that they have."""
        sizes = self.run(
            "return Array.from(document.querySelectorAll('svg')).filter((svg) => svg.clientWidth)"
            ".map((svg) => [svg.viewBox.baseVal.width, svg.clientWidth])"
        )
        assert sizes
        return all(abs(drawn - room) <= 1 for drawn, room in sizes)

    def is_clean(self) -> bool:
        """No message on the console, which is where breaches of the policy are told too, no dialog, nothing loaded."""
        assert self.browser.get_log("browser") == []
        with pytest.raises(NoAlertPresentException):
            self.browser.switch_to.alert.accept()
        assert self.run("return performance.getEntriesByType('resource').length") == 0
        return True
