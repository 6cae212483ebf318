"""The benchmark that tells two laws of coalitions apart is right where one can count by hand."""

import numpy as np
import pytest

from benchmarks.investigations import coalition_law
from benchmarks.investigations.coalition_law import expected, surprises


@pytest.mark.parametrize(("law", "share"), [("kernel", 0.5), ("formula", 0.254)])
def test_independent_effects_leave_the_share_of_unknown_features(law, share):
    """EC3 is the mean number of unknown ones of 25 unit effects; formula: (M - 1) / M over the sum of 1 / s to M - 1.

    Independent effects are replaced by an orthogonal set, so that only coalitions are random. A share has a standard error
    of about 0.01 with 1000 coalitions: four of them are false once in 16,000 seeds, and the seed is fixed.
    """
    effects = np.sqrt(25) * np.eye(25)
    assert expected(effects, law, seed=0) / 25 == pytest.approx(share, abs=0.04)


def test_surprises_have_mean_zero_and_the_variance_of_the_effects():
    """Mean of 500 rows: at most 4 standard errors, false once in 16,000 seeds per feature; the seed is fixed."""
    found = surprises("M10", 0.0, seed=0)
    assert found.shape == (500, 10)
    assert (np.abs(found.mean(axis=0)) <= 4 * found.std(axis=0) / np.sqrt(500)).all()


def test_a_cell_has_both_laws_beside_the_paper(monkeypatch):
    monkeypatch.setattr(coalition_law, "N_DESIGNS", 3)
    line = coalition_law.line_of(coalition_law.run_cell("M10", 0.0))
    assert line["paper"] == "1.98"
    assert float(line["paper over kernel"]) < float(line["paper over formula"])
