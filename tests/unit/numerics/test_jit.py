"""Compiled loops are kept where that is possible, and made anew where it is not."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
from numba.core import caching

SOURCE = """
from condshap.numerics.jit import entry_kernel, kernel

@kernel
def double(x):
    return 2.0 * x

@entry_kernel
def quadruple(x):
    return double(double(x)) / {divisor}
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a module of two kernels from a folder of its own."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load_module(folder="kernels", divisor=1.0):
        path = tmp_path / folder / "kernels_of_a_test.py"
        path.parent.mkdir(exist_ok=True)
        text = SOURCE.format(divisor=divisor)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)  # numba's cache goes by the time of a file
        spec = spec_from_file_location("kernels_of_a_test", path)
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load_module


def test_kernel_is_kept_on_disk(load, tmp_path):
    assert load().quadruple(3.0) == 12.0
    again = load().quadruple
    assert again(3.0) == 12.0
    assert sum(again.stats.cache_hits.values()) == 1
    assert list((tmp_path / "kernels").rglob("*.nbi"))


def test_kernel_works_where_no_cache_can_be_written(load, monkeypatch):
    for implementation in (caching.CacheImpl, *caching.CacheImpl.__subclasses__()):
        monkeypatch.setattr(implementation, "_locator_classes", [])
    quadruple = load().quadruple
    assert quadruple(3.0) == 12.0
    assert "Null" in type(quadruple._cache).__name__


def test_change_in_any_file_of_the_folder_gives_the_kernel_another_name(load):
    one, other = load("one").quadruple, load("other", divisor=2.0).quadruple
    assert one.py_func.__qualname__ != other.py_func.__qualname__
    assert one(3.0) == 2 * other(3.0)


def test_division_by_zero_is_infinity_as_in_numpy(load):
    assert load("zero", divisor=0.0).quadruple(1.0) == float("inf")
