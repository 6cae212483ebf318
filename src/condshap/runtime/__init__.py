"""How, never what: bars, threads, devices, warnings. Nothing here has a say in the numbers."""
