"""hgviz looks into attention: at every resolution, of every head, signed or not.

One heavy library per package, and the packages meet only in `tasks`:
torch in models, numpy in analysis and maps, h5py in store, matplotlib in figures, Qt in gui.
`core` and `activations` hold the nouns; `cli` and `gui` are two faces over the same tasks.
"""

__version__ = "0.1.0"
