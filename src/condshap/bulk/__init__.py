"""Many rows: a dataset that is never in memory as a whole -> parts of explanations in a folder, and back."""
