"""Results of a study, summarised; see `condshap.studies.pages.summary`."""

from condshap.studies.pages.summary import Results, ratio_of_means, read_results, summarise

__all__ = ["Results", "ratio_of_means", "read_results", "summarise"]
