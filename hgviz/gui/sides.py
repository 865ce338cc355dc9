"""Which two models, texts or captures are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from hgviz import settings, tasks
from hgviz.activations import ACTIVATIONS, SIX_ACTIVATIONS
from hgviz.analysis.alignment import counterpart
from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    ModelSpec,
    Step,
    parse_heads,
    progress,
    progress_as,
)
from hgviz.gui import sentences, sources, theme
from hgviz.gui.dialogs import Form, ModelInputs, activation_choices
from hgviz.gui.jobs import GOING, Jobs, Lanes, OnError
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.sentences import counted, named, percent
from hgviz.gui.studyruns import trained_as
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, IconButton, Picker, Segments, Words, hbox, label, tip, vbox
from hgviz.session import Other, Session, Work

if TYPE_CHECKING:
    from hgviz.models.model import Model

# --- names of A and B -----------------------------------------------------------------------------


SHORT = {"topk": "top-k", "linear": "linear attention", "leaky_relu": "leaky ReLU"}
NAMED = 24  # characters of a name
GUIDE = "compare-in-the-window.md"  # the page that says how all of it is computed


@dataclass(frozen=True, slots=True)
class SideNames:
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


def sides_of(session: Session) -> SideNames:
    """What is said of A and B; names differ, or are A and B."""
    a, b, other = session.capture, session.beside, session.other
    if a is None or b is None:
        return SideNames()
    found = _told(session, a, b, other)
    return SideNames(note=found.note) if found.a == found.b else found


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


def _told(session: Session, a: Capture, b: Capture, other: Other | None) -> SideNames:
    kind = other.kind if other is not None else "model"
    if kind == "head":
        return _heads(a, session.selection.head_id, session.selection.beside)
    if kind == "text":
        phrases = (tr("on this text"), tr("on the other text"))
        return SideNames(tr("this text"), tr("other text"), tr("One model on two texts."), phrases)
    if kind == "off":
        phrases = (_lacking(a.off), _lacking(b.off))
        return SideNames(without(a.off), without(b.off), _switched(a.off, b.off), phrases)
    here, there = activation_of(a), activation_of(b)
    if kind == "activation":
        if here == there:
            return SideNames(here, there, tr("One checkpoint, the same on both sides."))
        said = "One checkpoint, its {here} exchanged for {there}, not trained again."
        return SideNames(here, there, tr(said, here=here, there=there))
    names = model_of(session, a, short=True), model_of(session, b, short=True)
    if names[0] == names[1] and here != there:
        names = here, there
    texts = a.main.text == b.main.text if a.main.text or b.main.text else len(a.main) == len(b.main)
    one = a.spec.digest == b.spec.digest and bool(a.spec.digest)
    if one:
        note = tr("One model on one text.") if texts else tr("One model on two texts.")
    else:
        note = tr("Two models on one text.") if texts else tr("Two models on two texts.")
    return SideNames(*names, note)


def _heads(capture: Capture, head: HeadId, beside: HeadId | None) -> SideNames:
    other = beside or head
    if other == head:
        return SideNames(note=tr("One head beside itself: choose another one for B."))
    layers = capture.spec.layers
    levels = [layers[one.layer].level for one in (head, other)]
    said = tr("Two heads of one model.")
    if levels[0] != levels[1]:
        labels = [capture.spec.levels[one].label for one in levels]
        if labels[0] != labels[1]:  # those of two texts have one label
            said = tr("Two levels of one model, {a} and {b}.", a=labels[0], b=labels[1])
    names = tr("head {head}", head=head), tr("head {head}", head=other)
    phrases = tr("in head {head}", head=head), tr("in head {head}", head=other)
    return SideNames(*names, said, phrases)


def _switched(a: HeadSet, b: HeadSet) -> str:
    less, more = b - a, a - b
    if less and more:
        return tr("One model, other heads switched off on either side.")
    if not less and not more:
        return tr("One model, the same heads on both sides.")
    side, heads = ("B", less) if less else ("A", more)
    return tr("One model, {heads} switched off in {side}.", heads=listed(heads), side=side)


def without(off: HeadSet) -> str:
    """whole; without 12.5; without 3 heads."""
    if not off:
        return tr("whole")
    if len(off) == 1:
        return tr("without {head}", head=next(iter(off)))
    return tr("without {count} heads", count=len(off))


def _lacking(off: HeadSet) -> str:
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
        return (
            tr("six activations")
            if {*names} == {*SIX_ACTIVATIONS}
            else counted(len(names), "activation")
        )
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


# --- capture of B ---------------------------------------------------------------------------------


Opened = tuple[str, str]  # the path of a checkpoint and the activation it is opened with


@dataclass(frozen=True, slots=True)
class SideSource:
    """What B is made of. path, activation: the checkpoint to open where model is None; A's are
    those of the checkpoint at hand, device what it runs on."""

    other: Other
    path: str
    activation: str
    model: Model | None
    device: str

    @property
    def opened(self) -> Opened:
        """What the model is, for the next time."""
        return self.path, self.activation


@dataclass(frozen=True, slots=True)
class SideCapture:
    """B, and the model that made it; None where it was a file."""

    other: Other
    capture: Capture
    model: Model | None = None
    opened: Opened = ("", "")


def looked(other: Other, a: Capture) -> SideCapture | None:
    """The capture that lies at a path, of many texts the one that A is of; None for a checkpoint.

    Errors: HgvizError for what is neither.
    """
    progress(0, 1, "looking at the file")
    kind = tasks.kind_of(other.path)
    if kind == "checkpoint":
        return None
    if kind == "study":
        raise HgvizError(
            f"{name_of(other.path)} is a study: "
            "it says what heads are worth, and has no maps to compare",
            "Choose a checkpoint or a capture",
        )
    capture = tasks.capture_at(other.path)
    if capture.items:
        same = [one.number for one in capture.items if one.text == a.main.text]
        numbers = [one.number for one in capture.items]
        number = same[0] if same else a.item if a.item in numbers else capture.item
        capture = capture if number == capture.item else tasks.capture_at(other.path, number)
    return SideCapture(other, capture)


def bring(source: SideSource, a: Capture) -> SideCapture:
    """Capture B; the progress may carry what is Brought so far."""
    other, model = source.other, source.model
    wish = sources.CaptureRequest(
        source.path, other.text, other.second, device=source.device, activation=source.activation
    )
    if model is None:
        model = sources.load(wish)

    def brought(step: Step) -> Step:
        so_far = SideCapture(other, step.value) if isinstance(step.value, Capture) else None
        return replace(step, value=so_far)

    with progress_as(brought):
        if other.kind == "text":
            captured = _another_text(replace(wish, off=a.off, streaming=a.streaming), model)
        else:
            off = {"off": other.off, "activation": a.off}.get(other.kind, frozenset())
            # with some heads off the others are as in A, and with none it is the whole model
            few = a.streaming if other.kind == "activation" or off else NO_STREAMING
            captured = tasks.capture_like(model, a, off, few)
    return SideCapture(other, captured, model, source.opened)


def _another_text(wish: sources.CaptureRequest, model: Model) -> Capture:
    try:
        _, _, found = sources.capture_text(wish, model)
    except sources.UnreadError as error:
        raise HgvizError(error.what, "Write another text for B") from None
    return found


# --- sides ----------------------------------------------------------------------------------------


BESIDE = "beside"
QUIET = 0.2  # s: a B that is there sooner shows no layers on their way
NEEDS_CHECKPOINT = HgvizError(
    "B needs the checkpoint that made A: "
    "what is on screen was opened from a file, and a file of maps answers nothing new",
    "Open the checkpoint, or choose another checkpoint or capture for B",
)


class Sides:
    """Makes session.beside what session.other says, for every new capture of A."""

    def __init__(self, session: Session, lanes: Lanes, working: Jobs, on_error: OnError) -> None:
        self.session, self.lanes, self.working, self.on_error = session, lanes, working, on_error
        self._shown: Other | None = None  # what session.beside is of
        self._model: Model | None = None  # the one that made B, and what it was opened from
        self._opened: Opened = ("", "")
        self._partial = False  # whether session.beside is what there is so far of a new B
        self._due = False  # whether A is another one than B was made beside
        self._maps: object = None  # those of A
        session.changed.connect(self._heard)

    def close(self) -> None:
        """Listen no more."""
        self.session.changed.disconnect(self._heard)

    # --- what people ask for ----------------------------------------------------------------------

    def choose(self, other: Other, head: HeadId | None = None) -> None:
        """Have another B. head: that of B which stands beside A's, None for the same one."""
        session = self.session
        chosen = replace(session.selection, beside=head)
        session.put(chosen=False, mode="compare", other=other, selection=chosen)
        self._due = session.at_work  # then A is about to be another one
        if not self._due:
            self._start()

    def stop(self) -> None:
        """Stop bringing B; what was there before stays."""
        self.working.stop(BESIDE)
        self._due = False
        self.session.put(other=self._shown)

    def forget(self) -> None:
        """Have no B."""
        self.working.stop(BESIDE)
        self._due, self._shown, self._model = False, None, None
        chosen = replace(self.session.selection, beside=None)
        self.session.put(chosen=False, other=None, beside=None, selection=chosen)

    # --- following A ------------------------------------------------------------------------------

    def _heard(self, name: str) -> None:
        if name == "capture":
            maps = self.session.capture.maps if self.session.capture is not None else None
            self._due |= self.session.other is not None and maps is not self._maps
            self._maps = maps  # one that was only saved is the same
        if name in ("capture", "mode", "work") and self._due:
            self._follow()

    def _follow(self) -> None:
        """Bring B anew once all of A is there and somebody looks."""
        session = self.session
        a, other = session.capture, session.other
        if other is None or session.mode != "compare" or session.at_work:
            return
        if a is None:
            self.forget()
        elif other.kind == "head" or a.complete:
            if self._lost(a, other):
                self.forget()
            else:
                self._start()

    def _lost(self, a: Capture, other: Other) -> bool:
        """Whether there is no such B beside this A."""
        if other.kind in ("activation", "text", "off") and not self.session.checkpoint:
            return True
        return other.kind == "off" and not other.off <= set(a.spec.heads)

    # --- bringing B -------------------------------------------------------------------------------

    def _start(self) -> None:
        session, self._due = self.session, False
        a, other = session.capture, session.other
        self.working.stop(BESIDE)
        if a is None or other is None:
            return
        if other.kind == "head":
            self._take(SideCapture(other, a))
        elif other.kind == "model":
            self.working.start(
                self.lanes.files, BESIDE, f"Opening {name_of(other.path)} as B",
                partial(looked, other, a), self._looked, self._failed, bound=True,
            )  # fmt: skip
        elif not session.checkpoint:
            self._failed(NEEDS_CHECKPOINT)
        else:
            self._capture(a, other)

    def _looked(self, found: SideCapture | None) -> None:
        a, other = self.session.capture, self.session.other
        if found is not None:
            self._take(found)
        elif a is not None and other is not None:
            self._capture(a, other)

    def _capture(self, a: Capture, other: Other) -> None:
        session = self.session
        path = other.path if other.kind == "model" else session.checkpoint
        own = other.kind in ("activation", "model")
        activation = other.activation if own else session.activation
        model = None
        if (path, activation) == (session.checkpoint, session.activation):
            model = session.model
        elif (path, activation) == self._opened:
            model = self._model
        source = SideSource(other, path, activation, model, settings.load().device)
        self._partial = False
        self.working.start(
            self.lanes.engine, BESIDE, "Capturing B", partial(bring, source, a),
            self._take, self._failed, self._stepped, bound=True,
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        """Show B once it has the head that is looked at, unless all of it will be there in a
        moment: each new B is compared from the start."""
        if not isinstance(step.value, SideCapture) or self.working.age(BESIDE) <= QUIET:
            return
        part, now = step.value.capture, self.session.beside
        if self._has(part) and not (self._partial and now is not None and self._has(now)):
            self._partial, self._shown = True, step.value.other
            self.session.put(beside=part)

    def _has(self, b: Capture) -> bool:
        """Whether a B has what stands beside the selected head."""
        a, chosen = self.session.capture, self.session.selection
        return a is not None and counterpart(a, b, chosen.head_id, chosen.beside) is not None

    def _take(self, found: SideCapture) -> None:
        if found.model is not None:
            self._model, self._opened = found.model, found.opened
        self._shown = found.other
        self.session.put(beside=found.capture, other=found.other)

    def _failed(self, error: BaseException) -> None:
        """What was there before stays, if it is of this A."""
        stale = self._shown == self.session.other
        if stale:
            self.forget()
        else:
            self.session.put(other=self._shown)
        self.on_error(error)


# --- what B can be --------------------------------------------------------------------------------


def activations(spec: ModelSpec, now: str) -> Iterator[tuple[str, str]]:
    """What a checkpoint can be opened with other than what A has, and how that is called.

    now: what A was opened with, "" for its own.
    """
    own = {name for layer in spec.layers for name in layer.activations}
    if now:
        yield "", tr("Its own")
    for name, words in activation_choices(spec):
        if name != now and {*name.split(",")} != own:
            yield name, words


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


def switched(session: Session) -> Iterator[tuple[HeadSet, str]]:
    """The heads that B could be without, and how that is called."""
    capture = session.capture
    if capture is None:
        return
    head = session.selection.head_id
    offered: dict[HeadSet, str] = {}
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


# --- side bar -------------------------------------------------------------------------------------


MOST = 240  # px of a button at most
CHEVRON = 14  # px


class SideMenu(Button):
    """A field that says what is chosen and drops a menu of what else could be."""

    def __init__(self, name: str, fill: Callable[[QMenu], None]) -> None:
        super().__init__("", weight=400)
        self._name, self._fill, self.full = name, fill, ""
        self.setAccessibleName(name)
        self.setStyleSheet("text-align: left;")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._menu = QMenu(self)
        self._menu.setToolTipsVisible(True)
        self.clicked.connect(self.drop)

    def say(self, words: str) -> None:
        """What is chosen."""
        self.full = words
        self.setToolTip(tip(f"{self._name}: {words}"))
        room = MOST - 2 * 12 - CHEVRON - 8
        self.setText(self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, room))
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Room for the words and the chevron."""
        wide = self.fontMetrics().horizontalAdvance(self.text()) + 2 * 12 + CHEVRON + 8
        return QSize(min(MOST, max(96, wide)), 28)

    def minimumSizeHint(self) -> QSize:
        """The same: what stands beside it gives way first."""
        return self.sizeHint()

    def drop(self) -> None:
        """Show what else could be chosen."""
        self._menu.clear()
        self._fill(self._menu)
        self._menu.setMinimumWidth(self.width())
        self._menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The field, and a chevron at its right."""
        super().paintEvent(event)
        mark = theme.icon("chevron", theme.current().secondary)
        with QPainter(self) as painter:
            top = (self.height() - CHEVRON) // 2
            mark.paint(painter, self.width() - CHEVRON - 9, top, CHEVRON, CHEVRON)


