"""Flat options of a VAEAC in the manner of scikit-learn: one parameter per field of the configuration, and a device."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

from sklearn.base import BaseEstimator

from condshap.exceptions import OptionError
from condshap.vaeac.config import VAEACConfig, VAEACFields


@dataclass(kw_only=True, repr=False, eq=False)  # repr and identity are scikit-learn's
class VAEACOptions(VAEACFields, BaseEstimator):  # type: ignore[misc]
    """Options that the network alone and the approach have in common.

    The constructor, which dataclasses write, only stores; `config` checks, and `fit` asks for that.

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

    device: str = "auto"

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
