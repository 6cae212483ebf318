"""The paper's figures, made again: one file each, which turns numbers into a matplotlib figure."""
