"""Columns of a table <-> what networks read: names, levels, scales, supports, repeats, linear advice."""
