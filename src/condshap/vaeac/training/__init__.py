"""Encoded rows -> trained weights: masks, steps, learning rates, validation, checkpoints."""
