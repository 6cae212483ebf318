from __future__ import annotations

import pytest
import torch
from torch.nn.functional import leaky_relu, linear, softplus

from condshap.vaeac.network.layers import NetworkShape, Parameters, decode, encode, encode_masked

PAPER = NetworkShape(n_inputs=10, n_features=10, n_outputs=20, depth=3, width=32, latent=8, has_flags=False)
SMALL = NetworkShape(n_inputs=5, n_features=3, n_outputs=7, depth=2, width=6, latent=2, has_flags=True)


def draw_parameters(shape, n_models, seed=0):
    parameters = Parameters(shape, n_models, torch.device("cpu"))
    parameters.initialise(torch.Generator().manual_seed(seed))
    return parameters


def test_the_papers_network_has_18724_parameters():
    assert PAPER.n_parameters == 18724
    assert Parameters(PAPER, 2, torch.device("cpu")).flat.numel() == 2 * 18724


@pytest.mark.parametrize(("M", "count"), [(5, 17294), (25, 24214), (250, 322564)])
def test_parameter_counts_grow_as_in_the_authors_code(M, count):
    assert NetworkShape(M, M, 2 * M, 3, 32, 8, False).n_parameters == count


def one_network(tensors, full_input, masked_input, z):
    """The architecture written out for a single network, with concatenations, after VAEAC.md."""

    def lin(x, weight, bias):
        return linear(x, weight.T, bias.reshape(-1))

    def encoder(which, x, name):
        h = leaky_relu(lin(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"]))
        memories = [h]
        for i in range(SMALL.depth):
            h = h + leaky_relu(lin(h, tensors[f"encoder_{i}.weight"][which], tensors[f"encoder_{i}.bias"][which]))
            memories.append(h)
        mean, raw = lin(h, tensors["heads.weight"][which], tensors["heads.bias"][which]).chunk(2, -1)
        return mean, softplus(raw).clamp(min=1e-3), memories

    full = encoder(0, full_input, "full_in")
    masked = encoder(1, masked_input, "masked_in")
    h = leaky_relu(lin(z, tensors["decoder_in.weight"], tensors["decoder_in.bias"]))
    for k in range(SMALL.depth + 1):
        both = torch.cat([h, masked[2][SMALL.depth - k]], -1)
        weight = torch.cat([tensors[f"decoder_{k}.weight"], tensors["memory.weight"][k]], 0)
        h = h + leaky_relu(lin(both, weight, tensors["memory.bias"][k]))
    both = torch.cat([h, masked_input], -1)
    weight = torch.cat([tensors["output.weight"], tensors["output_skip.weight"]], 0)
    return full[:2], masked[:2], lin(both, weight, tensors["output.bias"])


def test_batched_network_equals_single_networks_written_out():
    E, B, V = 3, 4, 5
    parameters = draw_parameters(SMALL, E)
    full_input, masked_input = torch.randn(E, B, SMALL.full_width), torch.randn(E, B, SMALL.masked_width)
    z = torch.randn(E, V, B, SMALL.latent)
    q, p, skips = encode(parameters.tensors, full_input, masked_input, 1e-3)
    outputs = decode(parameters.tensors, z, skips)
    for e in range(E):
        single = {name: tensor[e] for name, tensor in parameters.tensors.items()}
        for v in range(V):
            full, masked, expected = one_network(single, full_input[e], masked_input[e], z[e, v])
            torch.testing.assert_close(outputs[e, v], expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(torch.stack([*q, *p])[:, e], torch.stack([*full, *masked]), rtol=1e-5, atol=1e-6)


def test_masked_encoder_alone_gives_the_same():
    parameters = draw_parameters(SMALL, 2)
    full_input, masked_input = torch.randn(2, 3, SMALL.full_width), torch.randn(2, 3, SMALL.masked_width)
    _, p, skips = encode(parameters.tensors, full_input, masked_input, 1e-3)
    alone, own_skips = encode_masked(parameters.tensors, masked_input.mT, 1e-3)
    torch.testing.assert_close(alone.mean.mT, p.mean)
    torch.testing.assert_close(alone.scale.mT, p.scale)
    torch.testing.assert_close(own_skips.output.mT, skips.output)
    torch.testing.assert_close(torch.stack(own_skips.memories).mT, torch.stack(skips.memories))


def test_gradients_reach_every_parameter():
    parameters = draw_parameters(SMALL, 2)
    full_input, masked_input = torch.randn(2, 9, SMALL.full_width), torch.randn(2, 9, SMALL.masked_width)
    q, p, skips = encode(parameters.tensors, full_input, masked_input, 1e-3)
    (decode(parameters.tensors, (q.mean * p.scale).unsqueeze(1), skips).sum() + q.scale.sum() + p.mean.sum()).backward()
    for name, window in parameters.windows(parameters.gradient).items():
        assert window.flatten(1).abs().sum(1).gt(0).all(), name


def test_choose_picks_models():
    parameters = draw_parameters(SMALL, 4)
    chosen = Parameters(SMALL, 2, torch.device("cpu"))
    chosen.flat.copy_(parameters.choose(parameters.flat, torch.tensor([2, 0])))
    for name, window in chosen.windows(chosen.flat).items():
        assert torch.equal(window, parameters.tensors[name][[2, 0]])
