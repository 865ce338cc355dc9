"""Captures on disk: one HDF5 file, read lazily and never believed. h5py and numpy only."""

from hgviz.store.corpus import CorpusWriter
from hgviz.store.read import describe, is_capture, open_capture
from hgviz.store.write import Writer, write_capture

__all__ = ["CorpusWriter", "Writer", "describe", "is_capture", "open_capture", "write_capture"]
