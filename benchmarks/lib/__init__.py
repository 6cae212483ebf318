"""What the benchmarks share: measuring, problems, reports, and figures of others."""
