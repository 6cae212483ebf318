"""Who waits for compiled code is told why, once, if progress is shown."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPILE = """
import sys
import numpy as np
from numba.core import caching
from condshap.runtime import compiling
{before}
compiling.show_compiling({progress})
from condshap.trees.c_links import exp_rows
for kind in (np.float32, np.float64):
    exp_rows(np.zeros((1, 1), kind))
"""
NO_FOLDER = "for one in (caching.CacheImpl, *caching.CacheImpl.__subclasses__()): one._locator_classes = []"
WATCHED = "sys.stderr.isatty = lambda: True"


def said(tmp_path, progress: bool | None, before: str = "") -> list[str]:
    """Lines on stderr of a process that compiles one loop for two types."""
    code = COMPILE.format(progress=progress, before=before)
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


def test_a_watcher_is_told_once_and_never_again_on_this_machine(tmp_path):
    (line,) = said(tmp_path, None, before=WATCHED)
    assert line.startswith("Compiling code for this machine. That takes some seconds, once; 'condshap warm-up'")
    assert said(tmp_path, True) == []


@pytest.mark.parametrize(("progress", "before"), [(False, WATCHED), (None, "")])
def test_nothing_is_said_where_no_progress_is_shown(tmp_path, progress, before):
    assert said(tmp_path, progress, before) == []


def test_a_machine_that_keeps_nothing_is_told_what_to_do(tmp_path):
    (line,) = said(tmp_path, True, before=NO_FOLDER)
    assert "in every process" in line
    assert "NUMBA_CACHE_DIR" in line
