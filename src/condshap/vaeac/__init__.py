"""Variational autoencoder with arbitrary conditioning: all conditional distributions of a table in one ensemble.

The package knows nothing about Shapley values. It reads encoded rows (numbers as they are, levels as codes, NaN for
gaps) and coalitions (True = known), and needs numpy, scipy and torch only.
"""

from condshap.vaeac.config import VAEACConfig
from condshap.vaeac.model import Networks

__all__ = ["Networks", "VAEACConfig"]
