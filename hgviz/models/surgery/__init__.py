"""Models made of others: heads removed, shared or compensated, and the proof of it."""