class SideLabel(QWidget):
    """[A] [what it is ⌄] where it comes from."""

    def __init__(self, letter: str, fill: Callable[[QMenu], None]) -> None:
        super().__init__()
        self.setFixedHeight(28)
        self.letter = label(letter, factor=0.92, weight=600, kind="side")
        self.choice = SideMenu(tr("What {side} is", side=letter), fill)
        self.words = Words(factor=0.92, kind="secondary")
        self.stop = IconButton("stop", tr("Stop capturing {side}", side=letter))
        self.stop.hide()
        hbox(self, self.letter, self.choice, (self.words, 1), self.stop, spacing=8)


class SideBar(View):
    """A and B: two seats over their maps. It is no picture itself, and takes no room.

    side: an Other, and the head of B that stands beside A's, None for the same one.
    """

    title: ClassVar[str] = "Sides"
    figureless = "It says what the maps below are of: those are drawn"
    needs: ClassVar[tuple[str, ...]] = (
        "capture", "beside", "other", "selection", "checkpoint", "activation", "work",
    )  # fmt: skip
    lane = "here"
    topic: ClassVar[str] = "compare-sides"

    side = Signal(object, object)
    activation = Signal(str)  # what A is opened with
    wanted = Signal(str)  # the kind of B that is asked for
    folder = Signal(bool)  # whether a folder is asked for as B
    stopped = Signal()
    explained = Signal(str)  # how B comes to be from A
    paired = Signal(bool)  # whether there are two sides

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.a, self.b = SideLabel("A", self._offer_a), SideLabel("B", self._offer_b)
        self.b.stop.clicked.connect(self.stopped)
        self.more: Mapping[str, str] = {}  # what was opened before, path and name
        self.setFixedHeight(0)

    def request(self, session: Session) -> Callable[[], Session] | None:
        """Nothing but the session itself."""
        return lambda: session

    def draw(self, session: Session) -> None:
        """Say what both sides are."""
        told = sides_of(session)
        self.explained.emit(told.note)
        self.paired.emit(session.capture is not None and session.beside is not None)
        a, b = session.capture, session.beside
        self.a.setEnabled(a is not None)
        self.a.choice.say(told.a if b is not None else activation_of(a) if a else "A")
        self.a.words.say(_about(session, a, told.a) if a is not None else "")
        work = next((one for one in session.work if one.key == BESIDE), None)
        busy = work is not None and work.state in GOING
        self.b.choice.say(told.b if b is not None else tr("Compare with…"))
        self.b.words.say(said_of(work) if busy and work else self._about_b(session, told))
        self.b.words.setAccessibleName(tr("Where B comes from"))
        self.b.stop.setVisible(busy)

    def as_table(self) -> list[list[str]] | None:
        """What A and B are, and where they come from."""
        if self.session is None or self.session.beside is None:
            return None
        rows = [[one.letter.text(), one.choice.full, one.words.full] for one in (self.a, self.b)]
        return [[tr("Side"), tr("What it is"), tr("Where it comes from")], *rows]

    def _about_b(self, session: Session, told: SideNames) -> str:
        a, b, other = session.capture, session.beside, session.other
        if a is None or b is None:
            return ""
        kind = other.kind if other is not None else "model"
        name = model_of(session, b)
        if kind == "activation":
            name = model_of(session, a)
            same = activation_of(a) == activation_of(b)
            return name if same else tr("{name}, exchanged", name=name)
        if kind == "text":
            text = b.main.text
            said = sentences.quoted(sentences.shown(text, 60))
            return tr("{name} on {text}", name=name, text=said) if text else name
        if kind == "head":
            return name
        return _about(session, b, told.b)

    # --- menus ------------------------------------------------------------------------------------

    def _offer_a(self, menu: QMenu) -> None:
        session = self.session
        if session is None or session.capture is None:
            return
        menu.setAccessibleName(tr("What {side} is", side="A"))
        if session.checkpoint:
            own = not session.activation
            self._entry(menu, tr("Its own activation"), partial(self.activation.emit, ""), own)
            for name, words in activations(session.capture.spec, session.activation):
                if name:
                    self._entry(menu, words, partial(self.activation.emit, name))
            menu.addSeparator()
        said = tr("Open another checkpoint or capture…")
        self._entry(menu, said, partial(self.asked.emit, "open"))

    def _offer_b(self, menu: QMenu) -> None:
        session = self.session
        if session is None or session.capture is None:
            return
        now = session.other
        for words, fill, needs in (
            ("Another activation", self._activations, True),
            ("Another model", self._models, False),
            ("Heads switched off", self._switched, True),
            ("Another head or level", self._heads, False),
        ):
            part = menu.addMenu(tr(words))
            part.setToolTipsVisible(True)
            fill(part, session, now)
            part.menuAction().setEnabled(bool(session.checkpoint) or not needs)
            if needs and not session.checkpoint:
                part.menuAction().setToolTip(tr("Needs a checkpoint: open one first"))
        text = self._entry(menu, tr("Another text…"), partial(self.wanted.emit, "text"),
                           now is not None and now.kind == "text")  # fmt: skip
        text.setEnabled(bool(session.checkpoint))
        menu.addSeparator()
        if session.beside is not None and (now is None or now.kind != "head"):
            part = menu.addMenu(tr("Beside head {head}", head=session.selection.head_id))
            self._beside(part, session, session.beside)
        self._entry(menu, tr("Compare with…"), partial(self.asked.emit, "compare_with"))
        said = tr("Stop comparing")
        nothing = self._entry(menu, said, partial(self.asked.emit, "compare_nothing"))
        nothing.setEnabled(session.beside is not None)

    def _activations(self, menu: QMenu, session: Session, now: Other | None) -> None:
        assert session.capture is not None
        for name, words in activations(session.capture.spec, session.activation):
            other = Other("activation", name)
            self._entry(menu, words, partial(self.side.emit, other, None), now == other)

    def _models(self, menu: QMenu, session: Session, now: Other | None) -> None:
        assert session.capture is not None
        here = session.checkpoint or session.capture.path
        for path, words in self.more.items():
            if path != here:
                other = Other("model", path=path)
                entry = self._entry(menu, words, partial(self.side.emit, other, None), now == other)
                entry.setToolTip(tip(path))
        if self.more:
            menu.addSeparator()
        self._entry(menu, tr("A file…"), partial(self.folder.emit, False))
        self._entry(menu, tr("A folder…"), partial(self.folder.emit, True))

    def _switched(self, menu: QMenu, session: Session, now: Other | None) -> None:
        for off, words in switched(session):
            other = Other("off", off=off)
            self._entry(menu, words, partial(self.side.emit, other, None), now == other)
        menu.addSeparator()
        self._entry(menu, tr("Choose heads…"), partial(self.wanted.emit, "off"))

    def _heads(self, menu: QMenu, session: Session, now: Other | None) -> None:
        for head, words in levels(session):
            on = now == Other("head") and session.selection.beside == head
            self._entry(menu, words, partial(self.side.emit, Other("head"), head), on)
        if not menu.isEmpty():
            menu.addSeparator()
        self._entry(menu, tr("Choose a head…"), partial(self.wanted.emit, "head"))

    def _beside(self, menu: QMenu, session: Session, b: Capture) -> None:
        """Which head of B stands beside A's."""
        chosen = session.selection.beside
        meets = tr("The head that meets it")
        self._entry(menu, meets, partial(self._put, None), chosen is None)
        menu.addSeparator()
        for layer in b.spec.layers:
            known = b.maps[layer.index]
            if known is None or not known.heads:
                continue
            part = menu.addMenu(tr("Layer {layer}", layer=layer.index))
            for number in known.heads:
                head = HeadId(layer.index, number)
                said = tr("Head {head}", head=head)
                self._entry(part, said, partial(self._put, head), chosen == head)

    def _put(self, head: HeadId | None) -> None:
        if self.session is not None:
            self.session.put(selection=replace(self.session.selection, beside=head))

    def _entry(
        self, menu: QMenu, words: str, does: Callable[[], object], on: bool = False
    ) -> QAction:
        entry = menu.addAction(words.replace("&", "&&"))
        if on:
            entry.setCheckable(True)
            entry.setChecked(True)
        entry.triggered.connect(lambda: does())
        return entry


