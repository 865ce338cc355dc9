"""The program: session, pages and commands joined; the status line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.core import Capture, Display, Prompt, Selection
from hgviz.gui import theme
from hgviz.gui.actions import RECENT
from hgviz.gui.commands import Commands
from hgviz.gui.inspect import EmptyPage, FollowPage, InspectPage, WindowLayout
from hgviz.gui.jobs import JobChip, Lanes
from hgviz.gui.language import tr
from hgviz.gui.sentences import NULL, counted, glyph, quoted
from hgviz.gui.sessions import RecentMenu, Recovery, last
from hgviz.gui.sides import is_one_text
from hgviz.gui.sources import TEXT, name_of
from hgviz.gui.studyruns import line_of, trained_as
from hgviz.gui.theme import wants_dark
from hgviz.gui.trials import subject_words
from hgviz.gui.view import View
from hgviz.gui.window import RESTORE, Window, application
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.compare import ComparePage
    from hgviz.gui.prune import PrunePage
    from hgviz.gui.studies import SweepPage
    from hgviz.gui.widgets import StatusLine, Words

    Page = InspectPage | FollowPage | PrunePage | ComparePage | SweepPage

DOT = "   ·   "
DEVICES = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU (mps)"}


class Status(QObject):
    """Keeps the two texts of the status bar in step with the session: what is pointed at or chosen,
    and how what is open was made. Weights are said where they are drawn, not here."""

    def __init__(self, left: StatusLine, right: Words, session: Session) -> None:
        super().__init__(left)
        self._left, self._right, self._session = left, right, session
        session.changed.connect(self._heard)
        left.went_on.connect(self._say)
        self._heard("capture")

    def close(self) -> None:
        self._session.changed.disconnect(self._heard)

    def settle(self) -> None:
        """Say the selection now, in place of a message that would stay for a while."""
        self._left.go_on()
        self._say()

    def _heard(self, name: str) -> None:
        if name in ("capture", "study", "mode", "capture_b"):
            self._right.say(source_words(self._session))
        if name == "models":
            self._left.say("")  # it was of another model
        if name == "hover":
            self._left.go_on()
        if name in ("capture", "model", "selection", "hover", "mode", "capture_b", "cell", "sweep"):
            self._say()

    def _say(self) -> None:
        session = self._session
        if session.mode == "sweep" and session.sweep is not None:
            self._left.say(line_of(session.run) if session.run is not None else "")
        elif session.capture is not None:
            if session.mode != "prune":  # the wall of heads says what is pointed at there
                self._left.say(selection_words(session.capture, session.looked_at))
        elif session.mode != "prune" or session.spec is None:
            said = "Run the model on a text to see its attention" if session.model else OPEN
            self._left.say(tr(said))


OPEN = "Open a checkpoint or a capture to see its attention"


def selection_words(capture: Capture, chosen: Selection) -> str:
    """Head 12.5 · query 60 “s” · key 29 “.”."""
    parts = [tr("Head {head}", head=chosen.head_id)]
    layer, attention = capture.maps[chosen.layer], capture.spec.layers[chosen.layer]
    if layer is None:
        return DOT.join([*parts, tr("not captured yet")])
    if chosen.head not in layer.heads:
        return tr("No heads: all heads of this layer were pruned")

    def token(words: str, at: int, level: int, prompt: Prompt, spans: np.ndarray) -> str:
        start, end = map(int, spans[at])
        named = f"({tr(NULL) if capture.null(level) else tr('padding')})"
        if start >= 0:
            named = quoted(glyph(prompt, start, end))
        return tr(words, number=at, words=named)

    if chosen.query is not None:
        row = min(capture.row(chosen.layer, chosen.query), layer.shape[1] - 1)
        prompt, spans = capture.query_prompt(chosen.layer), capture.query_spans(chosen.layer)
        parts.append(token("query {number:,} {words}", row, attention.level, prompt, spans))
    if chosen.query is not None and chosen.key is not None:
        column = min(capture.column(chosen.layer, chosen.key), layer.shape[2] - 1)
        prompt, spans = capture.key_prompt(chosen.layer), capture.key_spans(chosen.layer)
        parts.append(token("key {number:,} {words}", column, attention.key_level, prompt, spans))
    return DOT.join(parts)


def source_words(session: Session) -> str:
    """How what is on screen was made: two captures, a study ("Study heads.h5 · softmax on
    reviews.tsv, 800 texts"), or one capture."""
    study, a, b = session.study, session.capture, session.capture_b
    if session.mode == "compare" and a is not None and b is not None:
        return both_words(a, b)
    if session.mode == "prune" and study is not None and study.path:
        name = tr("Study {name}", name=name_of(study.path))
        return DOT.join((name, ", ".join(subject_words(study))))
    return "" if a is None else made_words(a)


def made_words(capture: Capture) -> str:
    """136 bytes captured in 0.01 s · CPU, float32."""
    seconds, tokens = capture.made.seconds, len(capture.main)
    what = counted(tokens, "byte" if capture.spec.vocabulary == 256 else capture.main.unit)
    if capture.target is not None:
        states = capture.prompt.states is not None
        source = "{tokens}, {source:,} states read" if states else "{tokens}, {source:,} in source"
        what = tr(source, tokens=what, source=len(capture.prompt))
    if capture.items:
        what = tr("{tokens}, one of {count:,} texts", tokens=what, count=len(capture.items))
    words = "{tokens} captured in {time} s" if seconds else "{tokens} captured"
    if not capture.complete:
        words = "{tokens}, {done} of {layers} layers"
    done = sum(one is not None for one in capture.maps)
    time = f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
    said = tr(words, tokens=what, time=time, done=done, layers=len(capture.maps))
    return DOT.join((said, _device(capture)))


def _device(capture: Capture) -> str:
    made = capture.made
    return f"{DEVICES.get(made.device.partition(':')[0], made.device)}, {made.dtype}"


def both_words(a: Capture, b: Capture) -> str:
    """same text, 136 bytes · CPU, float32; of two captures."""
    tokens, unit = len(a.main), "byte" if a.spec.vocabulary == 256 else a.main.unit
    made = [_device(one) for one in (a, b)]
    devices = made[0] if made[0] == made[1] else f"A {made[0]}, B {made[1]}"
    texts = "same text" if is_one_text(a, b) else "two texts"
    if texts == "same text" and a.main.pieces != b.main.pieces:
        texts = "same text, different tokens"
    said = [tr(texts), counted(tokens, unit)]
    if len(b.main) != tokens:
        said[1] = tr("{tokens} and {more:,}", tokens=said[1], more=len(b.main))
    return DOT.join((", ".join(said), devices))


LATER = ("follow", "prune", "compare", "sweep")  # pages that a window does not begin with
# the fields of the session that the title says, those that change which page is shown and what
# stands for a map that is not there yet, and those that change what can be done
OF_TITLE = {"capture", "spec", "model", "checkpoint", "activation", "study", "sweep", "mode"}
OF_PAGE = {"capture", "model", "study", "sweep", "mode", "work", "selection"}
OF_STATE = OF_TITLE | OF_PAGE | {
    "off", "undo", "redo", "trial", "capture_b", "recent", "cell", "facts", "score",
}  # fmt: skip
LONG = 1000  # ms: shorter jobs are not shown in the status bar
IDLE = 1500  # ms after the first picture: torch's import holds the interpreter for a while


class Program:
    """One window at work. `keep` False: no settings are written when it closes. `whole` False: the
    pages of LATER are built when they are wanted, or there is time.
    """

    follow: FollowPage
    prune: PrunePage
    compare: ComparePage
    sweep: SweepPage

    def __init__(self, frame: Window, keep: bool = True, whole: bool = True) -> None:
        self.frame, self._keep, self._open = frame, keep, True
        self._complete = False
        self._lasting = False  # whether what is open is to come back
        self._sure = False  # whether it may close without a question
        self._trial: object = None  # on which examples heads are tried, and whether that stopped
        self._app = application()
        kept = settings.load()
        self.session, self.lanes = Session(), Lanes()
        self.session.put(
            dark=theme.current().dark,
            text=TEXT,
            display=Display(palette=kept.palette, scale=kept.scale),
        )
        self.commands = Commands(frame, self.session, self.lanes)
        self.recovery = Recovery(self.commands)
        with theme.undressed(self._app):
            self.empty, self.inspect = EmptyPage(), InspectPage()
            frame.furnish({"empty": self.empty, "inspect": self.inspect})
            self.laying = self.commands.laying = WindowLayout(frame, self.inspect, kept.docks)
        self.views: tuple[View, ...] = ()
        self._pages: tuple[Page, ...] = (self.inspect,)
        self._bind()
        self.empty.asked.connect(self.commands.run)
        self.empty.example_wanted.connect(self.commands.open_example)
        self.empty.recent.chosen.connect(self.commands.open_path)
        self.recent = RecentMenu(frame.menus[RECENT], self.session, self.commands.open_path)
        self.inspect.tabbed.chosen.connect(lambda name: self.session.put(look=name))
        self.inspect.texts.picked.connect(self.commands.open_item)
        self.inspect.hourglass.shaded.connect(lambda metric: self.session.put(shade=metric))
        self.status = Status(frame.chosen_words, frame.made_words, self.session)
        self.chip = JobChip()
        frame.statusBar().insertWidget(1, self.chip)
        self.chip.hide()
        self.chip.dropped.connect(self.commands.drop)
        self.chip.pressed.connect(partial(self.commands.run, "jobs"))
        self._listing = QTimer(frame, singleShot=True, interval=LONG)
        self._listing.timeout.connect(self._show_chip)
        frame.wanted.connect(self.commands.run)
        frame.dropped.connect(self.commands.take)
        frame.toolbar.models.picked.connect(self.commands.open_path)
        frame.resized.connect(self._resized)
        frame.closing.connect(self.close)
        frame.may_close = lambda: (
            self._sure or not self._open or self.commands.may_close(self._close_now)
        )
        self.session.changed.connect(self._heard)
        self._hints = QGuiApplication.styleHints()
        self._hints.colorSchemeChanged.connect(self._system_theme)
        self.empty.recent.show_files(self.session.recent)
        self._show_page()
        self.frame.show_reasons(self.session)
        self._show_model()
        frame.show_theme()
        if whole:
            self.complete()

    def open_first(self, paths: Sequence[str], go_on: bool = True) -> None:
        """Open the paths of the command line; without any what was open last, and at first, or
        where nobody wants to go on with that, the capture that comes with hgviz."""
        self._lasting = self._keep
        for path in paths:
            self.commands.recent.open(path)
        if self._keep:
            self.recovery.begin()
        if paths:
            self.commands.open_path(paths[0])
            self.recovery.offer(lambda: None)
        elif go_on:
            self.recovery.offer(self._go_on)
        else:
            self.commands.open_example("inspect")
        QTimer.singleShot(IDLE, self._idle)

    def _go_on(self) -> None:
        """Open what was open when the window closed, or the sample."""
        open_sample = partial(self.commands.open_example, "inspect")
        if (settings.load().restore or RESTORE in os.environ) and last().exists():
            self.commands.sessions.open_last(open_sample)
        else:
            open_sample()

    def complete(self) -> None:
        """Build the looks and pages that nobody sees at first; once."""
        if self._complete or not self._open:
            return
        self._complete = True
        from hgviz.gui.compare import ComparePage
        from hgviz.gui.prune import PrunePage
        from hgviz.gui.studies import SweepPage

        with theme.undressed(self._app):
            self.inspect.complete()
            self.follow, self.prune = FollowPage(), PrunePage()
            self.compare, self.sweep = ComparePage(), SweepPage()
            self.frame.furnish({
                "follow": self.follow, "prune": self.prune, "compare": self.compare,
                "sweep": self.sweep,
            })  # fmt: skip
        self._pages += (self.follow, self.prune, self.compare, self.sweep)
        self._bind()
        for page in (self.inspect, self.prune, self.compare, self.sweep):
            page.join(self.commands)
        self._resized(self.frame.width(), self.frame.height())

    def close(self) -> None:
        """Stop what runs, wait for it, and keep where the window was."""
        if not self._open:
            return
        self._open = False
        if self._keep:
            display = self.session.display
            kept = self.laying.kept() | {"palette": display.palette, "scale": display.scale}
            self.commands.keep(**kept)
        if self._lasting:
            self.commands.sessions.keep_last()
        self.frame.hide()
        self._listing.stop()
        self.session.changed.disconnect(self._heard)
        self._hints.colorSchemeChanged.disconnect(self._system_theme)
        self.status.close()
        self.commands.pruning.close()
        self.commands.watching.close()
        for view in self.views:
            view.unbind()
        self.lanes.close()
        self.recovery.close(complete=self._sure or not self.session.unsaved)

    def settle(self) -> None:
        """Ask and draw everything that is on screen, here and now: for pictures and tests."""
        QApplication.processEvents()
        for view in self.views:
            if view.isVisible():
                view.settle()
        self.status.settle()
        QApplication.processEvents()

    def _bind(self) -> None:
        """Have the views of all pages listen and ask."""
        before = set(self.views)
        self.views = tuple(view for page in self._pages for view in page.views)
        self.commands.views = self.views
        for view in self.views:
            if view not in before:
                view.bind(self.session, self.lanes)
                view.asked.connect(partial(self.commands.run_for, view))

    def _heard(self, name: str) -> None:
        if name == "dark":
            theme.apply(self._app, self.session.dark)
            self.frame.show_theme()
        if name in ("capture", "spec"):
            self._offer_image()
        if name == "look":
            if self.session.look != "map":
                self.complete()
            self.inspect.tabbed.show_look(self.session.look)
        if name == "trial":  # that a score grows changes nothing that can be done
            trial, before = self.session.trial, self._trial
            self._trial = trial and (trial.examples.digest, trial.stopped)
            if self._trial == before:
                return
        if name in OF_PAGE:
            self._show_page()
        if name in OF_STATE:
            self.frame.show_reasons(self.session)
        if name == "recent":
            self.recent.fill()
            self.empty.recent.show_files(self.session.recent)
        if name in OF_TITLE:
            self._show_model()

    def _show_page(self) -> None:
        """The right page, and progress where the map is not there yet."""
        session = self.session
        busy, capture = session.job() is not None, session.capture
        self.frame.offer_mode("sweep", session.sweep is not None)
        here = session.mode == "sweep" and session.sweep is not None
        if session.mode in LATER:
            self.complete()
        nothing = capture is None and session.model is None and session.study is None
        mode = session.mode if here or session.mode != "sweep" else "inspect"
        self.frame.show_mode("empty" if nothing and not busy and not here else mode)
        self.inspect.show_texts(capture is not None and bool(capture.items))
        missing = capture is None or capture.maps[session.selection.layer] is None
        self.inspect.tabbed.show_capturing(missing and session.at_work)
        if not busy:
            self._listing.stop()
            self.chip.hide()
        elif not self.chip.isHidden():
            self.chip.show_work(session.work)
        elif not self._listing.isActive():
            self._listing.start()

    def _show_chip(self) -> None:
        self.chip.show_work(self.session.work)
        self.chip.show()

    def _close_now(self) -> None:
        """Somebody was asked. The window must be seen until it closes: Qt ends the program with
        the last one that is."""
        self._sure = True
        self.frame.close()

    def _offer_image(self) -> None:
        """A tab for images where there is one to look at: it comes in place of the map."""
        session, looks = self.session, self.inspect.tabbed
        signal = None if session.capture is None else session.capture.prompt.signal
        is_image = signal is not None and signal.grid is not None
        if not is_image and session.look == "image":  # before its tab is gone
            session.put(look="map")
        if looks.offer("image", is_image) and is_image and session.look == "map":
            session.put(look="image")

    def _show_model(self) -> None:
        session, spec, sweep = self.session, self.session.spec, self.session.sweep
        name = trained_as(sweep, session.checkpoint) or (spec.name if spec else tr("No model"))
        size = parameters(spec.parameters) if spec else ""
        if session.study and not (session.capture or session.checkpoint):
            size = tr("study")
        at = session.capture.place_in_corpus if session.capture else None
        which = tr("text {number:,} of {count:,}", number=at[0], count=at[1]) if at else ""
        parts = (name, which, "hgviz") if spec else ("hgviz",)
        if sweep is not None and session.mode == "sweep":
            parts = (sweep.title, "hgviz")
        self.frame.setWindowTitle(" · ".join(filter(None, parts)))
        shown = session.capture or session.study
        here = session.checkpoint or (shown.path if shown else "")
        self.frame.toolbar.models.show_model(name, size, self.commands.recent.names, here)

    def _resized(self, width: int, height: int) -> None:
        for page in self._pages:
            page.respond(width, height)

    def _system_theme(self) -> None:
        """The system went light or dark: so does the window, unless somebody chose otherwise."""
        if settings.load().theme == "auto":
            self.session.put(dark=wants_dark("auto"))

    def _idle(self) -> None:
        """Load torch, and build what is left, once nothing else happens."""
        if not self._open:
            return
        if self.lanes.files.jobs or self.lanes.engine.jobs:
            QTimer.singleShot(IDLE, self._idle)
        else:
            self.complete()
            self.commands.capturing.warm_up()


def parameters(count: int) -> str:
    """6.3 M, 110 M, 1.2 B, 48 k; nothing for a size nobody knows."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            found = count / size
            return f"{found:.1f} {letter}" if found < 100 else f"{found:.0f} {letter}"
    return ""
