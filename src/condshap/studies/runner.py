"""Studies, and what runs them; see `condshap.studies.running.runner`."""

from condshap.studies.running.runner import TRUTH, Failure, Study, run

__all__ = ["TRUTH", "Failure", "Study", "run"]
