"""Functions that are sums of one function per feature, under an older path; see `condshap.numerics.additive`."""

from condshap.numerics.additive import AdditiveFunction, AffineFunction

__all__ = ["AdditiveFunction", "AffineFunction"]
