"""The gradient that is written out is the one that torch finds."""

from __future__ import annotations

import pytest
import torch

from condshap.vaeac.columns.encoded_rows import EncodedRows
from condshap.vaeac.columns.encoding import Layout, learn_scale
from condshap.vaeac.network.gradient import BoundGradient
from condshap.vaeac.network.layers import NetworkShape, Parameters
from condshap.vaeac.network.objective import Regulariser, lower_bound

CPU = torch.device("cpu")
E, B, LATENT = 2, 40, 3
KINDS = {"mixed": slice(None), "numbers": [1, 2, 4, 5], "levels": [0, 3]}


def pose(X, n_levels, *, has_flags, depth):
    """Batch of rows (B, M) with random masks, and networks with random weights."""
    layout = Layout.of(n_levels)
    numbers = X[:, list(layout.order)[: layout.n_continuous]]
    rows = EncodedRows.of(layout, [learn_scale("standard", numbers, cut=True)], X, CPU)
    masks = torch.randint(2, (E, B, len(n_levels))).float()
    every = torch.arange(B).expand(E, -1)
    batch = rows.batch(every, torch.zeros(E, dtype=torch.int64), masks, has_flags=has_flags)
    shape = NetworkShape(layout.n_inputs, len(n_levels), layout.n_outputs, depth, 8, LATENT, has_flags)
    parameters = Parameters(shape, E, CPU)
    parameters.initialise(torch.Generator().manual_seed(3))
    return layout, batch, parameters


def differentiate(parameters, layout, batch, noise, floors, **settings):
    """VLB and gradient by torch."""
    parameters.gradient.zero_()
    bound = lower_bound(parameters.tensors, layout, batch, noise, floors, **settings)
    (-bound.regularised.mean(1).sum()).backward()
    return bound.vlb.detach(), parameters.windows(parameters.gradient.clone())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("has_flags", "depth"), [(False, 1), (True, 3)])
def test_the_gradient_is_that_of_the_bound(mixed_rows, kind, has_flags, depth):
    n_levels = torch.tensor([3, 0, 0, 2, 0, 0])[KINDS[kind]].tolist()
    X = mixed_rows(B, gaps=0.1)[:, KINDS[kind]]
    layout, batch, parameters = pose(X, n_levels, has_flags=has_flags, depth=depth)
    floors, noise = torch.full((E, 1, layout.n_continuous), 0.7), torch.randn(E, B, LATENT)  # some scales are at floors
    regularise = Regulariser(3.0, 5.0, torch.tensor([[0.4], [1.0]]))  # far from weak, so that mistakes would show
    settings = {"latent_floor": 0.6, "regularise": regularise}
    vlb, expected = differentiate(parameters, layout, batch, noise, floors, **settings)
    parameters.gradient.fill_(9.0)  # what was there before does not count
    found = BoundGradient(parameters, layout, floors, 0.6)(batch, noise, regularise)
    torch.testing.assert_close(found, vlb)
    for name, window in parameters.windows(parameters.gradient).items():
        assert torch.allclose(window, expected[name], rtol=1e-4, atol=1e-6), name


def test_nothing_is_left_for_torch_to_differentiate(mixed_rows):
    layout, batch, parameters = pose(mixed_rows(B), [3, 0, 0, 2, 0, 0], has_flags=False, depth=2)
    bound = BoundGradient(parameters, layout, torch.full((E, 1, 4), 0.1), 1e-3)
    assert not bound(batch, torch.randn(E, B, LATENT), Regulariser(1e4, 1e4)).requires_grad
