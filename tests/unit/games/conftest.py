import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Figures pile up otherwise, and matplotlib warns in whichever test comes last."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
