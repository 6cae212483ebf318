"""Options are read generously and refused with the range that they must have."""

from __future__ import annotations

import numpy as np
import pytest

from condshap.exceptions import OptionError, listing
from condshap.options import check_choice, check_integer, check_jobs, parse_memory


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("1GiB", 2**30), ("32 MiB", 2**25), ("500MB", 500_000_000), ("1.5kb", 1500), ("2tib", 2**41), (4096, 4096),
     ("7", 7), ("0.1B", 1), (np.int64(5), 5), (1e6, 10**6)],
)  # fmt: skip
def test_memory_is_read_with_and_without_units(text, n_bytes):
    assert parse_memory(text) == n_bytes


@pytest.mark.parametrize("budget", ["1 apple", "", "GiB", "-1GiB", 0, -5, "0MB", None, True, "1GiB 2MB", float("nan")])
def test_memory_that_means_nothing_is_refused_with_an_example(budget):
    with pytest.raises(OptionError, match="memory_budget must be bytes or a text such as '1GiB' or '500MB', got"):
        parse_memory(budget)


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3)])
def test_integers_of_any_kind_become_python_integers(value):
    checked = check_integer("k", value, least=3)
    assert checked == 3
    assert type(checked) is int


@pytest.mark.parametrize("value", [2, True, 3.0, "3", None])
def test_what_is_no_integer_or_too_small_is_refused(value):
    with pytest.raises(OptionError, match=f"k must be an integer.* got {value!r}"):
        check_integer("k", value, least=3)


def test_choices_do_not_confuse_truth_with_one():
    assert check_choice("progress", False, ("auto", True, False)) is False
    assert check_choice("progress", "auto", ("auto", True, False)) == "auto"
    for value in (1, 0, "True", None, "AUTO"):
        with pytest.raises(OptionError, match=r"progress must be one of \['auto', True, False\], got"):
            check_choice("progress", value, ("auto", True, False))


def test_jobs_count_back_from_the_number_of_cores():
    from joblib import effective_n_jobs

    assert check_jobs(3) == 3
    assert check_jobs(-1) == effective_n_jobs(-1) >= 1
    assert check_jobs(-1000) == 1
    with pytest.raises(OptionError, match=r"n_jobs must not be 0. Use 1 for no workers, -1 for one per core"):
        check_jobs(0)
    with pytest.raises(OptionError, match="n_jobs must be an integer"):
        check_jobs("two")


def test_messages_list_at_most_five_items():
    assert listing("abcde") == "['a', 'b', 'c', 'd', 'e']"
    assert listing("abcdef") == "['a', 'b', 'c', 'd', 'e', ... 1 more]"
    assert listing([]) == "[]"
