"""All heads at once: a scatter of two metrics, a table of all, and where each does its thing."""
