"""The pictures of the window; hgviz.gui.pages says which stand where."""
