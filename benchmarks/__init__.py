"""Speed and memory, measured side by side with what it is compared to."""
