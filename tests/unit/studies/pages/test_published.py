"""The paper's figures are found for the cells that they belong to, and for no others."""

import pytest

from condshap.studies.pages.published import published
from condshap.studies.problems.cells import BurrCell, CategoricalCell, MixedCell
from condshap.studies.problems.informative_gaps import InformativeCell


@pytest.mark.parametrize(
    ("cell", "method", "criterion", "figure"),
    [
        (BurrCell(5, 1000), "vaeac", "EC1", 0.0264),
        (BurrCell(10, 100), "gaussian", "EC2", 0.0266),
        (BurrCell(25, 5000, n_coalitions=1000), "vaeac_c", "EC1", 0.0297),
        (BurrCell(50, 5000, n_coalitions=1000), "gaussian", "EC1", 0.0458),
        (MixedCell("M4", 0.1, 100), "ctree", "EC1", 0.1412),
        (MixedCell("M6", 0.9, 1000), "vaeac", "EC1", 0.0559),
        (CategoricalCell(7, 4, 0.5), "vaeac", "EC1", 0.0655),
    ],
)
def test_a_figure_of_the_paper_is_found(cell, method, criterion, figure):
    assert published(cell, method, criterion) == figure


@pytest.mark.parametrize(
    ("cell", "method", "criterion"),
    [
        (BurrCell(5, 999), "vaeac", "EC1"),
        (BurrCell(5, 1000, kappa=3.0), "vaeac", "EC1"),
        (BurrCell(5, 1000), "vaeac-paper", "EC1"),
        (MixedCell("M4", 0.1, 100), "ctree", "EC2"),
        (MixedCell("M10", 0.1, 1000), "ctree", "EC1"),
        (CategoricalCell(7, 4, 0.5, n_train=500), "vaeac", "EC1"),
        (InformativeCell(), "vaeac", "EC1"),
    ],
)
def test_what_the_paper_does_not_print_is_none(cell, method, criterion):
    assert published(cell, method, criterion) is None
