"""One line says how far long work is, for those who can see it, and changes no number."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import condshap
from condshap.approaches import find_approach
from condshap.runtime import progress
from condshap.runtime.progress import Line, duration, is_watched, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        """What stood in the line, one time after the other."""
        return [text.rstrip() for text in self.getvalue().split("\r")]


@pytest.fixture
def quickly(monkeypatch) -> None:
    """Look at the line all the time: what is done here takes milliseconds."""
    monkeypatch.setattr(progress, "EVERY", 0.002)
    monkeypatch.setattr(progress, "PATIENCE", 0.002)


def _screen(monkeypatch, screen: io.StringIO) -> io.StringIO:
    monkeypatch.setattr(sys, "stderr", screen)  # not a fixture: pytest changes stderr between set-up and test
    return screen


def _terminal(monkeypatch) -> Terminal:
    screen = Terminal()
    _screen(monkeypatch, screen)
    return screen


def _wait_for(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in terminal.getvalue() and time.monotonic() < end:
        time.sleep(0.002)
    assert text in terminal.getvalue()


def test_logs_and_pipes_get_no_line_unless_it_is_asked_for(monkeypatch) -> None:
    screen = _screen(monkeypatch, io.StringIO())
    with progress_line("training", show=None, total=3) as line:
        line.update()
    assert screen.getvalue() == ""


def test_a_log_gets_plain_lines_now_and_then_and_one_at_the_end(monkeypatch) -> None:
    monkeypatch.setattr(progress, "LOG_EVERY", 0.05)
    screen = _screen(monkeypatch, io.StringIO())
    with progress_line("explaining", show=True, total=4) as line:
        line.update(3)
        time.sleep(0.3)
        line.update()
    *now_and_then, last = screen.getvalue().splitlines()
    assert now_and_then
    assert all(re.fullmatch(r"explaining: 3 of 4 rows, .*, 0 s left", text) for text in now_and_then)
    assert re.fullmatch(r"explaining: 4 of 4 rows, \d+ rows a second, \d s", last)
    assert "\r" not in screen.getvalue()


def test_a_terminal_gets_a_line_once_something_takes_its_time_and_is_left_clean(monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_line("explaining", show=None, total=2) as line:
        line.update(2)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress_line("explaining", show=None, total=2) as line:
        line.update()
        _wait_for(terminal, "explaining: 1 of 2 rows")
    assert terminal.lines[-2:] == ["", ""]  # overwritten with blanks, and back to the beginning
    assert "\n" not in terminal.getvalue()


def test_what_is_not_wanted_is_not_shown(monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_line("explaining", show=False) as line:
        line.update()
    assert terminal.getvalue() == ""


def test_a_line_says_how_far_how_fast_and_how_long_still(monkeypatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    line = Line("explaining", total=2000, start=40.0)
    assert line.text() == "explaining: 0 of 2,000 rows, 1 min 0 s"
    line.update(500.5)
    assert line.text() == "explaining: 500 of 2,000 rows, 8 rows a second, 3 min 0 s left"
    line.reach(20, total=None, share=0.5, note="largest error 4 %")
    assert line.text() == "explaining: 20 of 2,000 rows, 3.0 s a row, largest error 4 %, 1 min 0 s left"
    assert Line("explaining", done=30, start=40.0).text() == "explaining: 30 rows, 2.0 s a row, 1 min 0 s"
    epochs = Line("training", "epochs", 200, 50, may_end_early=True, start=40.0)
    assert epochs.text() == "training: 50 of 200 epochs, at most 3 min 0 s left"
    assert duration(59.6) == "1 min 0 s"


def test_work_within_work_has_the_same_line(quickly, monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_line("ctree (1 of 2)", show=True, leads=True), progress_line("outer", show=True, total=9):
        with progress_line("inner", show=True, total=5) as line:
            line.update()
            _wait_for(terminal, "ctree (1 of 2), inner: 1 of 5 rows")
        _wait_for(terminal, "ctree (1 of 2), outer: 0 of 9 rows")
        with progress_line("outer", show=True, total=7, unit="epochs") as line:
            line.update(3)
            _wait_for(terminal, "ctree (1 of 2), outer: 3 of 7 epochs")
        _wait_for(terminal, "ctree (1 of 2), outer: 3 of 3 epochs")  # it ended early
    assert "\n" not in terminal.getvalue()


def test_other_threads_have_no_line_of_their_own_but_may_report_to_one(quickly, monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_line("explaining", show=True, total=8) as line:

        def work() -> None:
            with progress_line("elsewhere", show=True, total=5) as own:
                own.update()
                line.update(2)
                time.sleep(0.05)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        _wait_for(terminal, "explaining: 6 of 8 rows")
        for thread in threads:
            thread.join()
    assert "elsewhere" not in terminal.getvalue()


def test_an_error_ends_the_line_and_its_thread(quickly, monkeypatch) -> None:
    terminal = _terminal(monkeypatch)

    def work() -> None:
        with progress_line("training", show=True):
            _wait_for(terminal, "training")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert terminal.lines[-2:] == ["", ""]
    assert "condshap progress" not in [thread.name for thread in threading.enumerate()]
    with progress_line("again", show=True):
        _wait_for(terminal, "again")


def test_a_screen_that_is_gone_stops_nothing(quickly, monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    with progress_line("training", show=True):
        _wait_for(terminal, "training")
        terminal.close()
        time.sleep(0.02)
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()
    with progress_line("training", show=True) as line:
        line.update()


def test_a_notebook_is_watched_and_an_ipython_without_a_kernel_only_at_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for shell, watched in ((SimpleNamespace(kernel=object()), True), (SimpleNamespace(), False), (None, False)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert is_watched() == watched


def test_notebooks_show_text_that_needs_no_widgets() -> None:
    code = """
