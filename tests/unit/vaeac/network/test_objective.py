from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Gamma, Normal
from torch.distributions import kl_divergence as reference_kl
from torch.nn.functional import softplus

from condshap.vaeac.columns.encoded_rows import Batch, EncodedRows, Targets
from condshap.vaeac.columns.encoding import Layout, learn_scale
from condshap.vaeac.network.layers import Latent, NetworkShape, Parameters, decode, encode
from condshap.vaeac.network.likelihoods import log_likelihood, marginal_bias
from condshap.vaeac.network.objective import Regulariser, importance_bound, kl_divergence, latent_prior, lower_bound

CPU = torch.device("cpu")
LAYOUT = Layout.of([3, 0, 0, 2, 0, 0])


def latent(*shape):
    return Latent(torch.randn(shape), torch.rand(shape) + 0.2)


def test_kl_equals_the_reference():
    q, p = latent(2, 5, 3), latent(2, 5, 3)
    torch.testing.assert_close(kl_divergence(q, p), reference_kl(Normal(*q), Normal(*p)))


def test_latent_prior_is_the_log_density_up_to_a_constant():
    p, other = latent(1, 50, 3), latent(1, 50, 3)

    def reference(x):
        return (Normal(0.0, 2.0).log_prob(x.mean) + Gamma(1 + 1 / 5, 1 / 5).log_prob(x.scale)).sum(-1)

    found = latent_prior(p, 2.0, 5.0) - latent_prior(other, 2.0, 5.0)
    torch.testing.assert_close(found, reference(p) - reference(other), rtol=1e-4, atol=1e-4)


def test_log_likelihood_equals_distributions_of_torch():
    E, V, B, Mc = 2, 3, 4, LAYOUT.n_continuous
    outputs = torch.randn(E, V, B, LAYOUT.n_outputs)
    numbers, codes = torch.randn(E, B, Mc), torch.stack([torch.randint(2, (E, B)), torch.randint(3, (E, B))], -1)
    counted = torch.randint(2, (E, B, 6)).float()
    floors = torch.full((E, 1, Mc), 0.3)
    found = log_likelihood(LAYOUT, outputs, Targets(numbers, codes, counted), floors)
    scale = softplus(outputs[..., Mc : 2 * Mc]).clamp(min=0.3)
    expected = (Normal(outputs[..., :Mc], scale).log_prob(numbers.unsqueeze(1)) * counted[:, None, :, :Mc]).sum(-1)
    for i, columns in enumerate([slice(8, 10), slice(10, 13)]):
        level = Categorical(logits=outputs[..., columns]).log_prob(codes[:, None, :, i].expand(E, V, B))
        expected = expected + level * counted[:, None, :, Mc + i]
    torch.testing.assert_close(found, expected)


@pytest.fixture
def a_batch(mixed_rows):
    return lambda n_models, has_flags=False: make_batch(mixed_rows, n_models, has_flags)


def make_batch(mixed_rows, n_models, has_flags):
    X = mixed_rows(40, gaps=0.1)
    numbers = X[:, list(LAYOUT.order)[: LAYOUT.n_continuous]]
    rows = EncodedRows.of(LAYOUT, [learn_scale("standard", numbers, cut=True)], X, CPU)
    masks = torch.randint(2, (n_models, 40, 6)).float()
    scale_of = torch.zeros(n_models, dtype=torch.int64)
    batch = rows.batch(torch.arange(40).expand(n_models, -1), scale_of, masks, has_flags=has_flags)
    shape = NetworkShape(LAYOUT.n_inputs, 6, LAYOUT.n_outputs, 2, 8, 3, has_flags)
    parameters = Parameters(shape, n_models, CPU)
    parameters.initialise(torch.Generator().manual_seed(3))
    return rows, batch, parameters


