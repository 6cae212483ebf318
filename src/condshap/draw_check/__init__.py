"""Training rows beside draws: how much they look alike."""

from condshap.draw_check.result import Departure, DrawCheck

__all__ = ["Departure", "DrawCheck"]
