"""hgviz shows and measures attention at every resolution, of every head, signed or not.

One heavy library per package, and the packages meet only in `tasks`:
torch in models, numpy in analysis and maps, h5py in store, matplotlib in figures, Qt in gui.
`core` and `activations` hold the shared types; `cli`, `gui` and `notebook` use the same tasks.
From Python: hgviz.open_model, capture, roles, evaluate, importance, prune, figure, show and others
(docs/how-to/notebook.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
_API = (
    "capture curve evaluate importance open_capture open_model prune roles rollout show "
    "write_capture"
)
_NOTEBOOK = "compare figure reach redundancy"
MODULES = {
    **dict.fromkeys(_API.split(), "hgviz.api"),
    **dict.fromkeys(_NOTEBOOK.split(), "hgviz.notebook"),
    **dict.fromkeys(("Observer", "Run"), "hgviz.models.run"),
    "HgvizError": "hgviz.errors",
}


def __getattr__(name: str) -> Any:
    """A function is imported when it is asked for: `import hgviz` costs nothing."""
    if name in MODULES:
        return getattr(import_module(MODULES[name]), name)
    raise AttributeError(f"module 'hgviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES})
