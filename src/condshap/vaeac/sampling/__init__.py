"""Trained weights -> draws, expectations and densities; and members that draw without a network."""
