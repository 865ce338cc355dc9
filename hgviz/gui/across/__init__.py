"""All levels composed: the map of all maps, one answer, what takes the long way."""