def _about(session: Session, capture: Capture, said: str) -> str:
    """What is not said of a side yet: its model, its activation, or what it was opened from."""
    if said != model_of(session, capture, short=True):
        return model_of(session, capture)
    other = tr("capture") if capture.path else tr("checkpoint")
    return activation_of(capture) or other


def said_of(work: Work) -> str:
    """What is being done for B: Capturing B: layer 3, 23 %."""
    title = tr(work.title)
    if not work.note:
        return f"{title}…"
    share = percent(f"{100 * work.done / work.total:.0f}") if work.total else ""
    return f"{title}: " + ", ".join(filter(None, (tr(work.note), share)))


# --- dialog ---------------------------------------------------------------------------------------


KINDS = (
    ("activation", "Activation", ""), ("model", "Model", ""), ("text", "Text", ""),
    ("off", "Heads off", ""), ("head", "Head or level", ""),
)  # fmt: skip
SAID = {
    "activation": "The same checkpoint on the same text, with another function that turns scores "
    "into weights. It is not trained again.",
    "model": "Another checkpoint, which reads the same text, or a capture as it is.",
    "text": "The same model on another text. What both texts have in common is compared.",
    "off": "The same model on the same text without these heads.",
    "head": "Another head of the same capture, such as one of another level.",
}
NAMING = "12.5, 4.* for a whole layer; nothing for the whole model"
MODELLESS = "Open the checkpoint first: this capture was opened from a file."


