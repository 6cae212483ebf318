"""Stores lose nothing, whatever happens while they are written."""

import json
import math
from dataclasses import replace

import pytest

from condshap.exceptions import StorageError
from condshap.studies.running.store import Key, Result, Store

KEY = Key("study", "cell", "gaussian", 0, 0, "0.1.0")
RESULT = Result(KEY, 0.1, 0.2, 0.3, 1.0, 2.0, 3.5, 100, peak=0.5, device_peak=0.25)  # NaN equals nothing


def make_store(path, *results):
    store = Store(path / "store.jsonl")
    for result in results:
        store.append(result)
    return store


def test_what_was_written_is_read_and_every_result_is_one_line(tmp_path):
    other = replace(RESULT, key=replace(KEY, repetition=1), device="cuda", forest="cuda")
    store = make_store(tmp_path, RESULT, other)
    assert store.read() == {KEY: RESULT, other.key: other}
    assert [json.loads(line)["repetition"] for line in store.path.read_text().splitlines()] == [0, 1]


def test_what_was_not_measured_is_null_in_the_file_and_read_as_nan(tmp_path):
    store = make_store(tmp_path, replace(RESULT, ec1=math.nan, peak=math.nan))
    line, found = json.loads(store.path.read_text()), store.read()[KEY]
    assert (line["ec1"], line["peak"], found.device_peak) == (None, None, 0.25)
    assert math.isnan(found.ec1)
    assert math.isnan(found.peak)


def test_of_several_results_of_a_key_the_last_one_counts(tmp_path):
    store = make_store(tmp_path, RESULT, replace(RESULT, ec1=0.7))
    assert store.read()[KEY].ec1 == 0.7


def test_options_of_methods_that_were_renamed_are_found_by_their_new_names(tmp_path):
    old = replace(RESULT, key=replace(KEY, method="vaeac-paper:draws='nets',n_samples=10"))
    assert [key.method for key in make_store(tmp_path, old).read()] == ["vaeac-paper:draws='qmc',n_samples=10"]


def test_a_file_that_is_not_there_is_empty(tmp_path):
    assert Store(tmp_path / "none.jsonl").read() == {}
    Store(tmp_path / "none.jsonl").repair()


@pytest.mark.parametrize("n_lost", [1, 2, 20, 200])
def test_a_half_written_last_line_is_skipped_and_cut_off(tmp_path, n_lost):
    second = replace(RESULT, key=replace(KEY, repetition=1))
    store = make_store(tmp_path, RESULT, second)
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[:-n_lost])
    expected = {KEY: RESULT, second.key: second} if n_lost == 1 else {KEY: RESULT}  # only the end of the line was lost
    assert store.read() == expected
    store.repair()
    assert store.read() == expected
    store.append(second)
    assert store.read() == {KEY: RESULT, second.key: second}


def test_a_line_after_a_torn_one_is_not_lost(tmp_path):
    second = replace(RESULT, key=replace(KEY, repetition=1))
    store = make_store(tmp_path, RESULT)
    with store.path.open("a") as file:
        file.write('{"format": 1, "study": "st')
    store.append(second)
    assert store.read() == {KEY: RESULT, second.key: second}


@pytest.mark.parametrize("line", ["hello", "[1, 2]", '{"format": 1, "study": "x"}', '{"format": 2}', '{"study": "x"}'])
def test_a_line_that_is_no_result_is_an_error_that_says_where(tmp_path, line):
    store = make_store(tmp_path, RESULT)
    with store.path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(StorageError, match="line 2"):
        store.read()


def test_a_store_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="must be written to"):
        Store(tmp_path / "file" / "store.jsonl").append(RESULT)
