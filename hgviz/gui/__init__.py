"""The desktop window: PySide6 and pyqtgraph over the same tasks as the command line."""