class CompareDialog(Form):
    """One of five ways to a second side, with what each needs.

    more: checkpoints and captures that were opened before, path and name.
    """

    file_wanted = Signal(bool)  # whether a folder is asked for
    wide = 640

    def __init__(
        self,
        window: QWidget,
        session: Session,
        more: Mapping[str, str],
        kind: str = "",
        then: Callable[[Other, HeadId | None], object] | None = None,
    ) -> None:
        super().__init__(window, tr("Compare with…"), then=then)
        assert session.capture is not None
        self._session, self._capture = session, session.capture
        self.kinds = Segments([(name, tr(words), icon) for name, words, icon in KINDS], wide=104)
        self.kinds.setAccessibleName(tr("What to compare with"))
        self.body.addLayout(hbox(None, self.kinds, 1, spacing=-1))
        self.said = label(kind="secondary", factor=0.92, wrap=True)
        self.said.setMinimumHeight(2 * self.said.fontMetrics().height())
        self.said.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.body.addWidget(self.said)
        self.pages = QStackedWidget()
        pages = self._activation(), self._model(more), self._text(), self._off(), self._head()
        for page in pages:
            self.pages.addWidget(page)
        self.body.addWidget(self.pages)
        go = Button(tr("Compare"), "compare", kind="filled")
        go.setShortcut("Ctrl+Return")  # Return alone is a new line of a text
        go.setToolTip("Ctrl+Return")
        self.offer(go)
        self.kinds.chosen.connect(self._turn)
        now = session.other.kind if session.other is not None else "activation"
        first = now if session.checkpoint and now in self.kinds.names else "model"
        self.kinds.choose(kind or first)
        self._turn(self.kinds.choice)
        fields = (self.activations, self.paths, self.texts[0], self.heads, self.layer)
        self.first = fields[self.kinds.names.index(self.kinds.choice)]

    # --- the five ways ----------------------------------------------------------------------------

    def _activation(self) -> QWidget:
        self.activations = Picker()
        self.activations.setAccessibleName(tr("Activation of B"))
        for name, words in activations(self._capture.spec, self._session.activation):
            self.activations.addItem(words, name)
        return _column(self.activations)

    def _model(self, more: Mapping[str, str]) -> QWidget:
        self.paths = Picker()
        self.paths.setAccessibleName(tr("Checkpoint or capture"))
        now = self._session.checkpoint or self._capture.path
        for path, words in more.items():
            if path != now:
                self.paths.addItem(words, path)
        self.paths.setEnabled(self.paths.count() > 0)
        buttons = QWidget()
        row = hbox(buttons, spacing=-1)
        for words, folder in (("Another file…", False), ("Another folder…", True)):
            button = Button(tr(words), "open")
            button.setProperty("folder", folder)
            button.clicked.connect(self._ask_file)
            row.addWidget(button)
        row.addStretch(1)
        return _column(self.paths, buttons)

    def _text(self) -> QWidget:
        texts = self._capture.texts
        reads = ModelInputs.of(self._session.model)
        self.texts = []
        for text, name in ((texts[0], "Text of B"), (texts[1], "Second text of B")):
            edit = QPlainTextEdit(text)
            edit.setFont(theme.mono())
            edit.setTabChangesFocus(True)
            edit.setAccessibleName(tr(name))
            edit.setFixedHeight(96)
            edit.textChanged.connect(self.check)
            self.texts.append(edit)
        two = bool(texts[1]) or (self._session.model is not None and bool(reads.second))
        self.texts[1].setVisible(two)
        return _column(*self.texts)

    def _off(self) -> QWidget:
        session = self._session
        spec = self._capture.spec
        off = session.off if session.off != self._capture.off else frozenset()
        first = off or frozenset({session.selection.head_id}) - self._capture.off
        self.heads = QLineEdit(named(first, spec.layers))
        self.heads.setPlaceholderText(tr(NAMING))
        self.heads.setAccessibleName(tr("Heads that are off in B"))
        self.heads.textChanged.connect(self.check)
        here = named(self._capture.off, spec.layers)
        said = tr("A is without {heads}.", heads=here) if here else tr("A has all its heads.")
        return _column(self.heads, Words(said, factor=0.92, kind="secondary"))

    def _head(self) -> QWidget:
        self.layer, self.number = Picker(), Picker()
        spec, chosen = self._capture.spec, self._session.selection
        levels = len(spec.levels) > 1
        for one in spec.layers:
            if one.heads and self._capture.maps[one.index] is not None:
                parts = [tr("Layer {layer}", layer=one.index)]
                parts += [spec.levels[one.level].label] if levels else []
                parts += [] if one.role == "self" else [tr(one.role)]
                self.layer.addItem(", ".join(parts), one.index)
        now = chosen.beside or chosen.head_id
        self.layer.currentIndexChanged.connect(self._fill_heads)
        self.layer.setCurrentIndex(max(0, self.layer.findData(now.layer)))
        self._fill_heads()
        self.number.setCurrentIndex(max(0, self.number.findData(now.head)))
        self.number.currentIndexChanged.connect(self.check)
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setColumnStretch(1, 1)
        rows = ("Layer", "Layer of B", self.layer), ("Head", "Head of B", self.number)
        for row, (words, whole, box) in enumerate(rows):
            name = label(tr(words))
            name.setBuddy(box)
            box.setAccessibleName(tr(whole))
            grid.addWidget(name, row, 0)
            grid.addWidget(box, row, 1)
        out = QWidget()
        vbox(out, grid, 1, spacing=-1)
        return out

    def _fill_heads(self) -> None:
        at = self.layer.currentData()
        self.number.clear()
        if at is not None:
            for head in self._capture.spec.layers[at].heads:
                self.number.addItem(str(head), head)

    # --- what is chosen ---------------------------------------------------------------------------

    @property
    def wish(self) -> tuple[Other, HeadId | None]:
        """What is chosen now. Errors: HgvizError for what cannot be."""
        kind = self.kinds.choice
        if kind == "activation":
            return Other("activation", self.activations.currentData()), None
        if kind == "model":
            return Other("model", path=self.paths.currentData() or ""), None
        if kind == "text":
            first, second = (one.toPlainText() for one in self.texts)
            return Other("text", text=first, second=second), None
        if kind == "off":
            layers = self._capture.spec.layers
            off = parse_heads(self.heads.text(), layers)
            return Other("off", off=off), None
        at, head = self.layer.currentData(), self.number.currentData()
        return Other("head"), None if head is None else HeadId(at, head)

    def _turn(self, kind: str) -> None:
        self.said.setText(tr(SAID[kind]))
        self.pages.setCurrentIndex(self.kinds.names.index(kind))
        self.check()

    def answer(self) -> tuple[Other, HeadId | None]:
        return self.wish

    def problem(self) -> str:
        kind = self.kinds.choice
        if kind in ("activation", "text", "off") and not self._session.checkpoint:
            return tr(MODELLESS)
        if kind == "model" and not self.paths.currentData():
            return tr("Choose a checkpoint or a capture.")
        if kind == "text" and not self.texts[0].toPlainText():
            return tr("Empty: there is nothing to capture.")
        try:
            other, _ = self.wish
        except HgvizError as error:
            return wrong(error)
        if kind == "off" and other.off == self._capture.off:
            return tr("These are the heads that are off in A: B would be the same.")
        return ""

    def _ask_file(self) -> None:
        folder = bool(self.sender().property("folder"))
        self.reject()
        self.file_wanted.emit(folder)


def _column(*widgets: QWidget) -> QWidget:
    out = QWidget()
    vbox(out, *widgets, 1, spacing=8)
    return out
