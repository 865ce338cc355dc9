"""Figures as files: PDF, SVG, PNG, PGF, TikZ, the same bytes every time; what goes beside them."""
