"""Figures that the paper prints; see `condshap.studies.pages.published`."""

from condshap.studies.pages.published import published, published_for

__all__ = ["published", "published_for"]
