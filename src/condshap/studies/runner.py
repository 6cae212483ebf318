"""Studies, and what runs them; see `condshap.studies.running.runner`."""

from condshap.studies.running.runner import TRUTH, Failure, How, Outcome, Study, Work, run, run_all

__all__ = ["TRUTH", "Failure", "How", "Outcome", "Study", "Work", "run", "run_all"]
