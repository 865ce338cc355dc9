"""Which two models, texts or captures are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QStackedWidget, QWidget

from hgviz import settings, tasks
from hgviz.activations import ACTIVATIONS, SIX_ACTIVATIONS
from hgviz.analysis.alignment import counterpart
from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    Step,
    parse_heads,
    progress,
    progress_as,
)
from hgviz.errors import require
from hgviz.gui import sentences, sources
from hgviz.gui.dialogs import Form, ModelInputs, TextField, activation_choices, note
from hgviz.gui.jobs import Jobs, Lanes, OnError
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted, named, percent
from hgviz.gui.sources import name_of, partner, samples
from hgviz.gui.studyruns import trained_as
from hgviz.gui.view import View
from hgviz.gui.widgets import Button, IconButton, Picker, Segments, Words, hbox, label, tip, vbox
from hgviz.session import Session, Work
from hgviz.session.document import SideB

if TYPE_CHECKING:
    from hgviz.analysis.importance import MaskTrial
    from hgviz.models.model import Model

# --- names of A and B -----------------------------------------------------------------------------

SHORT = {"topk": "top-k", "linear": "linear attention", "leaky_relu": "leaky ReLU"}
NAMED = 24  # characters of a name
GUIDE = "compare.md"  # the page that says how all of it is computed


@dataclass(frozen=True, slots=True)
class SideNames:
    """The names of A and B, how B comes to be from A, and how a sentence speaks of a side."""

    a: str = "A"
    b: str = "B"
    note: str = ""
    phrase: str = "with {name}"

    @property
    def phrases(self) -> tuple[str, str]:
        """with softmax, with ymish; on this text, on the other text."""
        return tr(self.phrase, name=self.a), tr(self.phrase, name=self.b)


def sides_of(session: Session) -> SideNames:
    """The names of A and B: "A" and "B" where others would be the same."""
    a, b, chosen = session.capture, session.capture_b, session.selection
    if a is None or b is None:
        return SideNames()
    kind = session.comparison.kind if session.comparison is not None else "model"
    if kind == "head":
        names = _of_heads(a, chosen.head_id, chosen.beside or chosen.head_id)
    elif kind == "text":
        note = tr("One model on two texts.")
        names = SideNames(tr("this text"), tr("the other text"), note, "on {name}")
    elif kind == "off":
        names = SideNames(without(a.off), without(b.off), _off_note(a.off, b.off), "{name}")
    elif kind == "activation":
        here, there = activation_of(a), activation_of(b)
        words = "One checkpoint, {here} replaced by {there}, not retrained."
        if here == there:
            words = "One checkpoint, the same on both sides."
        names = SideNames(here, there, tr(words, here=here, there=there))
    else:
        names = _of_models(session, a, b)
    return SideNames(note=names.note) if names.a == names.b else names


def _of_models(session: Session, a: Capture, b: Capture) -> SideNames:
    is_one = a.spec.digest == b.spec.digest and bool(a.spec.digest)
    models = "One model" if is_one else "Two models"
    texts = "one text" if is_one_text(a, b) else "two texts"
    names = model_of(session, a, short=True), model_of(session, b, short=True)
    if names[0] == names[1]:
        names = activation_of(a), activation_of(b)
    apart = "" if is_one else ": heads with the same number are not related"
    return SideNames(*names, tr(f"{models} on {texts}{apart}."))


def _of_heads(capture: Capture, head: HeadId, other: HeadId) -> SideNames:
    if other == head:
        return SideNames(note=tr("The same head on both sides: choose another head for B."))
    layers, levels = capture.spec.layers, capture.spec.levels
    a, b = (levels[layers[side.layer].level].label for side in (head, other))
    words = "Two heads of one model." if a == b else "Two levels of one model, {a} and {b}."
    names = tr("head {head}", head=head), tr("head {head}", head=other)
    return SideNames(*names, tr(words, a=a, b=b), "in {name}")


def _off_note(a: HeadSet, b: HeadSet) -> str:
    differences = [
        tr("{heads} off in {side} only", heads=listed(heads), side=side)
        for side, heads in (("A", a - b), ("B", b - a)) if heads
    ]  # fmt: skip
    words = ", ".join(differences) or tr("the same heads off on both sides")
    return tr("One model, {words}.", words=words)


def is_one_text(a: Capture, b: Capture) -> bool:
    """Whether both captures are of one text, or of one image or sound cut alike."""
    return a.main.text == b.main.text and (bool(a.main.text) or a.main.pieces == b.main.pieces)


def model_of(session: Session, capture: Capture, short: bool = False) -> str:
    """What people call the model of a capture, one that the study at hand trained by its place,
    and how many of its heads are off."""
    name = trained_as(session.sweep, capture.spec.name) or name_of(capture.spec.name)
    name = sentences.elided(name, NAMED) if short else name
    if not capture.off:
        return name
    return tr("{name} without {heads}", name=name, heads=counted(len(capture.off), "head"))


def head_of_b(session: Session) -> HeadId | None:
    """The head of B compared with the selected head of A; None where B has none."""
    a, b, chosen = session.capture, session.capture_b, session.selection
    if a is None or b is None:
        return None
    return counterpart(a, b, chosen.head_id, chosen.beside)


def without(off: HeadSet) -> str:
    """with all heads; without head 12.5; without 14 heads."""
    heads = listed(off) if len(off) == 1 else counted(len(off), "head")
    return tr("without {heads}", heads=heads) if off else tr("with all heads")


def listed(heads: HeadSet) -> str:
    """head 12.5, heads 2.0 and 12.5, 14 heads."""
    names = [str(head) for head in sorted(heads)]
    if len(names) > 3:
        return counted(len(names), "head")
    if len(names) == 1:
        return tr("head {head}", head=names[0])
    return tr("heads {heads} and {last}", heads=", ".join(names[:-1]), last=names[-1])


def activation_of(capture: Capture) -> str:
    """softmax, ymish, top-k of 8; of several in one model, six activations."""
    names = {name for layer in capture.spec.layers for name in layer.activations}
    if len(names) > 1:
        is_six = names == {*SIX_ACTIVATIONS}
        return tr("six activations") if is_six else counted(len(names), "activation")
    name, _, count = "".join(names).partition(":")
    row = ACTIVATIONS.get(name)
    words = SHORT.get(name) or (row.label.partition(",")[0] if row is not None else name)
    words = tr(words or "model default")
    return tr("{name} of {count}", name=words, count=count) if count.isdecimal() else words


# --- capture of B ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SideCapture:
    """B, and the model that made it with what that was opened from; None where it was a file."""

    side_b: SideB
    capture: Capture
    model: Model | None = None
    source: tuple[str, str] = ("", "")  # the path of a checkpoint, the activation exchanged for


def open_side(side_b: SideB, a: Capture) -> SideCapture | None:
    """The capture that lies at a path, of many texts the one that A is of; None for a checkpoint.

    Raises HgvizError for what is neither.
    """
    progress(0, 1, "reading the file")
    kind = tasks.kind_of(side_b.path)
    if kind == "checkpoint":
        return None
    what = "is a study of head importance and has no maps to compare"
    do = "Choose a checkpoint or a capture"
    require(kind != "study", f"{name_of(side_b.path)} {what}", do)
    capture = tasks.capture_at(side_b.path)
    if capture.items:
        same = [item.number for item in capture.items if item.text == a.main.text]
        numbers = [item.number for item in capture.items]
        number = same[0] if same else a.item if a.item in numbers else capture.item
        capture = capture if number == capture.item else tasks.capture_at(side_b.path, number)
    return SideCapture(side_b, capture)


def capture_side(
    side_b: SideB, a: Capture, request: sources.CaptureRequest, model: Model | None
) -> SideCapture:
    """Capture B with a model, or with the checkpoint of the request; steps carry B so far."""
    model = model or sources.load(request)

    def as_side(step: Step) -> Step:
        is_capture = isinstance(step.value, Capture)
        return replace(step, value=SideCapture(side_b, step.value) if is_capture else None)

    with progress_as(as_side):
        if side_b.kind == "text":
            try:
                request = replace(request, off=a.off, streaming=a.streaming)
                captured = sources.capture_text(request, model)[2]
            except sources.UnreadError as error:
                raise HgvizError(error.what, "Enter another text for B") from None
        else:
            off = {"off": side_b.off, "activation": a.off}.get(side_b.kind, frozenset())
            # with some heads off the others are as in A, and with none it is the whole model
            streaming = a.streaming if side_b.kind == "activation" or off else NO_STREAMING
            captured = tasks.capture_like(model, a, off, streaming)
    return SideCapture(side_b, captured, model, (request.path, request.activation))


# --- sides ----------------------------------------------------------------------------------------

BESIDE = "beside"
EVALUATED = ("model", "activation", "off")  # kinds of B that answer better or worse than A
NEEDS_MODEL = ("activation", "text", "off")  # kinds of B that the checkpoint of A captures
QUIET = 0.2  # s: a B that is there sooner shows no layers on their way
NEEDS_CHECKPOINT = HgvizError(
    "B needs the checkpoint of A: A was opened from a capture, which has no model weights",
    "Open the checkpoint, or choose another checkpoint or capture for B",
)


class Sides:
    """Makes session.capture_b what session.comparison says, for every new capture of A."""

    def __init__(self, session: Session, lanes: Lanes, working: Jobs, on_error: OnError) -> None:
        self.session, self.lanes, self.working, self.on_error = session, lanes, working, on_error
        self._shown: SideB | None = None  # what session.capture_b is of
        self._model: Model | None = None  # the one that made B, and what it was opened from
        self._source = ("", "")
        self._partial = False  # whether session.capture_b is what there is so far of a new B
        self._due = False  # whether A is another one than B was made beside
        self._maps = session.capture.maps if session.capture is not None else None
        session.changed.connect(self._follow_session)

    # --- what people ask for ----------------------------------------------------------------------

    def choose(self, side_b: SideB, head: HeadId | None = None) -> None:
        """Choose another B. head: the head of B to compare with that of A, None for the same."""
        session = self.session
        chosen = replace(session.selection, beside=head)
        session.put(chosen=False, mode="compare", comparison=side_b, selection=chosen)
        self._due = session.at_work  # then A is about to be another one
        if not self._due:
            self._start()

    def stop(self) -> None:
        """Stop computing B and keep the previous B."""
        self.working.stop(BESIDE)
        self._due = False
        self.session.put(comparison=self._shown)

    def forget(self) -> None:
        """Remove B."""
        self.working.stop(BESIDE)
        self._due, self._shown, self._model = False, None, None
        chosen = replace(self.session.selection, beside=None)
        self.session.put(chosen=False, comparison=None, capture_b=None, selection=chosen)

    # --- following A ------------------------------------------------------------------------------

    @property
    def model(self) -> Model | None:
        """The model that made B; None where B was opened from a file, or is the same model."""
        session, model = self.session, self._model
        if model is None or session.capture_b is None or session.comparison is None:
            return None
        is_its = model.spec.digest == session.capture_b.spec.digest
        return model if is_its and session.comparison.kind in EVALUATED else None

    def _follow_session(self, name: str) -> None:
        if name == "comparison" and self.session.comparison is None:
            self._shown = None
        if name == "capture":
            maps = self.session.capture.maps if self.session.capture is not None else None
            self._due |= self.session.comparison is not None and maps is not self._maps
            self._maps = maps  # one that was only saved is the same
        if name in ("capture", "mode", "work") and self._due:
            self._follow()

    def _follow(self) -> None:
        """Compute B again once A is complete and the Compare page is shown."""
        session = self.session
        a, side_b = session.capture, session.comparison
        if side_b is None or session.mode != "compare" or session.at_work:
            return
        if a is not None and not a.complete and side_b.kind != "head":
            return
        lacks_model = side_b.kind in NEEDS_MODEL and not session.checkpoint
        lacks_heads = side_b.kind == "off" and a is not None and not side_b.off <= {*a.spec.heads}
        if a is None or lacks_model or lacks_heads:
            self.forget()
        else:
            self._start()

    # --- bringing B -------------------------------------------------------------------------------

    def _start(self) -> None:
        session, self._due = self.session, False
        a, side_b = session.capture, session.comparison
        self.working.stop(BESIDE)
        if a is None or side_b is None:
            return
        if side_b.kind == "head":
            self._take(SideCapture(side_b, a))
        elif side_b.kind == "model":
            self.working.start(
                self.lanes.files, BESIDE, f"Opening {name_of(side_b.path)} as B",
                partial(open_side, side_b, a), self._take_or_capture, self._give_up, bound=True,
            )  # fmt: skip
        elif not session.checkpoint:
            self._give_up(NEEDS_CHECKPOINT)
        else:
            self._capture(a, side_b)

    def _take_or_capture(self, side: SideCapture | None) -> None:
        if side is not None:
            self._take(side)
        elif self.session.capture is not None and self.session.comparison is not None:
            self._capture(self.session.capture, self.session.comparison)

    def _capture(self, a: Capture, side_b: SideB) -> None:
        session = self.session
        path = side_b.path if side_b.kind == "model" else session.checkpoint
        own = side_b.kind in ("activation", "model")
        activation = side_b.activation if own else session.activation
        models = {
            self._source: self._model, (session.checkpoint, session.activation): session.model,
        }  # fmt: skip
        request = sources.CaptureRequest(
            path, side_b.text, side_b.second, device=settings.load().device, activation=activation
        )
        self._partial = False
        self.working.start(
            self.lanes.engine, BESIDE, "Running model for B",
            partial(capture_side, side_b, a, request, models.get((path, activation))),
            self._take, self._give_up, self._show_step, bound=True,
        )  # fmt: skip

    def _show_step(self, step: Step) -> None:
        """Show B once it has the head that is looked at, unless all of it will be there in a
        moment: each new B is compared from the start. The last layer comes with the answer."""
        if not isinstance(step.value, SideCapture) or self.working.age(BESIDE) <= QUIET:
            return
        part, now = step.value.capture, self.session.capture_b
        if part.complete:
            return
        if self._has(part) and not (self._partial and now is not None and self._has(now)):
            self._partial, self._shown = True, step.value.side_b
            self.session.put(capture_b=part)

    def _has(self, b: Capture) -> bool:
        """Whether a B has what stands beside the selected head."""
        a, chosen = self.session.capture, self.session.selection
        return a is not None and counterpart(a, b, chosen.head_id, chosen.beside) is not None

    def _take(self, side: SideCapture) -> None:
        if side.model is not None:
            self._model, self._source = side.model, side.source
        self._shown = side.side_b
        self.session.put(capture_b=side.capture, comparison=side.side_b)

    def _give_up(self, error: BaseException) -> None:
        """What was there before stays, if it is of this A."""
        if self._shown == self.session.comparison:
            self.forget()
        else:
            self.session.put(comparison=self._shown)
        self.on_error(error)


# --- side bar -------------------------------------------------------------------------------------


class SideLabel(QWidget):
    """[A] what it is, where it comes from, and a button that changes it."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self.setFixedHeight(28)
        self.letter = label(letter, factor=0.92, weight=600, kind="side")
        self.name = label(weight=600)
        self.words = Words(factor=0.92, kind="secondary")
        self.change = Button(tr("Change…"), kind="link")
        self.change.setAccessibleDescription(letter)
        self.stop = IconButton("stop", tr("Stop running the model for {side}", side=letter))
        self.stop.hide()
        self.alike = IconButton("compare", tr("Pair with the most similar head of B"))
        self.alike.hide()
        parts = self.alike, self.change, self.stop
        hbox(self, self.letter, self.name, (self.words, 1), *parts, spacing=8)

    def say(self, name: str, words: str) -> None:
        """Show what the side is and where it comes from."""
        self.name.setText(sentences.elided(name, NAMED))
        self.name.setToolTip(tip(name))
        self.words.say(words)


