"""What the two sides of a comparison are called, and how they come to differ, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hgviz.activations import ACTIVATIONS, SIX
from hgviz.analysis.pairing import counterpart
from hgviz.core import Capture, HeadId, Off
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.sweeps.results import trained_as
from hgviz.gui.views.words import counted

if TYPE_CHECKING:
    from hgviz.core import HgvizError
    from hgviz.session import Session
    from hgviz.session.other import Other

SHORT = {"topk": "top-k", "linear": "linear attention", "leaky_relu": "leaky ReLU"}
NAMED = 24  # characters of a name
GUIDE = "compare-in-the-window.md"  # the page that says how all of it is computed


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
        first, second = (said or tr("with {name}", name=name) for name, said in pairs)
        return first, second


def sides_of(session: Session) -> Told:
    """What is said of A and B; names differ, or are A and B."""
    a, b, other = session.capture, session.beside, session.other
    if a is None or b is None:
        return Told()
    found = _told(session, a, b, other)
    return Told(note=found.note) if found.a == found.b else found


def model_of(session: Session, capture: Capture, short: bool = False) -> str:
    """What people call the model of a capture, one that the study at hand trained by its place,
    and how many of its heads are off."""
    name = trained_as(session.sweep, capture.spec.name) or name_of(capture.spec.name)
    name = elided(name) if short else name
    if not capture.off:
        return name
    return tr("{name} without {heads}", name=name, heads=counted(len(capture.off), "head"))


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
        phrases = (tr("on this text"), tr("on the other text"))
        return Told(tr("this text"), tr("other text"), tr("One model on two texts."), phrases)
    if kind == "off":
        phrases = (_lacking(a.off), _lacking(b.off))
        return Told(without(a.off), without(b.off), _switched(a.off, b.off), phrases)
    here, there = activation_of(a), activation_of(b)
    if kind == "activation":
        if here == there:
            return Told(here, there, tr("One checkpoint, the same on both sides."))
        said = "One checkpoint, its {here} exchanged for {there}, not trained again."
        return Told(here, there, tr(said, here=here, there=there))
    names = model_of(session, a, short=True), model_of(session, b, short=True)
    if names[0] == names[1] and here != there:
        names = here, there
    texts = a.main.text == b.main.text if a.main.text or b.main.text else len(a.main) == len(b.main)
    one = a.spec.digest == b.spec.digest and bool(a.spec.digest)
    if one:
        note = tr("One model on one text.") if texts else tr("One model on two texts.")
    else:
        note = tr("Two models on one text.") if texts else tr("Two models on two texts.")
    return Told(*names, note)


def _heads(capture: Capture, head: HeadId, beside: HeadId | None) -> Told:
    other = beside or head
    if other == head:
        return Told(note=tr("One head beside itself: choose another one for B."))
    layers = capture.spec.layers
    levels = [layers[one.layer].level for one in (head, other)]
    said = tr("Two heads of one model.")
    if levels[0] != levels[1]:
        labels = [capture.spec.levels[one].label for one in levels]
        if labels[0] != labels[1]:  # those of two texts have one label
            said = tr("Two levels of one model, {a} and {b}.", a=labels[0], b=labels[1])
    names = tr("head {head}", head=head), tr("head {head}", head=other)
    phrases = tr("in head {head}", head=head), tr("in head {head}", head=other)
    return Told(*names, said, phrases)


def _switched(a: Off, b: Off) -> str:
    less, more = b - a, a - b
    if less and more:
        return tr("One model, other heads switched off on either side.")
    if not less and not more:
        return tr("One model, the same heads on both sides.")
    side, heads = ("B", less) if less else ("A", more)
    return tr("One model, {heads} switched off in {side}.", heads=listed(heads), side=side)


def without(off: Off) -> str:
    """whole; without 12.5; without 3 heads."""
    if not off:
        return tr("whole")
    if len(off) == 1:
        return tr("without {head}", head=next(iter(off)))
    return tr("without {count} heads", count=len(off))


def _lacking(off: Off) -> str:
    """with all heads; without head 12.5; without 14 heads."""
    return tr("without {heads}", heads=listed(off)) if off else tr("with all heads")


def listed(heads: Iterable[HeadId]) -> str:
    """head 12.5, heads 2.0 and 12.5, 14 heads."""
    found = [str(one) for one in sorted(heads)]
    if len(found) > 3:
        return counted(len(found), "head")
    if len(found) == 1:
        return tr("head {head}", head=found[0])
    return tr("heads {heads} and {last}", heads=", ".join(found[:-1]), last=found[-1])


def activation_of(capture: Capture) -> str:
    """softmax, ymish; of several in one model, six activations."""
    found = {name for layer in capture.spec.layers for name in layer.activations}
    return spoken(",".join(sorted(found)))


def spoken(activation: str) -> str:
    """An activation, as models.replacement reads it, in words: top-k of 8, ymish, six of them."""
    names = activation.split(",")
    if len(names) > 1:
        return tr("six activations") if {*names} == {*SIX} else counted(len(names), "activation")
    name, _, rest = activation.partition(":")
    row = ACTIVATIONS.get(name)
    said = SHORT.get(name) or (row.label.partition(",")[0] if row is not None else name)
    said = tr(said or "its own")
    return tr("{name} of {count}", name=said, count=rest) if rest.isdecimal() else said


def wrong(error: HgvizError) -> str:
    """What went wrong, why, and what to do, in one line."""
    return " ".join(map(tr, error.lines))


def elided(name: str) -> str:
    """A name that may stand in a sentence."""
    return name if len(name) <= NAMED else name[: NAMED - 1] + "…"
