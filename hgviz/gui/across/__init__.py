"""All levels composed: the map of all maps, the flow of one answer, what takes the long way."""
