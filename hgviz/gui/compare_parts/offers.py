"""What can stand on either side of a comparison: the lists that the menus and the dialog offer."""

from __future__ import annotations

from collections.abc import Iterator

from hgviz.activations import ACTIVATIONS, SIX
from hgviz.core import HeadId, ModelSpec, Off
from hgviz.gui.composing import LARGEST
from hgviz.gui.language import tr
from hgviz.session import Session


def activations(spec: ModelSpec, now: str) -> Iterator[tuple[str, str]]:
    """What a checkpoint can be opened with other than what A has, and how that is called.

    now: what A was opened with, "" for its own.
    """
    own = {name for layer in spec.layers for name in layer.activations}
    if now:
        yield "", tr("Its own")
    for row in ACTIVATIONS.values():
        if row.name == "topk":
            if now != f"topk:{LARGEST}":
                yield f"topk:{LARGEST}", tr("softmax of the {count} largest", count=LARGEST)
        elif own != {row.name}:
            yield row.name, tr(row.label)
    heads = {1 + max(layer.heads) for layer in spec.layers if layer.heads}
    if heads and all(count % len(SIX) == 0 for count in heads) and own != {*SIX}:
        yield ",".join(SIX), tr("Six, over the heads")


def levels(session: Session) -> Iterator[tuple[HeadId, str]]:
    """The head that was last opened at each other level, and how that is called."""
    capture, spec = session.capture, session.spec
    if capture is None or spec is None or not spec.layers or len(spec.levels) < 2:
        return
    here = spec.layers[session.selection.layer].level
    for level in spec.levels:
        head = session.opened.get(level.index)
        if level.index != here and head is not None and capture.maps[head.layer] is not None:
            yield head, tr("Level {level}, head {head}", level=level.label, head=head)


def switched(session: Session) -> Iterator[tuple[Off, str]]:
    """The heads that B could be without, and how that is called."""
    capture = session.capture
    if capture is None:
        return
    head = session.selection.head_id
    offered: dict[Off, str] = {}
    few = capture.streaming.heads
    if capture.off or few:
        offered[frozenset()] = tr("The whole model")
    if head not in capture.off:
        more = tr("Without head {head} too", head=head)
        offered[capture.off | {head}] = (
            more if capture.off else tr("Without head {head}", head=head)
        )
    if session.off:
        said = tr("Without the heads that are off, {count}", count=len(session.off))
        offered.setdefault(session.off, said)
    for mask in session.masks:
        offered.setdefault(mask.off, tr("Mask: {name}", name=mask.name))
    yield from ((off, words) for off, words in offered.items() if few or off != capture.off)
