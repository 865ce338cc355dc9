"""Captures and studies on disk: an HDF5 file each, never believed. h5py and numpy only."""

from hgviz.store.corpus import CorpusWriter
from hgviz.store.read import describe, is_capture, open_capture
from hgviz.store.study import is_study, open_study, require_place, write_study
from hgviz.store.write import Writer, write_capture

__all__ = [
    "CorpusWriter", "Writer", "describe", "is_capture", "is_study", "open_capture",
    "open_study", "require_place", "write_capture", "write_study",
]  # fmt: skip
