"""Parts of ``network_precision``: other arithmetic, sampling with them, and tables."""
