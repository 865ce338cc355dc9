"""The words of the window, in English.

Every text that people read in the window goes through `tr`, the one place where a translation can
be looked up. Plain formatting: Qt's translate takes no file name that is not valid UTF-8, and
modules that only find words need not import Qt.
"""

from __future__ import annotations


def tr(text: str, /, **parts: object) -> str:
    """Return the text with parts filled into its {names}; without parts, the text as it is."""
    return text.format(**parts) if parts else text
