"""Questions that were asked once: each file says on top what was asked and what came out."""
