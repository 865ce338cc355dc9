"""The docks at the right."""
