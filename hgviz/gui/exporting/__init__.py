"""Figures from the window: what can be drawn, what it will look like, and where it goes."""
