"""Trains B for a while in the engine lane, and shows in its dialog how that goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from hgviz import settings, tasks
from hgviz.core import ModelSpec, Step
from hgviz.gui.language import tr
from hgviz.gui.opening import name_of, shown_error
from hgviz.gui.working import GOING
from hgviz.resources import resource

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from hgviz.gui.bridge import Lanes
    from hgviz.gui.compare.training import TrainDialog, Wish
    from hgviz.gui.working import Working
    from hgviz.models.training import Report
    from hgviz.session import Session

TUNE = "train-beside"
REVIEWS, LABELS = "sample/reviews.tsv", {"negative", "positive"}
STOPPED = "Stopped before anything was learnt: nothing was kept"


class Tuning:
    """Asks, trains, stops with what is learnt. compare: what puts a checkpoint beside A."""

    def __init__(
        self, window: QWidget, session: Session, lanes: Lanes, working: Working,
        compare: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.window, self.session, self.lanes, self.working = window, session, lanes, working
        self._compare = compare
        self.dialog: TrainDialog | None = None
        self._enough = Event()
        self._begun = False

    @property
    def running(self) -> bool:
        """Whether B learns, or waits for that."""
        return any(one.key == TUNE and one.state in GOING for one in self.session.work)

    def ask(self) -> None:
        """Show the dialog, or the one that is at work already."""
        from hgviz.gui.compare import offers
        from hgviz.gui.compare.told import activation_of
        from hgviz.gui.compare.training import SMALL, TrainDialog, Wish
        from hgviz.gui.prune.removing import free

        session, spec = self.session, self.session.spec
        if self.dialog is None:
            assert session.capture is not None and spec is not None
            other = session.other
            same = other is not None and other.kind == "activation"
            offered = [("", tr("Its own")), *offers.activations(spec, "")]
            names = [name for name, _ in offered]
            wanted = other.activation if other is not None and same else "ymish"
            wanted = wanted if wanted in names else names[-1]
            name = name_of(session.checkpoint)
            stem = f"{name}-{wanted.partition(',')[0].partition(':')[0] or 'trained'}"
            out = free(Path(settings.load().folder or Path.home()) / stem)
            wish = Wish(
                session.checkpoint, wanted, session.data or _bundled(spec), out=str(out),
                rate=1e-3 if spec.parameters < SMALL else 1e-4,
            )  # fmt: skip
            own = activation_of(session.capture)
            self.dialog = TrainDialog(self.window, wish, name, own, offered)
            self.dialog.wanted.connect(self._start)
            self.dialog.stopped.connect(self.stop)
            self.dialog.compared.connect(self._compare)
            self.dialog.closed.connect(self._closed)
        if not self.dialog.isVisible():
            self.dialog.open()

    def stop(self) -> None:
        """End with what is learnt; what has not begun is given up."""
        if self._begun:
            self._enough.set()
            if self.dialog is not None:
                self.dialog.show_stopping()
            return
        self.working.stop(TUNE)
        if self.dialog is not None:
            self.dialog.show_asking(tr(STOPPED))

    def _start(self, wish: Wish) -> None:
        others = [one.title for one in self.session.work if one.state in GOING]
        self._enough, self._begun = Event(), False
        self._show().show_running(wish, others[0] if others else "")
        task = tasks.tune(
            wish.checkpoint, wish.data, wish.out, wish.activation, wish.minutes, wish.steps,
            wish.rate, settings.load().device, self._enough.is_set,
        )  # fmt: skip
        self.working.start(
            self.lanes.engine, TUNE, "Training B", task, self._done, self._failed, self._stepped,
            keeps="keeps what is learnt",
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        if isinstance(step.value, dict) and "metric" in step.value:
            self._begun = True
        if self.dialog is not None and not self._enough.is_set():
            self.dialog.show_step(step)

    def _done(self, report: Report) -> None:
        self._show().show_done(report)

    def _failed(self, error: BaseException) -> None:
        self._show().show_error(shown_error(error))

    def _show(self) -> TrainDialog:
        """The dialog in sight: it may have been left."""
        assert self.dialog is not None
        if not self.dialog.isVisible():
            self.dialog.open()
        return self.dialog

    def _closed(self) -> None:
        self.dialog = None


def _bundled(spec: ModelSpec) -> str:
    """The reviews that come with hgviz, for a classifier that knows their labels."""
    knows = spec.goal == "classes" and {*spec.labels} == LABELS
    return str(resource(REVIEWS)) if knows else ""


__all__ = ["TUNE", "Tuning"]
