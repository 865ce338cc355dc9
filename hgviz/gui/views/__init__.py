"""The pictures of the window. A new view is one more name in VIEWS."""
