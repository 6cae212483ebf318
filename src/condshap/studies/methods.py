"""Methods of a study by name; see `condshap.studies.running.methods`."""

from condshap.studies.running.methods import Method, available_methods, find_method

__all__ = ["Method", "available_methods", "find_method"]