class SideBar(View):
    """A and B: two labels over their maps. The bar itself has no picture and takes no room."""

    title = "Sides"
    figureless = "Export the maps below instead"
    needs = (
        "capture", "capture_b", "comparison", "selection", "checkpoint", "activation", "work",
        "trial", "trial_b",
    )  # fmt: skip
    lane = "here"
    topic = "compare-sides"

    stopped = Signal()
    explained = Signal(str)  # how B differs from A
    paired = Signal(bool)  # whether there are two sides

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = SideLabel("A"), SideLabel("B")
        self.a.change.clicked.connect(lambda: self.asked.emit("open"))
        self.b.change.clicked.connect(lambda: self.asked.emit("compare_with"))
        self.b.alike.clicked.connect(lambda: self.asked.emit("pair_alike"))
        self.b.words.setAccessibleName(tr("Source of B"))
        self.b.stop.clicked.connect(self.stopped)
        self.setFixedHeight(0)

    def request(self, session: Session) -> Callable[[], Session] | None:
        return lambda: session

    def draw(self, session: Session) -> None:
        names, a, b = sides_of(session), session.capture, session.capture_b
        self.explained.emit(names.note)
        self.paired.emit(a is not None and b is not None)
        for side in (self.a, self.b):
            side.setEnabled(a is not None)
        name_a = names.a if b is not None else activation_of(a) if a is not None else ""
        about = _about(session, a, names.a) if a is not None else ""
        self.a.say(name_a, _with_score(about, session.trial, a))
        work = session.job(BESIDE)
        about = work_words(work) if work is not None else self._about_b(session, names)
        about = _with_score(about, session.trial_b, b)
        self.b.say(names.b if b is not None else tr("not chosen"), about)
        self.b.alike.setVisible(b is not None and a is not None and a.spec.digest != b.spec.digest)
        self.b.stop.setVisible(work is not None)

    def _about_b(self, session: Session, names: SideNames) -> str:
        a, b, side_b = session.capture, session.capture_b, session.comparison
        if a is None or b is None:
            return ""
        kind = side_b.kind if side_b is not None else "model"
        name = model_of(session, a if kind == "activation" else b)
        if kind == "activation" and activation_of(a) != activation_of(b):
            return tr("{name}, activation replaced", name=name)
        if kind == "text" and b.main.text:
            text = sentences.quoted(sentences.shown(b.main.text, 60))
            return tr("{name} on {text}", name=name, text=text)
        return _about(session, b, names.b) if kind in ("model", "off") else name


