"""Pure kernels on arrays: no data frames, no global random state, no input or output."""
