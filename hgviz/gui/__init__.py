"""The desktop window: PySide6 over the same tasks as the command line."""
