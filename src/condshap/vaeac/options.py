"""Flat options of a VAEAC in the manner of scikit-learn: one parameter per field of the configuration, and a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

from sklearn.base import BaseEstimator

from condshap.exceptions import OptionError
from condshap.vaeac.config import VAEACConfig


class VAEACOptions(BaseEstimator):  # type: ignore[misc]
    """Options that the network alone and the approach have in common.

    The constructor stores; `config` checks, which `fit` asks for.

    Parameters
    ----------
    depth, width, latent, ..., refit : the attributes of `condshap.vaeac.config.VAEACConfig`, with the same defaults; None
        means "from the data"
    device : "cpu", "cuda" or "auto", which is the accelerator where there is one

    Examples
    --------
    >>> VAEACOptions(epochs=50).config.epochs
    50
    >>> VAEACOptions.paper(width=16).n_restarts
    15
    """

    def __init__(
        self,
        *,
        depth: int = 3,
        width: int | None = None,
        latent: int | None = None,
        scales: Sequence[str] | None = None,
        n_restarts: int = 1,
        restart_epochs: int = 5,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        schedule: str = "constant",
        validation_share: float = 0.25,
        max_validation: int | None = 2500,
        validate_every: int = 2,
        n_importance: int = 10,
        patience: int | None = 40,
        ema: float | None = 0.99,
        advice: bool = True,
        kl_warmup: int | None = None,
        companions: bool = True,
        zero_init: bool | None = None,
        masking: str = "coalitions",
        size_probabilities: Sequence[float] | None = None,
        mask_floor: float = 0.05,
        missing_flags: bool = True,
        artificial_missing: float = 0.1,
        respect_support: bool = True,
        sigma_mu: float = 1e4,
        sigma_sigma: float = 1e4,
        latent_floor: float = 1e-3,
        scale_floor: float = 1e-3,
        draws: str = "nets",
        refit: bool = False,
        device: str = "auto",
    ) -> None:
        self.depth = depth
        self.width = width
        self.latent = latent
        self.scales = scales
        self.n_restarts = n_restarts
        self.restart_epochs = restart_epochs
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.validation_share = validation_share
        self.max_validation = max_validation
        self.validate_every = validate_every
        self.n_importance = n_importance
        self.patience = patience
        self.ema = ema
        self.advice = advice
        self.kl_warmup = kl_warmup
        self.companions = companions
        self.zero_init = zero_init
        self.masking = masking
        self.size_probabilities = size_probabilities
        self.mask_floor = mask_floor
        self.missing_flags = missing_flags
        self.artificial_missing = artificial_missing
        self.respect_support = respect_support
        self.sigma_mu = sigma_mu
        self.sigma_sigma = sigma_sigma
        self.latent_floor = latent_floor
        self.scale_floor = scale_floor
        self.draws = draws
        self.refit = refit
        self.device = device

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return the paper's settings (appendix C.2), with single options changed."""
        return cls(**{**options_of(VAEACConfig.paper()), **overrides})

    @property
    def config(self) -> VAEACConfig:
        """The options, checked, as the networks want them."""
        values: dict[str, Any] = {}
        for field in fields(VAEACConfig):
            value = getattr(self, field.name)
            values[field.name] = tuple(value) if isinstance(value, list) else value
        if isinstance(self.scales, str):
            raise OptionError(f"scales must have one entry per network, got {self.scales!r}. Write [{self.scales!r}].")
        return VAEACConfig(**values)


def options_of(config: VAEACConfig) -> dict[str, Any]:
    """Turn a configuration into options by name."""
    return {field.name: getattr(config, field.name) for field in fields(config)}
