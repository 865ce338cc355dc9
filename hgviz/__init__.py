"""hgviz looks into attention: at every resolution, of every head, signed or not.

One heavy library per package, and the packages meet only in `tasks`:
torch in models, numpy in analysis and maps, h5py in store, matplotlib in figures, Qt in gui.
`core` and `activations` hold the nouns; `cli`, `gui` and `notebook` are faces over the same tasks.
From a notebook: hgviz.figure, compare, reach, redundancy, capture (docs/notebook.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
NOTEBOOK = "capture", "compare", "figure", "reach", "redundancy"


def __getattr__(name: str) -> Any:
    """What a notebook asks for is imported when it does: `import hgviz` costs nothing."""
    if name in NOTEBOOK:
        return getattr(import_module("hgviz.notebook"), name)
    raise AttributeError(f"module 'hgviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NOTEBOOK})
