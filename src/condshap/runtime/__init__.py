"""How, never what: bars, threads, devices, memory, warnings. Nothing here has a say in the numbers."""
