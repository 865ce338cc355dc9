"""Heads removed for good from the window: what is wished for, and the run that does it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz import settings, tasks
from hgviz.core import HeadId, ModelSpec, Off, Step, Task
from hgviz.gui.jobs import GOING
from hgviz.gui.language import tr
from hgviz.gui.opening import shown_error
from hgviz.gui.samples import name_of
from hgviz.gui.sentences import named

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import Working
    from hgviz.gui.removal import RemoveDialog
    from hgviz.models.surgery.compensation import Compensation
    from hgviz.models.surgery.proof import Form, Proof
    from hgviz.session import Session

REMOVE = "remove-heads"
STOPPED = "Stopped: nothing was written"


@dataclass(frozen=True, slots=True)
class Removal:
    """Heads to remove from a checkpoint: in which form, made up for how, proved on what ("": the
    reviews that come with hgviz), with which class of each label, and written where."""

    checkpoint: str
    spec: ModelSpec
    off: Off
    data: str = ""
    form: Form = "smaller"
    compensate: Compensation = "none"
    out: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> tuple[int, ...]:
        """The layers that lose every head they have."""
        return tuple(
            layer.index
            for layer in self.spec.layers
            if layer.heads and all(HeadId(layer.index, head) in self.off for head in layer.heads)
        )

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["hgviz", "prune", self.checkpoint, "--off", named(self.off, self.spec.layers)]
        words += ["--form", self.form] * (self.form != "smaller")
        words += ["--compensate", self.compensate] * (self.compensate != "none")
        words += ["--data", self.data] * bool(self.data)
        named_ = ",".join(f"{label}={name}" for label, name in self.labels.items())
        words += ["--labels", named_] * bool(self.labels)
        return shlex.join([*words, "-o", self.out])

    def task(self) -> Task[Proof]:
        """What does it."""
        data = self.data or None
        return tasks.prune(
            self.checkpoint,
            self.off,
            self.out,
            self.form,
            self.compensate,
            data=data,
            labels=self.labels or None,
        )


def free(out: Path) -> Path:
    """The path, or the same with a number where there is something already."""
    numbered = (out.with_name(f"{out.name}-{n}") for n in count(2))
    return next(one for one in chain((out,), numbered) if not os.path.lexists(one))


def _left(out: str) -> Task[str]:
    """The folder, "" where there is nothing in it."""
    yield from ()
    there = Path(out).is_dir() and any(Path(out).iterdir())
    return out if there else ""


class Removing:
    """Asks, runs the removal in the engine lane, and shows in the dialog what came of it.

    The dialog may be left while it runs; it comes back with the proof, or with what went wrong.
    """

    def __init__(
        self,
        window: QWidget,
        session: Session,
        lanes: Lanes,
        working: Working,
        open_path: Callable[[str], None],
        labels: Mapping[tuple[str, str], Mapping[str, str]],
    ) -> None:
        self.window, self.session, self.lanes, self.working = window, session, lanes, working
        self._open_path, self._labels = open_path, labels
        self.dialog: RemoveDialog | None = None
        self._out = ""

    def ask(self) -> None:
        """Show the dialog, or the one that is at work already."""
        from hgviz.gui.removal import RemoveDialog

        if self.dialog is None:
            session = self.session
            assert session.spec is not None
            name = f"{name_of(session.checkpoint)}-without-{len(session.off)}"
            out = str(free(Path(settings.load().folder or Path.home()) / name))
            labels = self._labels.get((session.checkpoint, session.data), {})
            wish = Removal(
                session.checkpoint, session.spec, session.off, session.data, out=out, labels=labels
            )
            self.dialog = RemoveDialog(self.window, wish)
            self.dialog.wanted.connect(self._start)
            self.dialog.stopped.connect(self.stop)
            self.dialog.opened.connect(self._open_path)
            self.dialog.closed.connect(self._closed)
        if not self.dialog.isVisible():
            self.dialog.open()

    def _start(self, wish: Removal) -> None:
        others = [one.title for one in self.session.work if one.state in GOING]
        self._out = wish.out
        self._show().show_running(others[0] if others else "")
        count = len(wish.off)
        title = f"Removing {count} heads for good" if count > 1 else "Removing 1 head for good"
        self.working.start(
            self.lanes.engine, REMOVE, title, wish.task(), self._done, self._failed, self._stepped
        )

    def stop(self) -> None:
        """Stop after the step that is under way, and say so once the lane has let go of it."""
        self.working.stop(REMOVE)
        if self.dialog is not None:
            self.dialog.show_stopping()
        self.lanes.engine.submit(
            REMOVE, "Stopping", _left(self._out), on_done=self._stopped,
            post=self.lanes.bridge.post,
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        if self.dialog is not None:
            self.dialog.show_step(step)

    def _done(self, proof: Proof) -> None:
        self._show().show_proof(proof)

    def _failed(self, error: BaseException) -> None:
        self._show().show_error(shown_error(error))

    def _stopped(self, written: str) -> None:
        """There is a folder after all where it was named before the stop came."""
        dialog = self.dialog
        if dialog is None:
            return
        said = tr("It was written to {path} before it could be stopped", path=written)
        dialog.show_asking(said if written else tr(STOPPED))
        if not dialog.isVisible():  # nobody looks at it: the next one asks anew
            dialog.deleteLater()
            self.dialog = None

    def _show(self) -> RemoveDialog:
        """The dialog in sight: it may have been left."""
        assert self.dialog is not None
        if not self.dialog.isVisible():
            self.dialog.open()
        return self.dialog

    def _closed(self) -> None:
        self.dialog = None
