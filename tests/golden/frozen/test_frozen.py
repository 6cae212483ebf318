"""Numbers stay what they are, to the last bit on the machine where they were frozen, to rounding on others.

Networks are trained anew, and rounding in training is no longer rounding in the end: they are compared where they were
frozen only.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import cases

STORED = json.loads(cases.STORE.read_text())
IS_THE_SAME_MACHINE = STORED["made_on"] == cases.fingerprint()
SCALED = ("values", "std_errors", "base_values", "msev")


@pytest.mark.parametrize("name", cases.CASES)
def test_numbers_are_as_frozen(name):
    if not IS_THE_SAME_MACHINE and name in cases.WITH_NETWORKS:
        pytest.skip("networks that another machine has trained")
    found, stored = json.loads(json.dumps(cases.compute(name))), STORED["numbers"][name]
    if IS_THE_SAME_MACHINE:
        assert found == stored
        return
    size = np.abs(stored["values"]).max()
    for key in SCALED:
        np.testing.assert_allclose(found[key], stored[key], rtol=1e-9, atol=1e-9 * size, err_msg=key)


def test_every_case_is_frozen():
    assert set(STORED["numbers"]) == set(cases.CASES)
