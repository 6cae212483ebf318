"""Stored results of a study; see `condshap.studies.running.store`."""

from condshap.studies.running.store import Key, Result, Store

__all__ = ["Key", "Result", "Store"]
