"""What is measured of a model by running it: slopes, variants, reach, cost and time."""
