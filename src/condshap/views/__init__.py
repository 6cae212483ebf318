"""Parts of an explanation: some rows, players or outputs, sizes and summaries over rows, cohorts."""
