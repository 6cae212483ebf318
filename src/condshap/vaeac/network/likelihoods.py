"""Decoder outputs -> log-densities: Gaussian heads for continuous features, categorical heads for levels."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softplus

from condshap.vaeac.columns.encoded_rows import Targets
from condshap.vaeac.columns.encoding import Layout

_RAW_ONE = 0.5413248546129181  # softplus of this is 1


def log_likelihood(layout: Layout, outputs: Tensor, targets: Targets, floors: Tensor) -> Tensor:
    """Log-density log p_theta(x_unknown | z, x_known), summed over the counted features.

    Parameters
    ----------
    outputs : (E, V, B, D2) of the decoder
    floors : (E, 1, Mc) least standard deviations of the Gaussian heads

    Returns
    -------
    (E, V, B)
    """
    Mc = layout.n_continuous
    total = outputs.new_zeros(())
    counted = targets.counted.unsqueeze(1)
    if Mc:
        mean, raw = outputs[..., : 2 * Mc].chunk(2, dim=-1)
        density = gaussian_log_density(targets.numbers.unsqueeze(1), mean, gaussian_scale(raw, floors.unsqueeze(1)))
        total = (density * counted[..., :Mc]).sum(-1)
    for group in layout.groups:
        logits = outputs[..., 2 * Mc :][..., group.columns].reshape(*outputs.shape[:3], group.n, group.n_levels)
        codes = targets.codes[..., group.first - Mc : group.first - Mc + group.n].unsqueeze(1).unsqueeze(-1)
        found = log_softmax(logits, dim=-1).gather(-1, codes.expand(*logits.shape[:-1], 1)).squeeze(-1)
        total = total + (found * counted[..., group.first : group.first + group.n]).sum(-1)
    return total


def log_likelihood_gradient(
    layout: Layout, outputs: Tensor, targets: Targets, floors: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-density (E, B) as above, and its gradient (E, B, D2) times `upstream` (E, B), for outputs (E, B, D2)."""
    Mc, total, gradient = layout.n_continuous, outputs.new_zeros(()), torch.empty_like(outputs)
    by_feature = upstream.unsqueeze(-1) * targets.counted
    if Mc:
        raw, by_number = outputs[..., Mc : 2 * Mc], by_feature[..., :Mc]
        soft = softplus(raw)
        scale = torch.maximum(soft, floors)
        z = (targets.numbers - outputs[..., :Mc]) / scale
        density = -0.5 * z**2 - scale.log() - 0.5 * log(2 * pi)
        total = (density * targets.counted[..., :Mc]).sum(-1)
        moved = by_number * z
        by_scale = (moved * (z / scale)).sub_(by_number / scale).masked_fill_(soft < floors, 0.0)
        torch.div(moved, scale, out=gradient[..., :Mc])
        gradient[..., Mc : 2 * Mc] = softplus_gradient(by_scale, raw)
    for group in layout.groups:
        own, levels = slice(group.first, group.first + group.n), (*outputs.shape[:2], group.n, group.n_levels)
        shares = log_softmax(outputs[..., 2 * Mc :][..., group.columns].reshape(levels), dim=-1)
        codes = targets.codes[..., group.first - Mc : group.first - Mc + group.n].unsqueeze(-1)
        found = shares.gather(-1, codes).squeeze(-1)
        total = total + (found * targets.counted[..., own]).sum(-1)
        by_share = torch.zeros_like(shares).scatter_(-1, codes, by_feature[..., own].unsqueeze(-1))
        by_logit = torch.ops.aten._log_softmax_backward_data(by_share, shares, -1, shares.dtype)
        gradient[..., 2 * Mc :][..., group.columns] = by_logit.flatten(-2)
    return total, gradient


def softplus_gradient(upstream: Tensor, raw: Tensor) -> Tensor:
    """Gradient of softplus at `raw`, times `upstream`, element by element."""
    found: Tensor = torch.ops.aten.softplus_backward(upstream, raw, 1.0, 20.0)
    return found


def gaussian_scale(raw: Tensor, floor: Tensor | float) -> Tensor:
    """Standard deviation of a Gaussian head, max(softplus(raw), floor)."""
    scale = softplus(raw)
    return torch.maximum(scale, floor) if isinstance(floor, Tensor) else scale.clamp(min=floor)


def gaussian_log_density(x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Log-density log N(x | mean, scale^2), element by element."""
    return -0.5 * ((x - mean) / scale) ** 2 - scale.log() - 0.5 * log(2 * pi)


def marginal_bias(layout: Layout, codes: Tensor, missing: Tensor) -> Tensor:
    """Output bias (D2,) at which every head is the feature's marginal distribution.

    Mean 0 and scale 1 on every scale, and log-frequencies of levels with half a count added to each.

    Parameters
    ----------
    codes : (N, M - Mc) levels
    missing : (N, M) 1 where missing
    """
    Mc = layout.n_continuous
    bias = torch.zeros(layout.n_outputs, device=missing.device)
    bias[Mc : 2 * Mc] = _RAW_ONE
    for group in layout.groups:
        for i in range(group.n):
            feature = group.first + i
            seen = codes[missing[:, feature] == 0, feature - Mc]
            counts = torch.bincount(seen, minlength=group.n_levels).double() + 0.5
            start = 2 * Mc + group.start + i * group.n_levels
            bias[start : start + group.n_levels] = (counts / counts.sum()).log().float()
    return bias
