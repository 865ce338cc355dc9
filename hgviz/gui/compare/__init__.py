"""Two captures side by side: their maps, their numbers, their text."""
