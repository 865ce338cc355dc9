"""What is kept between two runs: files opened last, sessions, preferences, what would be lost."""
