"""How models are asked: their tables, calls and outputs, trees in their place, and what is read of additive models."""
