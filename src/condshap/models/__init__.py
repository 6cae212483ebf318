"""Calling models: their tables, calls and outputs, fast trees in their place, and what is read from additive models."""
