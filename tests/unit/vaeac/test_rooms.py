"""Rooms look one way: columns, then the network, then training and sampling, which do not know each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import condshap.vaeac

ROOT = Path(condshap.vaeac.__file__).parent
MAY_KNOW = {
    "columns": {"columns"},
    "network": {"columns", "network"},
    "training": {"columns", "network", "training"},
    "sampling": {"columns", "network", "sampling"},
}


@pytest.mark.parametrize("room", MAY_KNOW)
def test_a_room_imports_only_rooms_before_it(room):
    text = "".join(path.read_text() for path in sorted((ROOT / room).glob("*.py")))
    modules = set(re.findall(r"^ *from condshap\.vaeac\.(\w+)", text, flags=re.MULTILINE))
    assert modules - MAY_KNOW[room] <= {"config", "validation"}
