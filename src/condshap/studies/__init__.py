"""The paper's simulation studies: where data come from whose Shapley values are known."""
