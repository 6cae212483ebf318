"""Damaged files are refused; files that were changed and sealed again are refused or used; none ends the process."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuzz import forged_models
from fuzz.files import damaged, forged, kinds
from fuzz.profiles import cases, is_long
from fuzz.promise import kept

NAMES = [
    "explainer of independence",
    "explainer of ctree",
    "explainer of regression_separate",
    "explanation",
    "networks",
]


@cases(short=60, long=4000)
@given(data=st.data())
def test_damaged_files(data, tmp_path_factory):
    name = data.draw(st.sampled_from([*NAMES, "store", "truth"]))
    kind, path = kinds()[name], tmp_path_factory.getbasetemp() / "fuzz-of-damage"
    content = data.draw(damaged(kind.content))
    path.write_bytes(content)
    found = kept(lambda: kind.load(path))
    if name == "store":  # a torn end is a run that was killed: what is whole before it counts
        path.write_bytes(kind.content)
        assert found is None or found.items() <= kind.load(path).items()
    else:
        assert found is None or content == kind.content


@cases(short=60, long=3000)
@given(data=st.data())
def test_forged_files(data, tmp_path_factory):
    kind, path = kinds()[data.draw(st.sampled_from(NAMES))], tmp_path_factory.getbasetemp() / "fuzz-of-forgery"
    path.write_bytes(data.draw(forged(kind)))
    with (
        np.errstate(all="ignore"),
        warnings.catch_warnings(action="ignore"),
    ):  # numbers that somebody made up may overflow
        found = kept(lambda: kind.load(path))
        with suppress(Exception):  # a seal guards against accidents; of forgeries only the process must not die
            kind.use(found)


def test_forged_models_end_no_process(tmp_path):
    if is_long():  # in processes of their own
        assert forged_models.main(3000, int(np.random.default_rng().integers(10**9))) == 0
    else:
        assert sum(forged_models.run(10**6, 40, tmp_path / "trace").values()) == 40


def test_all_kinds_of_files_are_read_as_they_were_written(tmp_path):
    for kind in kinds().values():
        (tmp_path / "file").write_bytes(kind.content)
        assert kind.use(kind.load(tmp_path / "file")) is not None
