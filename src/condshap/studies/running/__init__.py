"""From the name of a study to stored results: which methods run on which problems, and what is still to be run."""