def _about(session: Session, capture: Capture, name: str) -> str:
    """What is not said of a side yet: its model, or its activation."""
    is_said = name == model_of(session, capture, short=True)
    return activation_of(capture) if is_said else model_of(session, capture)


def _with_score(about: str, trial: MaskTrial | None, capture: Capture | None) -> str:
    """accuracy 97.8 % (97.1 to 98.4), and what else there is to say of a side."""
    if trial is None or capture is None or not trial.scores or trial.off != capture.off:
        return about
    score = trial.headline[-1]
    words = "loss {score}" if score.metric == "loss" else "accuracy {score}"
    return " · ".join(filter(None, (tr(words, score=sentences.score_words(score)), about)))


def work_words(work: Work) -> str:
    """The progress of B: Running model for B: layer 3, 23 %."""
    share = percent(f"{100 * work.done / work.total:.0f}") if work.total else ""
    done = ", ".join(filter(None, (tr(work.note), share)))
    return f"{tr(work.title)}: {done}" if work.note else f"{tr(work.title)}…"


# --- dialog ---------------------------------------------------------------------------------------

KINDS = {  # on its button, and in a sentence
    "model": ("Model", "Another checkpoint on the same text, or a saved capture."),
    "activation": ("Activation", "Same weights and text, another activation, not retrained."),
    "text": ("Text", "The same model on another text; tokens in both texts are compared."),
    "off": ("Heads off", "The same model and text with these heads off."),
    "head": ("Another head", "Another head of the same capture, for example at another level."),
}
NAMING = "12.5, 4.* for a whole layer; empty for all heads on"
MODELLESS = "Open the checkpoint first: this capture was opened from a file."


