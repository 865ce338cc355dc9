"""What the window says about itself: what a pane shows and how to read it, keys, and what it is."""
