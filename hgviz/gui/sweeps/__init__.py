"""A study of many runs in the window: its cells as they stand, what they found, what runs."""
