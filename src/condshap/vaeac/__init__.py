"""Variational autoencoder with arbitrary conditioning: all conditional distributions of a table in one ensemble.

The package knows nothing about Shapley values. It reads encoded rows (numbers as they are, levels as codes, NaN for
gaps) and coalitions (True = known), and needs numpy, scipy and torch only; `estimator` and `options`, which put a table face
on it, need pandas and scikit-learn too. Names are imported when they are first used, so that options cost no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condshap.vaeac.config import VAEACConfig
    from condshap.vaeac.ensemble import Networks

__all__ = ["Networks", "VAEACConfig"]

_HOME = {"Networks": "ensemble", "VAEACConfig": "config"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'condshap.vaeac' has no attribute {name!r}")
    found = getattr(import_module(f"condshap.vaeac.{_HOME[name]}"), name)
    globals()[name] = found
    return found
