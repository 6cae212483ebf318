"""Debian's chromium, installed when it is absent and may be; skipped, with the reason, only when that fails.

Files of this folder are found by each other as ``browser.<name>``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

sys.path.insert(0, str(Path(__file__).parents[1]))

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900",
]  # fmt: skip
PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("chromium", "chromium-driver")


def install() -> str:
    """Install the browser by apt; the reason why not, or nothing."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "only root can install them, with apt-get"
    wait = ("-o", "DPkg::Lock::Timeout=240")  # somebody else may be at it
    for command in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            run = subprocess.run(
                ["apt-get", *wait, *command], capture_output=True, text=True, timeout=300, env=environment
            )
        except subprocess.TimeoutExpired:
            return f"apt-get {command[0]} took more than 300 s"
        if run.returncode != 0:
            return f"apt-get {command[0]} failed: {run.stderr.strip()[-300:]}"
    return ""


def find_or_install() -> str:
    """Make sure that the browser is there, one worker at a time; the reason why it is not, or nothing."""
    with (Path(tempfile.gettempdir()) / "condshap-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all(map(shutil.which, PROGRAMS)):
            return ""
        reason = install()
        return "" if all(map(shutil.which, PROGRAMS)) else reason or "they are installed, but not on the path"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    if reason := find_or_install():
        pytest.skip(f"needs {' and '.join(PACKAGES)} of Debian: {reason}")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures of every state are kept, for people to look at."""
    folder = Path(__file__).parents[2] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