def test_iwae_equals_a_loop_over_draws(a_batch):
    _, batch, parameters = a_batch(2)
    floors, V = torch.full((2, 1, 4), 0.1), 6
    noise = torch.randn(2, V, 40, 3)
    found, kl = importance_bound(parameters.tensors, LAYOUT, batch, noise, floors, latent_floor=1e-3)
    q, p, skips = encode(parameters.tensors, batch.full_input, batch.masked_input, 1e-3)
    weights = []
    for v in range(V):
        z = q.mean + q.scale * noise[:, v]
        fit = log_likelihood(LAYOUT, decode(parameters.tensors, z.unsqueeze(1), skips), batch.targets, floors)[:, 0]
        weights.append(fit + Normal(*p).log_prob(z).sum(-1) - Normal(*q).log_prob(z).sum(-1))
    expected = torch.stack(weights).double().exp().mean(0).log().float()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(kl, kl_divergence(q, p))


def test_iwae_with_many_draws_is_at_least_the_bound(a_batch):
    _, batch, parameters = a_batch(1)
    floors = torch.full((1, 1, 4), 0.1)
    with torch.no_grad():
        many, _ = importance_bound(
            parameters.tensors, LAYOUT, batch, torch.randn(1, 400, 40, 3), floors, latent_floor=1e-3
        )
        settings = {"latent_floor": 1e-3, "regularise": Regulariser(1e4, 1e4)}
        single = [
            lower_bound(parameters.tensors, LAYOUT, batch, torch.randn(1, 40, 3), floors, **settings) for _ in range(50)
        ]
    assert many.mean() > torch.stack([bound.vlb for bound in single]).mean()
    assert torch.allclose(single[0].regularised, single[0].vlb, atol=1e-2)  # the priors are weak


def test_bound_ignores_what_is_known_and_what_is_missing(a_batch):
    rows, batch, _ = a_batch(1)
    counted = batch.targets.counted
    assert (counted[0] * rows.missing).sum() == 0
    masks = batch.masked_input[..., -6:]
    assert torch.equal(counted, masks * (1 - rows.missing))
    assert (masks[0][rows.missing == 1] == 1).all()


def test_zero_initialised_network_starts_at_the_marginals(a_batch):
    rows, batch, parameters = a_batch(2)
    parameters.start_at(marginal_bias(LAYOUT, rows.codes, rows.missing))
    _, _, skips = encode(parameters.tensors, batch.full_input, batch.masked_input, 1e-3)
    outputs = decode(parameters.tensors, torch.randn(2, 1, 40, 3), skips)[0, 0]
    assert (outputs == outputs[0]).all()
    assert torch.equal(outputs[0, :4], torch.zeros(4))
    torch.testing.assert_close(softplus(outputs[0, 4:8]), torch.ones(4))
    present = rows.missing[:, 5] == 0
    share = torch.bincount(rows.codes[present, 1], minlength=3) + 0.5
    torch.testing.assert_close(outputs[0, 10:13].softmax(0), share / share.sum())


def test_masked_level_is_all_zero_and_known_level_one_hot(a_batch):
    _, batch, _ = a_batch(1)
    block = batch.masked_input[0, :, 4:6].sum(-1)  # the two-level feature, internal position 4
    hidden = batch.masked_input[0, :, LAYOUT.n_inputs + 4]
    assert torch.equal(block, 1 - hidden)


def test_flags_tell_missing_known_features_from_masked_ones(a_batch):
    rows, batch, _ = a_batch(1, has_flags=True)
    masks, flags = batch.masked_input[0, :, -12:-6], batch.masked_input[0, :, -6:]
    assert torch.equal(flags, rows.missing * (1 - masks))
    pretended = torch.ones(1, 40, 6)
    zeros = torch.zeros(1, 40, 6)
    all_flagged = rows.batch(
        torch.arange(40)[None], torch.zeros(1, dtype=torch.int64), zeros, has_flags=True, pretended=pretended
    )
    assert (all_flagged.masked_input[0, :, -6:] == 1).all()
    assert (all_flagged.masked_input[0, :, :-6] == 0).all()
    assert torch.equal(all_flagged.targets.counted[0], 1 - rows.missing)
    assert isinstance(all_flagged, Batch)
    assert np.isfinite(all_flagged.full_input.numpy()).all()
