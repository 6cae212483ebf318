"""How long things take, how much memory they hold, and beside whom."""
