"""Explanations -> one self-contained HTML page."""

from __future__ import annotations

from condshap.reporting.page import report

__all__ = ["report"]
