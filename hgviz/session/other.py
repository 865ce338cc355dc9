"""How the second side of a comparison comes to be from the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hgviz.core import HeadSet

Kind = Literal["activation", "model", "text", "off", "head"]


@dataclass(frozen=True, slots=True)
class Other:
    """What B is, beside A.

    activation: the same checkpoint on the same text, its attention exchanged for `activation`, ""
    for its own. model: the checkpoint or capture at `path`, a checkpoint on the same text, its
    attention exchanged where `activation` says so. text: the same model on `text` and `second`.
    off: the same model on the same text without the heads `off`, none for the whole of it. head:
    another head of the same capture, such as one of another level, which Selection.beside names.
    """

    kind: Kind
    activation: str = ""
    path: str = ""
    text: str = ""
    second: str = ""
    off: HeadSet = frozenset()
