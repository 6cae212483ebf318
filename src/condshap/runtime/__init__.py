"""How, never what: bars, threads, devices, memory, warnings. Nothing here affects the numbers."""
