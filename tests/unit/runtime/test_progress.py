"""Bars are there for those who can see them."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np

import condshap
from condshap.runtime.progress import is_watched, make_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch) -> Terminal:
    screen = Terminal()  # not a fixture: pytest changes stderr between set-up and test
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def _notebook(monkeypatch, shell: object) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_logs_and_pipes_get_no_bar(monkeypatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    assert not is_watched()
    assert list(make_bar(range(3), show=None)) == [0, 1, 2]
    assert screen.getvalue() == ""


def test_a_terminal_gets_a_bar_with_the_time_left_once_something_takes_its_time(monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    assert is_watched()
    assert list(make_bar(range(3), show=None)) == [0, 1, 2]
    assert terminal.getvalue() == ""
    for _ in make_bar(range(4), show=None, desc="v(S)"):
        time.sleep(0.3)
    assert "v(S):" in terminal.getvalue()
    assert "4/4 [00:01<00:00" in terminal.getvalue()


def test_what_is_asked_for_is_shown_and_what_is_not_wanted_is_not(monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    assert list(make_bar(range(3), show=False)) == [0, 1, 2]
    assert terminal.getvalue() == ""
    assert list(make_bar(range(3), show=True)) == [0, 1, 2]
    assert "3/3" in terminal.getvalue()


def test_a_notebook_is_watched_and_an_ipython_without_a_kernel_only_at_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    _notebook(monkeypatch, SimpleNamespace(kernel=object()))
    assert is_watched()
    _notebook(monkeypatch, SimpleNamespace())
    assert not is_watched()
    _notebook(monkeypatch, None)
    assert not is_watched()


def test_programs_without_stderr_get_no_bar(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()


def test_notebooks_without_widgets_are_not_told_to_install_them() -> None:
    code = """
import sys, warnings
warnings.simplefilter("error")
from types import SimpleNamespace
shell = SimpleNamespace(kernel=1, config={"IPKernelApp": {}})
sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
sys.modules["ipywidgets"] = None
from condshap.runtime.progress import make_bar
print(list(make_bar(range(2), show=True)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[0, 1]\n"), done.stderr
    assert "2/2" in done.stderr


def test_auto_coalitions_say_how_much_time_is_left(monkeypatch) -> None:
    terminal = _terminal(monkeypatch)
    X = np.random.default_rng(0).normal(size=(60, 5))
    options = {"n_coalitions": "auto", "tolerance": 0.3, "progress": True}
    condshap.explain(lambda x: x.prod(axis=1), X, X[:3], approach="independence", **options)
    assert "precision: 100 %" in terminal.getvalue()
    assert "[00:00<00:00, " in terminal.getvalue()
