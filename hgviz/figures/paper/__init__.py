"""What every figure stands on: the page, its type and axes, labels, colours."""
