"""From stored results to pages: summaries, tables beside the paper's printed figures, times."""
