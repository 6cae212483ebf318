"""Ctrl-C ends long work within a second of work and leaves nothing broken; every case is a process of its own."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import condshap as cs
from condshap.exceptions import NotFittedError

MOST_SECONDS = 1.0
"""CPU seconds from the signal until Python has it: seconds of the clock depend on who else uses the machine."""

WORK = """
import os, signal, sys, threading, time
import numpy as np
import condshap as cs
from condshap.approaches import find_approach

def rows(n, m):
    return np.random.default_rng(0).normal(size=(n, m)) @ np.tri(m)

def product(x):
    return x[:, 0] * x[:, 1]

def explainer(approach, **options):
    return cs.Explainer(product, approach=approach, check_draws=False, device="cpu", **options)

{setup}

def interrupt():
    start = time.process_time()
    while time.process_time() < start + {after}:
        time.sleep(0.01)
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)

sent = []
threading.Thread(target=interrupt, daemon=True).start()
try:
    work()
except KeyboardInterrupt:
    print(time.process_time() - sent[0], hasattr(made, "game_"))
    time.sleep(0.2)
    names = [thread.name for thread in threading.enumerate()]
    assert "condshap progress" not in names, names
    again()
else:
    print("finished too early")
"""
FOREST = """
from sklearn.ensemble import RandomForestRegressor
X = rows(1000, 10)
forest = RandomForestRegressor(200, min_samples_leaf=2, random_state=0, n_jobs={n_jobs}).fit(X[:400], product(X[:400]))
made = cs.Explainer(forest, approach="gaussian", check_draws=False, n_jobs={n_jobs}).fit(X)
work = lambda: made.explain(X)
expected = made.explain(X[:2]).values
rounding = {rounding}  # of the model: a forest with two jobs adds its trees in any order
again = lambda: np.testing.assert_allclose(made.explain(X[:2]).values, expected, rtol=0, atol=rounding)
"""
TREES = """
made = explainer("ctree", n_coalitions=200).fit(rows(20_000, 12))
work = lambda: made.explain(rows(20, 12))
again = lambda: None
"""
CASES = {
    "training networks": (
        "made = explainer('vaeac'); work = lambda: made.fit(rows(20_000, 8))\nagain = lambda: None",
        0.5,
        False,
    ),
    "a forest": (FOREST.format(n_jobs=1, rounding=0), 0.3, True),
    "a forest and two workers": (FOREST.format(n_jobs=2, rounding=1e-13), 0.3, True),
    "growing trees": (TREES, 1.0, True),
}


@pytest.mark.parametrize("name", CASES)
def test_work_ends_at_once_and_can_begin_again(name: str) -> None:
    setup, after, stays_fitted = CASES[name]
    code = WORK.format(setup=setup, after=after)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds, is_fitted = done.stdout.split()
    assert float(seconds) < MOST_SECONDS
    assert is_fitted == str(stays_fitted)


def _in_terminal(command: list[str], until: bytes) -> tuple[bytes, int]:
    """Run a command in a terminal and press Ctrl-C when it has written something; what it wrote, and its exit code."""
    pid, screen = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    written, pressed, end = b"", False, time.monotonic() + 120
    while time.monotonic() < end:
        if not pressed and until in written:
            os.write(screen, b"\x03")
            pressed = True
        if select.select([screen], [], [], 0.05)[0]:
            try:
                written += os.read(screen, 65536)
            except OSError:  # the other end is closed
                break
    else:
        os.kill(pid, signal.SIGKILL)
    return written, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_command_in_a_terminal_says_that_it_was_stopped_and_leaves_no_file(tmp_path: Path) -> None:
    from sklearn.linear_model import LinearRegression
    from skops.io import dump

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(3000, 6)), columns=list("abcdef"))
    X.to_csv(tmp_path / "train.csv", index=False)
    dump(LinearRegression().fit(X, X["a"]), tmp_path / "model.skops")
    files = ["--model", str(tmp_path / "model.skops"), "--train", str(tmp_path / "train.csv")]
    start = "from condshap.cli import main; main()"
    command = [sys.executable, "-c", start, "fit", *files, "--out", str(tmp_path / "fitted.condshap")]
    written, code = _in_terminal(command, b"epochs")
    *_, line, last = written.decode().split("\r\n")
    assert code == 130
    said = re.sub(r"\x1b\[\d*m", "", line.split("\r")[-1])  # without bold
    assert said == "Stopped: finished files are kept, and no others were written."
    assert last == ""
    assert "Traceback" not in written.decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.skops", "train.csv"]


def test_a_fit_that_is_stopped_leaves_an_explainer_that_is_not_fitted() -> None:
    def model(x: np.ndarray) -> np.ndarray:
        if is_stopped:
            raise KeyboardInterrupt
        return x[:, 0]

    is_stopped, X = False, np.random.default_rng(0).normal(size=(60, 3))
    explainer = cs.Explainer(model, approach="gaussian").fit(X)
    is_stopped = True
    with pytest.raises(KeyboardInterrupt):
        explainer.fit(X)
    with pytest.raises(NotFittedError):
        explainer.explain(X[:1])
