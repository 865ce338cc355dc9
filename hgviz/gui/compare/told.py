"""What the two sides of a comparison are called, and how they come to differ, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgviz.activations import ACTIVATIONS, SIX
from hgviz.analysis.pairing import counterpart
from hgviz.core import Capture, HeadId, Off
from hgviz.gui.opening import name_of
from hgviz.gui.sweeps.results import trained_as
from hgviz.gui.views.words import counted

if TYPE_CHECKING:
    from hgviz.session import Session
    from hgviz.session.other import Other

SHORT = {"topk": "top-k", "linear": "linear attention", "leaky_relu": "leaky ReLU"}
NAMED = 24  # characters of a name


@dataclass(frozen=True, slots=True)
class Told:
    """The names of A and B, and how B comes to be from A. phrases: what is said in sentences, such
    as "with softmax", "without head 2.5"; empty for "with" and the name."""

    a: str = "A"
    b: str = "B"
    note: str = ""
    phrases: tuple[str, str] = ("", "")

    @property
    def within(self) -> tuple[str, str]:
        """with softmax, with ymish; on this text, on the other text."""
        pairs = zip((self.a, self.b), self.phrases, strict=True)
        first, second = (said or f"with {name}" for name, said in pairs)
        return first, second


def sides_of(session: Session) -> Told:
    """What is said of A and B; names differ, or are A and B."""
    a, b, other = session.capture, session.beside, session.other
    if a is None or b is None:
        return Told()
    found = _told(session, a, b, other)
    return Told(note=found.note) if found.a == found.b else found


def model_of(session: Session, capture: Capture) -> str:
    """What people call the model of a capture; one that the study at hand trained by its place."""
    return trained_as(session.sweep, capture.spec.name) or name_of(capture.spec.name)


def head_of_b(session: Session) -> HeadId | None:
    """The head of B that stands beside the selected one of A; None where B has none."""
    a, b, chosen = session.capture, session.beside, session.selection
    if a is None or b is None:
        return None
    return counterpart(a, b, chosen.head_id, chosen.beside)


def _told(session: Session, a: Capture, b: Capture, other: Other | None) -> Told:
    kind = other.kind if other is not None else "model"
    if kind == "head":
        return _heads(a, session.selection.head_id, session.selection.beside)
    if kind == "text":
        phrases = ("on this text", "on the other text")
        return Told("this text", "other text", "One model on two texts.", phrases)
    if kind == "segments":
        phrases = ("between these segments", "between those of the model")
        return Told("given ends", "own ends", "One model, other segments.", phrases)
    if kind == "off":
        phrases = (_lacking(a.off), _lacking(b.off))
        return Told(without(a.off), without(b.off), _switched(a.off, b.off), phrases)
    here, there = activation_of(a), activation_of(b)
    if kind == "activation":
        same = "One checkpoint, the same on both sides."
        said = f"One checkpoint, its {here} exchanged for {there}, not trained again."
        return Told(here, there, said if here != there else same)
    names = elided(model_of(session, a)), elided(model_of(session, b))
    if names[0] == names[1] and here != there:
        names = here, there
    texts = a.main.text == b.main.text if a.main.text or b.main.text else len(a.main) == len(b.main)
    one = a.spec.digest == b.spec.digest and bool(a.spec.digest)
    many = "One model" if one else "Two models"
    return Told(*names, f"{many} on {'one text' if texts else 'two texts'}.")


def _heads(capture: Capture, head: HeadId, beside: HeadId | None) -> Told:
    other = beside or head
    if other == head:
        return Told(note="One head beside itself: choose another one for B.")
    layers = capture.spec.layers
    levels = [layers[one.layer].level for one in (head, other)]
    said = "Two heads of one model."
    if levels[0] != levels[1]:
        labels = [capture.spec.levels[one].label for one in levels]
        if labels[0] != labels[1]:  # those of two texts have one label
            said = f"Two levels of one model, {labels[0]} and {labels[1]}."
    phrases = (f"in head {head}", f"in head {other}")
    return Told(f"head {head}", f"head {other}", said, phrases)


def _switched(a: Off, b: Off) -> str:
    less, more = b - a, a - b
    if less and more:
        return "One model, other heads switched off on either side."
    if not less and not more:
        return "One model, the same heads on both sides."
    side, heads = ("B", less) if less else ("A", more)
    return f"One model, {listed(heads)} switched off in {side}."


def without(off: Off) -> str:
    """whole; without 12.5; without 3 heads."""
    if not off:
        return "whole"
    return f"without {next(iter(off))}" if len(off) == 1 else f"without {len(off)} heads"


def _lacking(off: Off) -> str:
    """with all heads; without head 12.5; without 14 heads."""
    return f"without {listed(off)}" if off else "with all heads"


def listed(heads: Iterable[HeadId]) -> str:
    """head 12.5, heads 2.0 and 12.5, 14 heads."""
    found = [str(one) for one in sorted(heads)]
    if len(found) > 3:
        return counted(len(found), "head")
    if len(found) == 1:
        return f"head {found[0]}"
    return f"heads {', '.join(found[:-1])} and {found[-1]}"


def activation_of(capture: Capture) -> str:
    """softmax, ymish; of several in one model, six activations."""
    found = {name for layer in capture.spec.layers for name in layer.activations}
    return spoken(",".join(sorted(found)))


def spoken(activation: str) -> str:
    """An activation, as models.replacement reads it, in words: top-k of 8, ymish, six of them."""
    names = activation.split(",")
    if len(names) > 1:
        return "six activations" if {*names} == {*SIX} else counted(len(names), "activation")
    name, _, rest = activation.partition(":")
    row = ACTIVATIONS.get(name)
    said = SHORT.get(name) or (
        row.label.partition(",")[0] if row is not None else name or "its own"
    )
    return f"{said} of {rest}" if rest.isdecimal() else said


def elided(name: str) -> str:
    """A name that may stand in a sentence."""
    return name if len(name) <= NAMED else name[: NAMED - 1] + "…"


__all__ = [
    "Told",
    "activation_of",
    "elided",
    "head_of_b",
    "listed",
    "sides_of",
    "spoken",
    "without",
]
