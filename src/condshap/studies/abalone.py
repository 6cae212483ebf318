"""The Abalone data as a cell; see `condshap.studies.problems.abalone`."""

from condshap.studies.problems.abalone import AbaloneCell

__all__ = ["AbaloneCell"]
