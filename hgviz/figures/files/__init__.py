"""Figures as files: PDF, SVG, PNG, PGF, the same bytes every time; what goes beside them."""
