"""The variational lower bound and the importance-weighted estimate of the log-likelihood."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from condshap.vaeac.columns.encoded_rows import Batch
from condshap.vaeac.columns.encoding import Layout
from condshap.vaeac.network.layers import Latent, decode, encode
from condshap.vaeac.network.likelihoods import gaussian_log_density, log_likelihood


class Bound(NamedTuple):
    """Per row: the regularised bound (E, B) that is maximised, the plain one (E, B), and the KL by latent unit (E, B, d)."""

    regularised: Tensor
    vlb: Tensor
    kl: Tensor


class Regulariser(NamedTuple):
    """What holds latents in place while networks are trained (section 3.3.1 of the paper).

    Attributes
    ----------
    sigma_mu, sigma_sigma : widths of the priors of the masked encoder's means and scales
    kl_weight : of the KL divergence in the bound that is maximised, one for all models or (E, 1)
    """

    sigma_mu: float
    sigma_sigma: float
    kl_weight: Tensor | float = 1.0

    def __call__(self, fit: Tensor, divergence: Tensor, p: Latent) -> Tensor:
        """Bound that is maximised, (E, B), from log-likelihoods and KL divergences of the same shape."""
        return fit - self.kl_weight * divergence + latent_prior(p, self.sigma_mu, self.sigma_sigma)

    def gradient(self, q: Latent, p: Latent, upstream: Tensor) -> tuple[Latent, Latent]:
        """Gradient of all but the fit with respect to both latents, times `upstream` (E, B)."""
        ratio, apart, by_kl = q.scale / p.scale, (q.mean - p.mean) / p.scale, -(upstream * self.kl_weight).unsqueeze(-1)
        by_ratio, by_apart = by_kl * ratio - by_kl / ratio, by_kl * apart
        by_mean, weak = by_apart / p.scale, (upstream / self.sigma_sigma).unsqueeze(-1)
        by_prior = (-(upstream / (2 * self.sigma_mu**2))).unsqueeze(-1) * (2 * p.mean)
        scale = (weak / p.scale - weak).sub_(by_apart * (apart / p.scale)).sub_(by_ratio * (ratio / p.scale))
        return Latent(by_mean, by_ratio / p.scale), Latent(by_prior - by_mean, scale)


def kl_divergence(q: Latent, p: Latent) -> Tensor:
    """KL(q || p) of diagonal Gaussians, one number per latent unit, shape of q.mean."""
    ratio = q.scale / p.scale
    return 0.5 * (ratio**2 + ((q.mean - p.mean) / p.scale) ** 2 - 1) - ratio.log()


def latent_prior(p: Latent, sigma_mu: float, sigma_sigma: float) -> Tensor:
    """Log-priors of the masked encoder's mean and scale, up to constants (section 3.3.1 of the paper), shape (E, B)."""
    mean = -(p.mean**2).sum(-1) / (2 * sigma_mu**2)
    return mean + (p.scale.log() - p.scale).sum(-1) / sigma_sigma


def lower_bound(
    tensors: dict[str, Tensor],
    layout: Layout,
    batch: Batch,
    noise: Tensor,
    floors: Tensor,
    *,
    latent_floor: float,
    regularise: Regulariser,
) -> Bound:
    """Estimate the VLB (eq. 6 of the paper) with one reparameterised latent per row; `gradient` has it with its derivatives.

    Parameters
    ----------
    noise : (E, B, d) standard normals
    floors : (E, 1, Mc) least standard deviations of the Gaussian heads
    """
    q, p, skips = encode(tensors, batch.full_input, batch.masked_input, latent_floor)
    z = torch.addcmul(q.mean, q.scale, noise)
    fit = log_likelihood(layout, decode(tensors, z.unsqueeze(1), skips), batch.targets, floors).squeeze(1)
    kl = kl_divergence(q, p)
    divergence = kl.sum(-1)
    return Bound(regularise(fit, divergence, p), fit - divergence, kl)


def importance_bound(
    tensors: dict[str, Tensor], layout: Layout, batch: Batch, noise: Tensor, floors: Tensor, *, latent_floor: float
) -> tuple[Tensor, Tensor]:
    """Importance-weighted estimate of log p(x_unknown | x_known) (appendix C.2 of the paper, with q given x and mask).

    Parameters
    ----------
    noise : (E, V, B, d) standard normals, V draws of the latent per row

    Returns
    -------
    (E, B) estimates, and (E, B, d) KL divergences by latent unit
    """
    q, p, skips = encode(tensors, batch.full_input, batch.masked_input, latent_floor)
    z = torch.addcmul(q.mean.unsqueeze(1), q.scale.unsqueeze(1), noise)  # (E, V, B, d)
    fit = log_likelihood(layout, decode(tensors, z, skips), batch.targets, floors)
    prior = gaussian_log_density(z, p.mean.unsqueeze(1), p.scale.unsqueeze(1)).sum(-1)
    proposal = gaussian_log_density(z, q.mean.unsqueeze(1), q.scale.unsqueeze(1)).sum(-1)
    weights = fit + prior - proposal
    return weights.logsumexp(dim=1) - log(noise.shape[1]), kl_divergence(q, p)
