"""Parts of ``network_precision``: other arithmetics, sampling with them, and tables."""
