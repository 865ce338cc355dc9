"""The pictures of the window, and what they are drawn with; which there are: hgviz.gui.looks."""
