"""Public contract suite: whether an approach, ours or yours, keeps its promises.

``check_approach(approach)`` runs every check on tables of the kinds that the approach supports and raises an
AssertionError that names the first broken promise. ``approach_checks()`` gives the checks one by one, for
``pytest.mark.parametrize``. `GaussianTruth` is an approach with a known answer, for tests of everything else.
"""

from condshap.testing.cases import Case, cases, example_table
from condshap.testing.checks import approach_checks, check_approach
from condshap.testing.truth import GaussianTruth

__all__ = ["Case", "GaussianTruth", "approach_checks", "cases", "check_approach", "example_table"]