class CompareDialog(Form):
    """Five ways to a B, with what each needs.

    more: checkpoints and captures that were opened before, path and name. ask_file: asks for a
    file, or with True for a folder.
    """

    wide = 640

    def __init__(
        self,
        window: QWidget,
        session: Session,
        more: Mapping[str, str],
        kind: str = "",
        ask_file: Callable[[bool], object] | None = None,
    ) -> None:
        super().__init__(window, tr("Compare with…"))
        assert session.capture is not None
        self._session, self._capture = session, session.capture
        choices = [(name, words) for name, (words, _) in KINDS.items()]
        self.kinds = Segments(choices, tr("What to compare with"), wide=104)
        self.kinds.chosen.connect(self._turn)
        self.body.addLayout(hbox(None, self.kinds, 1, spacing=-1))
        self.kind_note, self.pages = note(""), QStackedWidget()
        pages = self._model(more, ask_file), self._activation(), self._text(), self._off()
        for page in (*pages, QWidget()):
            self.pages.addWidget(page)
        self.body.addWidget(self.kind_note)
        self.body.addWidget(self.pages)
        beside = session.selection.beside
        self.head = QLineEdit("" if beside is None else str(beside))
        self.head.setPlaceholderText(tr("default: the matching head"))
        self.head.textChanged.connect(self.check)
        self.row(tr("Head of B"), self.head)
        go = Button(tr("Compare"), "compare", kind="filled")
        go.setShortcut("Ctrl+Return")  # Return alone is a new line of a text
        go.setToolTip("Ctrl+Return")
        now = session.comparison.kind if session.comparison is not None else "model"
        self.kinds.choose(kind or (now if session.checkpoint else "model"))
        self.offer(go)
        self._turn(self.kinds.choice)
        fields = (self.paths, self.activations, self.texts[0], self.heads, self.head)
        self.first = fields[self.pages.currentIndex()]

    def _activation(self) -> QWidget:
        self.activations = Picker(tr("Activation of B"))
        now, spec = self._session.activation, self._capture.spec
        own = {name for layer in spec.layers for name in layer.activations}
        others = [row for row in activation_choices(spec)
                  if row[0] != now and {*row[0].split(",")} != own]  # fmt: skip
        self.activations.offer([*[("", tr("Model default"))] * bool(now), *others])
        return _column(self.activations)

    def _model(self, more: Mapping[str, str], ask_file: Callable[[bool], object] | None) -> QWidget:
        self.paths = Picker(tr("Checkpoint or capture"))
        here = self._session.checkpoint or self._capture.path
        self.paths.offer([row for row in more.items() if row[0] != here])
        own = [path for path in more if path not in samples() and path != here]
        self.paths.setCurrentIndex(self.paths.findData(partner(here) or (own or [""])[-1]))
        self.paths.setPlaceholderText(tr("Choose a model"))
        self.paths.setEnabled(self.paths.count() > 0)
        row = hbox(None, spacing=8)
        for words, is_folder in (("Another file…", False), ("Another folder…", True)):
            button = Button(tr(words), "open")
            button.clicked.connect(self.reject)
            if ask_file is not None:
                button.clicked.connect(partial(ask_file, is_folder))
            row.addWidget(button)
        row.addStretch(1)
        return _column(self.paths, row)

    def _text(self) -> QWidget:
        model, texts = self._session.model, self._capture.texts
        names = tr("Text of B"), tr("Second text of B")
        self.texts = [TextField(text, name, 96) for text, name in zip(texts, names, strict=True)]
        for field in self.texts:
            field.setFixedHeight(96)
            field.textChanged.connect(self.check)
        two = texts[1] or (model is not None and ModelInputs.of(model).second)
        self.texts[1].setVisible(bool(two))
        return _column(*self.texts)

    def _off(self) -> QWidget:
        session, layers, off = self._session, self._capture.spec.layers, self._capture.off
        head = frozenset({session.selection.head_id})
        first = session.off if session.off not in (off, frozenset()) else head - off
        self.heads = QLineEdit(named(first, layers))
        self.heads.setPlaceholderText(tr(NAMING))
        self.heads.setAccessibleName(tr("Heads off in B"))
        self.heads.textChanged.connect(self.check)
        words = "Heads off in A: {heads}." if off else "A has no heads off."
        return _column(self.heads, note(tr(words, heads=named(off, layers))))

    def _turn(self, kind: str) -> None:
        self.kind_note.setText(tr(KINDS[kind][1]))
        self.pages.setCurrentIndex(self.kinds.names.index(kind))
        self.check()

    def answer(self) -> tuple[SideB, HeadId | None]:
        """What is chosen. Raises HgvizError for heads that are not named."""
        kind, layers = self.kinds.choice, self._capture.spec.layers
        match kind:
            case "activation":
                side_b = SideB("activation", self.activations.currentData())
            case "model":
                side_b = SideB("model", path=self.paths.currentData() or "")
            case "text":
                text, second = (field.text() for field in self.texts)
                side_b = SideB("text", text=text, second=second)
            case "off":
                side_b = SideB("off", off=parse_heads(self.heads.text(), layers))
            case _:
                side_b = SideB("head")
        name = self.head.text().strip()
        if kind == "head" and name:
            parse_heads(name, layers)  # which must be one of the capture
        layer, _, head = name.partition(".")
        is_head = layer.isdecimal() and head.isdecimal()
        do = "Enter the layer and the head, such as 3.1"
        require(is_head or not name, f"{name} is not a head", do)
        return side_b, HeadId(int(layer), int(head)) if is_head else None

    def problem(self) -> str:
        kind = self.kinds.choice
        if kind in NEEDS_MODEL and not self._session.checkpoint:
            return tr(MODELLESS)
        lacks = {
            "model": "" if self.paths.currentData() else "Choose a checkpoint or a capture.",
            "text": "" if self.texts[0].text() else "The text is empty.",
            "head": "" if self.head.text().strip() else "Enter the head of B, such as 3.1.",
        }
        if lacks.get(kind):
            return tr(lacks[kind])
        try:
            side_b, _ = self.answer()
        except HgvizError as error:
            return " ".join(map(tr, error.lines))
        if kind == "off" and side_b.off == self._capture.off:
            return tr("The same heads are off in A.")
        return ""


def _column(*items: QWidget | QHBoxLayout) -> QWidget:
    out = QWidget()
    vbox(out, *items, 1, spacing=8)
    return out
