"""Checkpoints: which formats there are, how each is read safely and written back."""
