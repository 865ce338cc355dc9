"""The kinds of figures, each drawn on a page, and the parts that several of them share."""