import sys, time, types
shown = []
class Handle:
    def update(self, content, raw): shown.append(content["text/plain"])
def display(content, raw, display_id):
    shown.append(content["text/plain"])
    return Handle()
ipython, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
ipython.get_ipython, inner.display = lambda: types.SimpleNamespace(kernel=1), display
sys.modules |= {"IPython": ipython, "IPython.display": inner, "ipywidgets": None}
from condshap.runtime import progress
progress.PATIENCE = 0.01
with progress.progress_line("training", show=None, total=2, unit="epochs") as line:
    line.update()
    while not shown:
        time.sleep(0.01)
print(shown[0], "|", repr(shown[-1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"training: 1 of 2 epochs, \d s left \| ''\n", done.stdout)


X = np.random.default_rng(0).normal(size=(60, 5)) @ np.tri(5)
CALLS = {
    "usual": ({}, "explaining: "),
    "two workers": ({"n_jobs": 2}, "explaining: "),
    "target": ({"target_error": 0.05}, "explaining, more samples: "),
    "auto": ({"approach": "independence", "n_coalitions": "auto", "tolerance": 0.3}, "wanted 30.0%"),
    "network": ({"approach": find_approach("vaeac")(epochs=6, width=8)}, "of 6 epochs, best so far: "),
}


def _slow(x: np.ndarray) -> np.ndarray:
    time.sleep(0.01)
    return x.prod(axis=1)


@pytest.mark.parametrize("name", CALLS)
def test_every_way_to_explain_says_how_far_it_is_and_gives_the_same_numbers(name, quickly, monkeypatch) -> None:
    options, text = CALLS[name]
    options = {"approach": "gaussian", "check_draws": False, "memory_budget": "256KiB", **options}
    quiet = condshap.explain(_slow, X, X[:3], progress=False, **options)
    terminal = _terminal(monkeypatch)
    shown = condshap.explain(_slow, X, X[:3], progress=True, **options)
    assert text in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    assert not re.search(r"VLB|IWAE|v\(S\)|block", terminal.getvalue())
    np.testing.assert_array_equal(shown.values, quiet.values)


def test_comparing_and_refitting_say_which_one_it_is(quickly, monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    options = {"n_samples": 4, "check_draws": False, "progress": True, "memory_budget": "64KiB"}
    condshap.compare(_slow, X, X[:3], approaches=["gaussian", "independence"], **options)
    assert "independence (2 of 2), explaining: " in terminal.getvalue()
    condshap.Explainer(_slow, approach="gaussian", **options).fit(X).estimate_model_errors(X[:3], n_refits=2)
    assert "fit 2 of 2, explaining: " in terminal.getvalue()
