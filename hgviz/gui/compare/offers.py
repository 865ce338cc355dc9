"""What can stand on either side of a comparison: the lists that the menus and the dialog offer."""

from __future__ import annotations

from collections.abc import Iterator

from hgviz.activations import ACTIVATIONS, SIX
from hgviz.core import HeadId, ModelSpec, Off
from hgviz.gui.composing import LARGEST
from hgviz.session import Session


def activations(spec: ModelSpec, now: str) -> Iterator[tuple[str, str]]:
    """What a checkpoint can be opened with other than what A has, and how that is called.

    now: what A was opened with, "" for its own.
    """
    own = {name for layer in spec.layers for name in layer.activations}
    if now:
        yield "", "Its own"
    for row in ACTIVATIONS.values():
        if row.name == "topk":
            if now != f"topk:{LARGEST}":
                yield f"topk:{LARGEST}", f"softmax of the {LARGEST} largest"
        elif own != {row.name}:
            yield row.name, row.label
    heads = {1 + max(layer.heads) for layer in spec.layers if layer.heads}
    if heads and all(count % len(SIX) == 0 for count in heads) and own != {*SIX}:
        yield ",".join(SIX), "Six, over the heads"


def levels(session: Session) -> Iterator[tuple[HeadId, str]]:
    """The head that was last opened at each other level, and how that is called."""
    capture, spec = session.capture, session.spec
    if capture is None or spec is None or not spec.layers or len(spec.levels) < 2:
        return
    here = spec.layers[session.selection.layer].level
    for level in spec.levels:
        head = session.opened.get(level.index)
        if level.index != here and head is not None and capture.maps[head.layer] is not None:
            yield head, f"Level {level.label}, head {head}"


def switched(session: Session) -> Iterator[tuple[Off, str]]:
    """The heads that B could be without, and how that is called."""
    capture = session.capture
    if capture is None:
        return
    head = session.selection.head_id
    offered: dict[Off, str] = {}
    if capture.off:
        offered[frozenset()] = "The whole model"
    if head not in capture.off:
        offered[capture.off | {head}] = f"Without head {head}" + (" too" if capture.off else "")
    if session.off:
        offered.setdefault(session.off, f"Without the heads that are off, {len(session.off)}")
    for mask in session.masks:
        offered.setdefault(mask.off, f"Mask: {mask.name}")
    yield from ((off, words) for off, words in offered.items() if off != capture.off)


__all__ = ["activations", "levels", "switched"]
