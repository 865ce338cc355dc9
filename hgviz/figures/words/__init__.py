"""Figures without their picture: what they show in sentences, and their numbers in tables."""
