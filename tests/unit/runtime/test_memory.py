"""Processes that share a GPU take a share of its memory each."""

import os

import pytest
import torch

from condshap.runtime.memory import SHARED_BY, own_share, rows_that_fit, sharing_device
from condshap.values.device import rows_at_once


@pytest.mark.parametrize(("told", "share"), [(None, 1200), ("1", 1200), ("8", 150), ("0", 1200), ("many", 1200)])
def test_the_environment_says_how_many_share(told, share, monkeypatch):
    monkeypatch.delenv(SHARED_BY, raising=False)
    if told is not None:
        monkeypatch.setenv(SHARED_BY, told)
    assert own_share(1200) == share


def test_shares_end_with_the_work_and_yield_to_the_environment(monkeypatch):
    monkeypatch.delenv(SHARED_BY, raising=False)
    with sharing_device(4):
        assert own_share(1200) == 300
    assert SHARED_BY not in os.environ
    monkeypatch.setenv(SHARED_BY, "2")
    with sharing_device(4):
        assert own_share(1200) == 600
    assert os.environ[SHARED_BY] == "2"


def test_blocks_of_all_processes_together_fit_the_device(monkeypatch):
    monkeypatch.delenv(SHARED_BY, raising=False)
    free = 2**32
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free, 2 * free))
    with sharing_device(8):
        assert rows_at_once(250, "cuda") == rows_that_fit(free // 32, 250)
    monkeypatch.setenv(SHARED_BY, "1")
    assert rows_at_once(250, "cuda") == rows_that_fit(free // 4, 250)
