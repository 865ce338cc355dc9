"""Capturing a text, many texts or what a model writes, until the heads are measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hgviz import settings, tasks
from hgviz.core import Capture, Selection, Step, Task
from hgviz.gui import opening
from hgviz.gui.jobs import OnError, Working
from hgviz.gui.language import tr
from hgviz.gui.panels_parts.jobs import KEEPS_TEXTS, keeps_words, layer_words
from hgviz.gui.samples import name_of
from hgviz.gui.views.words import counted
from hgviz.session import Session

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.writing import Writing
    from hgviz.models.model import Model

QUIET = 0.2  # s: a capture shorter than this shows no layers on their way
T = TypeVar("T")
Again = Callable[[opening.Wish], None]

GROWS = 0.12  # s between two pictures of a text that grows
SOON = 0.2  # s that a picture has to itself
PART = ".part"  # what the folder of an unfinished capture ends in


def _after_the_picture(task: Task[T]) -> Task[T]:
    """The same, a little later: side by side they would have half of the interpreter each."""
    yield Step(0, 1)
    time.sleep(SOON)
    return (yield from task)


def _nothing() -> None:
    """Nothing follows."""


def _shortened(wish: opening.Wish, asked: opening.Wish, model: Model) -> str:
    """What a model does not read of what was asked for."""
    if len(wish.text) < len(asked.text):
        most = counted(model.spec.max_positions or 0, model.tokenizer.unit)
        return tr("The text was cut: this model reads {most}", most=most)
    return tr("The second text was left out or cut: this model does not read all of it")


class Capturing:
    """Puts captures of session.text into the session, layer by layer.

    open_path: opens a file, as the person at the window would. ask: asks whether to go on with what
    takes long, and does one thing or another. say: says something in the status bar.
    """

    def __init__(
        self,
        session: Session,
        lanes: Lanes,
        working: Working,
        opened_before: dict[str, str],
        open_path: Callable[[str], None],
        ask: Callable[[tasks.Estimate, Callable[[], None], Callable[[], None]], None],
        say: Callable[[str], None],
    ) -> None:
        self.session, self.lanes, self.working = session, lanes, working
        self._opened_before, self._open_path, self._ask = opened_before, open_path, ask
        self._say = say
        self._given: Selection | None = None
        self._stopped: Callable[[], None] | None = None  # what is done when a job was stopped
        self._newest: opening.Written | None = None
        self._first: int | None = None  # the first token that was written before
        self._shown = 0.0
        self._ids = ""  # what was captured last, where that was a file of them

    def start(self, path: str) -> None:
        """Capture the text with the checkpoint at hand, as it is pruned and exchanged."""
        session = self.session
        wish = self._wish(path, off=session.off, activation=session.activation)
        self._start(wish, session.model, "Capturing")

    def start_fresh(self, path: str, on_error: OnError, activation: str = "") -> None:
        """Open a checkpoint and capture the text with the whole of it.

        Ids are of what the checkpoint at hand reads, and go with no other; neither does the text
        beside an image or a sound.
        """
        session, title = self.session, f"Opening {name_of(path)}"
        wish = self._wish(path, activation=activation, fits=True)
        if path != session.checkpoint:
            beside = session.spec is not None and session.spec.modality != "text"
            second = "" if beside else wish.second
            wish = replace(wish, second=second, ids="")
        self._start(wish, None, title, on_error)

    def start_again(
        self, path: str, then: Callable[[], None], on_error: OnError, **fields: Any
    ) -> None:
        """Open a checkpoint and capture the text as it was once captured; then: what follows.

        fields: those of a Wish, such as off.
        """
        wish = replace(self._wish(path, fits=True), **fields)
        self._start(wish, None, f"Opening {name_of(path)}", on_error, then)

    def settle_on(self, chosen: Selection) -> None:
        """Select what somebody chose once: nothing better takes its place."""
        self._given = None
        self.session.put(selection=chosen)

    def start_corpus(self, corpus: str, out: str) -> None:
        """Capture every text of a file into another file, which is opened then."""
        wish = self._wish(
            self.session.checkpoint, off=self.session.off, activation=self.session.activation,
        )  # fmt: skip
        self._stopped = partial(self._open_part, out)
        self.working.start(
            self.lanes.engine,
            "capture",
            f"Capturing {Path(corpus).name}",
            opening.capture_corpus(wish, self.session.model, corpus, out),
            on_step=self._counted,
            on_done=self._corpus_done,
            keeps=KEEPS_TEXTS,
        )

    def start_writing(self, writing: Writing) -> None:
        """Have the model go on with the text; it grows on screen."""
        session = self.session
        wish = self._wish(session.checkpoint, off=session.off, activation=session.activation)
        self._write(wish, writing)

    def _write(self, wish: opening.Wish, writing: Writing) -> None:
        session = self.session
        self._newest, self._first = None, None if session.stale else session.written
        self._stopped = partial(self._keep_written, writing)
        self.working.start(
            self.lanes.engine,
            "capture",
            "Writing",
            opening.write_on(wish, session.model, writing),
            on_step=self._wrote,
            on_done=self._written,
            on_error=partial(
                self._failed, self.working.on_error, lambda one: self._write(one, writing)
            ),
            keeps="keeps what is written",
            bound=True,
        )

    def stop(self) -> None:
        """What is done stays: layers, texts of a file, words that were written."""
        self.working.stop("capture")
        if self._stopped is not None:
            self._stopped()

    def measure(self) -> None:
        """Measure the heads of the capture on screen."""
        task = _after_the_picture(opening.measure(self.session.capture))
        self.working.start(
            self.lanes.facts, "measure", "Measuring heads", task, self._measured, bound=True
        )

    def warm_up(self) -> None:
        """Load torch and the checkpoint at hand while nothing else happens."""
        if self.session.checkpoint and self.session.model is None:
            self.lanes.engine.submit(
                "warm_up",
                "Loading torch",
                tasks.load(self.session.checkpoint, settings.load().device),
                on_done=self._warmed,
                on_error=self._not_warmed,
                post=self.lanes.bridge.post,
            )

    def _wish(self, path: str, **fields: Any) -> opening.Wish:
        session, device = self.session, settings.load().device
        texts = session.text, session.second, session.ids
        return opening.Wish(path, *texts, device=device, **fields)

    def _start(
        self,
        wish: opening.Wish,
        model: Model | None,
        title: str,
        on_error: OnError | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        self._stopped = None

        def again(agreed: opening.Wish) -> None:
            self._start(agreed, self.session.model, "Capturing", on_error, then)

        self.working.start(
            self.lanes.engine,
            "capture",
            title,
            opening.capture_text(wish, model),
            on_step=partial(self._part, wish),
            on_done=partial(self._done, wish, then),
            on_error=partial(self._not_read, wish, on_error or self.working.on_error, again, then),
            keeps=keeps_words(0),
            bound=True,
        )

    def _not_read(
        self,
        wish: opening.Wish,
        on_error: OnError,
        again: Again,
        then: Callable[[], None] | None,
        error: BaseException,
    ) -> None:
        """Ids that were not captured are not what the next capture is of."""
        if wish.ids != self._ids and self.session.ids == wish.ids:
            self.session.put(ids=self._ids)
        self._failed(on_error, again, error, then or _nothing)

    def _failed(
        self,
        on_error: OnError,
        again: Again,
        error: BaseException,
        refused: Callable[[], None] = _nothing,
    ) -> None:
        """A model that cannot read the text is open all the same; then the text can be changed.
        refused: what is done where nobody wants what takes long."""
        if isinstance(error, opening.UnreadError):
            self._open(error.wish, error.model)
        if isinstance(error, opening.UnreadError) and error.is_waiting:
            return  # the panes say what it reads
        if isinstance(error, opening.LongError):
            agreed = partial(again, replace(error.wish, agreed=True))
            self._ask(error.estimate, agreed, refused)
        else:
            on_error(error)

    def _open(self, wish: opening.Wish, model: Model) -> None:
        """A model that showed no capture: one of another goes."""
        self.session.put(model=model, text=wish.text, second=wish.second, **self._opened(wish))

    def _opened(self, wish: opening.Wish) -> dict[str, Any]:
        """What a session says of the checkpoint of a wish; ids are of the one before."""
        from hgviz.gui.sweeps.results import trained_as

        if wish.path != self.session.checkpoint:
            named = trained_as(self.session.sweep, wish.path) or name_of(wish.path)
            self._opened_before[wish.path] = named
            self._ids = ""
        ids = self.session.ids if wish.path == self.session.checkpoint else ""
        return {"checkpoint": wish.path, "activation": wish.activation, "ids": ids}

    def _part(self, wish: opening.Wish, step: Step) -> None:
        """Show the layers that are done, unless all of them will be in a moment."""
        if isinstance(step.value, Capture) and self.working.age("capture") > QUIET:
            done, total, prompt = int(step.done), int(step.total), step.value.main
            self.working.tell(
                "capture",
                title=f"Capturing {counted(len(prompt), prompt.unit)}",
                note=layer_words(done, total) if done < total else "Finishing",
                keeps=keeps_words(done),
            )
            self._take(step.value, **self._opened(wish))

    def _done(
        self,
        asked: opening.Wish,
        then: Callable[[], None] | None,
        result: tuple[opening.Wish, Model, Capture],
    ) -> None:
        wish, model, capture = result
        self._take(capture, model=model, **self._opened(wish))
        self._ids = wish.ids
        if asked.fits and (wish.text, wish.second) != (asked.text, asked.second):
            self._say(_shortened(wish, asked, model))
        self.measure()
        if then is not None:
            then()

    def _counted(self, step: Step) -> None:
        """Which text of a file is on its way."""
        if step.note:
            self.working.tell("capture", note=step.note)

    def _corpus_done(self, result: tuple[opening.Wish, Model, Capture]) -> None:
        wish, model, capture = result
        self._open(wish, model)
        self._open_path(capture.path)

    def _open_part(self, out: str) -> None:
        """Open what an interrupted capture leaves, once the lane has let go of it."""
        part = out + PART
        self.lanes.engine.submit(
            "open_part",
            "Opening what is done",
            opening.whether(part),
            on_done=self._part_there,
            post=self.lanes.bridge.post,
        )

    def _part_there(self, part: str) -> None:
        if part:
            self._open_path(part)

    def _wrote(self, step: Step) -> None:
        """Show what is written so far, once the picture of what was before is there."""
        if not isinstance(step.value, opening.Written):
            return
        self._newest = step.value
        now = time.monotonic()
        if now - self._shown >= GROWS and not self.lanes.files.jobs:
            self._shown = now
            self._grow(step.value)

    def _grow(self, written: opening.Written, **fields: Any) -> None:
        first = written.first if self._first is None else self._first
        self._take(written.capture, written=first, **fields)

    def _keep_written(self, writing: Writing) -> None:
        if self._newest is not None:
            self._grow(opening.stopped(self._newest, writing))
            self.measure()

    def _written(self, result: tuple[opening.Wish, Model, opening.Written]) -> None:
        wish, model, written = result
        self._grow(written, model=model, **self._opened(wish))
        self.measure()

    def _take(self, capture: Capture, **fields: Any) -> None:
        old = self.session.capture
        self.session.put(capture=capture, **fields)
        if old is None or old.spec != capture.spec:
            self._given = self.session.selection

    def _measured(self, found: opening.Found) -> None:
        now = self.session.capture
        if now is None or found.capture.maps is not now.maps:
            return  # of a text that has gone
        fields: dict[str, Any] = {"facts": found.facts}
        # Only a selection nobody has touched gives way to a better one.
        if found.selection is not None and self._given == self.session.selection:
            fields |= {"selection": found.selection, "opened": found.opened}
        self._given = None
        self.session.put(chosen=False, **fields)

    def _warmed(self, model: Model) -> None:
        capture = self.session.capture
        if self.session.model is None and capture and capture.spec.digest == model.spec.digest:
            self.session.put(model=model)

    def _not_warmed(self, error: BaseException) -> None:
        """Capture will say it when somebody asks for it."""
