"""Captures and studies on disk: an HDF5 file each, opened without trusting it. h5py and numpy."""

from hgviz.store.captures import (
    CorpusWriter,
    Writer,
    capture_of,
    describe,
    is_capture,
    open_capture,
    write_capture,
)
from hgviz.store.studies import is_study, open_study, require_place, write_study

__all__ = [
    "CorpusWriter", "Writer", "capture_of", "describe", "is_capture", "is_study", "open_capture",
    "open_study", "require_place", "write_capture", "write_study",
]  # fmt: skip
